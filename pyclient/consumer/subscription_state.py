"""What the consumer reads: topics, partitions, and where in each of them.

Shared by the caller's thread and the I/O thread. One lock guards all of it; no method waits,
logs or calls out while it holds the lock.

Each partition has two offsets. The *position* is the next record that the program gets: only
what it got moves it, and commits are made of it. The *fetch offset* runs ahead of it: the next
one to ask a broker for. And each has an *epoch*, which changes whenever the partition is
assigned, sought or reset: a response to a request of an earlier epoch is stale, and dropped.
"""

import re
import threading
from collections.abc import Collection, Iterable, Mapping
from enum import Enum

from pyclient.consumer.partition_state import (
    NO_LEADER_EPOCH,
    FetchTarget,
    OffsetReset,
    PartitionEpoch,
    PartitionFacts,
    PartitionOffsets,
    PartitionState,
    PositionMove,
    ValidationTarget,
)
from pyclient.consumer.rebalance_listener import (
    ConsumerRebalanceListener as ConsumerRebalanceListener,  # kafka-python's path of it
)
from pyclient.errors import IllegalStateError
from pyclient.metadata import NO_LEADER, ClusterMetadata
from pyclient.types import OffsetAndMetadata, TopicPartition


class SubscriptionType(Enum):
    """How partitions come to the consumer; the ways exclude each other."""

    NONE = "nothing"
    TOPICS = "topics"
    PATTERN = "a pattern"
    ASSIGNED = "assigned partitions"


class SubscriptionState:
    """Topics, partitions, positions. Any thread may call it."""

    def __init__(self, default_reset: OffsetReset | None, read_committed: bool = False) -> None:
        """`default_reset` is for partitions without a valid offset; None makes them an error."""
        self.default_reset = default_reset
        self.read_committed = read_committed
        self._lock = threading.Lock()  # guards everything below
        self._type = SubscriptionType.NONE
        self._topics: frozenset[str] = frozenset()
        self._pattern: re.Pattern[str] | None = None
        self._listener: ConsumerRebalanceListener | None = None
        self._partitions: dict[TopicPartition, PartitionState] = {}
        self._topic_ids: dict[str, bytes] = {}
        self._last_epoch = 0
        self._version = 0
        self._resting: frozenset[TopicPartition] = frozenset()  # as of the version beside it
        self._resting_version = 0

    # --- what is subscribed to ---------------------------------------------------------------

    def subscribe_topics(
        self, topics: Iterable[str], listener: ConsumerRebalanceListener | None
    ) -> None:
        """Read these topics, by the group's assignment."""
        with self._lock:
            self._claim(SubscriptionType.TOPICS)
            self._topics, self._listener = frozenset(topics), listener

    def subscribe_pattern(
        self, pattern: re.Pattern[str], listener: ConsumerRebalanceListener | None
    ) -> None:
        """Read all topics whose names match; `match_topics` says which these are."""
        with self._lock:
            self._claim(SubscriptionType.PATTERN)
            if pattern != self._pattern:
                self._topics = frozenset()
            self._pattern, self._listener = pattern, listener

    def match_topics(self, known: Iterable[str]) -> bool:
        """Subscribe to those of the known topics that match the pattern; tell if it changed."""
        with self._lock:
            pattern = self._pattern
            if self._type is not SubscriptionType.PATTERN or pattern is None:
                return False
            matching = frozenset(topic for topic in known if pattern.match(topic))
            changed = matching != self._topics
            self._version += changed
            self._topics = matching
            return changed

    def unsubscribe(self) -> None:
        """Drop the subscription and the assignment."""
        with self._lock:
            self._type = SubscriptionType.NONE
            self._topics, self._pattern, self._listener = frozenset(), None, None
            self._partitions = {}
            self._version += 1

    def _claim(self, wanted: SubscriptionType) -> None:
        if self._type not in (SubscriptionType.NONE, wanted):
            raise IllegalStateError(
                f"the consumer already has {self._type.value}: topics, a pattern and assigned "
                "partitions exclude each other; call unsubscribe() first"
            )
        self._type = wanted
        self._version += 1

    @property
    def type(self) -> SubscriptionType:
        """How partitions come to the consumer."""
        return self._type

    @property
    def version(self) -> int:
        """Changes with everything that the I/O thread may have to act on."""
        return self._version

    @property
    def topics(self) -> frozenset[str]:
        """The topics subscribed to, or those that match the pattern."""
        return self._topics

    @property
    def listener(self) -> ConsumerRebalanceListener | None:
        """The rebalance listener of the subscription, if any."""
        return self._listener

    def is_subscribed(self, topic: str) -> bool:
        """Whether the group may assign partitions of this topic."""
        with self._lock:
            if self._type is SubscriptionType.PATTERN:
                return self._pattern is not None and bool(self._pattern.match(topic))
            return self._type is SubscriptionType.TOPICS and topic in self._topics

    def has_any(self) -> bool:
        """Whether there is anything to read."""
        return self._type is not SubscriptionType.NONE

    def has_auto_assigned_partitions(self) -> bool:
        """Whether partitions come from a subscription rather than from `assign`."""
        return self._type in (SubscriptionType.TOPICS, SubscriptionType.PATTERN)

    def topics_to_know(self) -> frozenset[str]:
        """The topics whose metadata is needed."""
        with self._lock:
            if self._type is SubscriptionType.ASSIGNED:
                return frozenset(partition.topic for partition in self._partitions)
            return self._topics

    # --- what is assigned --------------------------------------------------------------------

    def assign_from_user(self, partitions: Collection[TopicPartition]) -> None:
        """Read these partitions, whatever a group says; those kept keep their positions.

        New ones are held until `release`, too: the program may seek before it polls.
        """
        with self._lock:
            self._claim(SubscriptionType.ASSIGNED)
            self._assign(partitions)

    def assign_from_group(
        self, partitions: Collection[TopicPartition], topic_ids: Mapping[str, bytes] | None = None
    ) -> None:
        """Take the partitions that membership gave; new ones are held until `release`."""
        with self._lock:
            if self.has_auto_assigned_partitions():
                self._topic_ids.update(topic_ids or {})
                self._assign(partitions)

    def _assign(self, partitions: Collection[TopicPartition]) -> None:
        kept = self._partitions
        self._partitions = {
            partition: kept.get(partition)
            or PartitionState(self._next_epoch(), self._topic_ids.get(partition.topic))
            for partition in partitions
        }
        self._version += 1

    def hold(self, partitions: Iterable[TopicPartition] | None = None) -> None:
        """Stop fetching and returning records of these, or of all, until they are replaced."""
        with self._lock:
            self._version += 1
            for partition in self._partitions if partitions is None else partitions:
                if partition in self._partitions:
                    self._partitions[partition].held = True

    def start(self) -> bool:
        """The program polls: begin with partitions that it assigned itself. False if none."""
        if self._type is not SubscriptionType.ASSIGNED or not self.resting():
            return False
        with self._lock:
            held = [state for state in self._partitions.values() if state.held]
            for state in held:
                state.held = False
            self._version += bool(held)
            return bool(held)

    def release(self, partitions: Iterable[TopicPartition]) -> None:
        """Start fetching partitions that the listener knows of; ignores unassigned ones."""
        with self._lock:
            self._version += 1
            for partition in partitions:
                if partition in self._partitions:
                    self._partitions[partition].held = False

    def assigned(self) -> set[TopicPartition]:
        with self._lock:
            return set(self._partitions)

    def is_assigned(self, partition: TopicPartition) -> bool:
        """Whether the partition is assigned."""
        return partition in self._partitions

    # --- positions, moved by the program -----------------------------------------------------

    def seek(
        self, partition: TopicPartition, offset: int, leader_epoch: int = NO_LEADER_EPOCH
    ) -> None:
        """Continue at `offset`; what was fetched before is dropped."""
        with self._lock:
            state = self._of(partition)
            state.move(self._next_epoch(), offset, leader_epoch)
            state.former_topic_id = None

    def request_reset(self, partitions: Iterable[TopicPartition], reset: OffsetReset) -> None:
        """Look up the beginning or the end, and continue there."""
        with self._lock:
            for state in [self._of(partition) for partition in partitions]:
                state.move(self._next_epoch(), None, NO_LEADER_EPOCH)
                state.reset = reset

    def pause(self, partitions: Iterable[TopicPartition]) -> None:
        """Return no records of these."""
        self._set_paused(partitions, True)

    def resume(self, partitions: Iterable[TopicPartition]) -> None:
        """Return records of these again."""
        self._set_paused(partitions, False)

    def _set_paused(self, partitions: Iterable[TopicPartition], paused: bool) -> None:
        with self._lock:
            self._version += 1
            for state in [self._of(partition) for partition in partitions]:
                state.paused = paused

    def paused(self) -> set[TopicPartition]:
        with self._lock:
            return {partition for partition, state in self._partitions.items() if state.paused}

    def advance(self, moves: Iterable[PositionMove]) -> None:
        """Set positions, all at once; those that were sought or reset meanwhile stay."""
        with self._lock:
            for at, next_offset, leader_epoch in moves:
                state = self._since(at)
                if state is not None and state.position is not None:
                    state.position, state.leader_epoch = next_offset, leader_epoch
                    state.former_topic_id = None
                    if at.epoch != state.epoch:  # the refetch began too early
                        state.refetch(self._next_epoch())

    def positions_before(self, moves: Iterable[PositionMove]) -> list[PositionMove]:
        """What to pass to `advance` to undo these moves."""
        with self._lock:
            return [
                PositionMove(at, state.position, state.leader_epoch)
                for at, _, _ in moves
                if (state := self._since(at)) is not None and state.position is not None
            ]

    def refetch(self, partitions: Iterable[PartitionEpoch]) -> None:
        """Fetch again from the positions; what was fetched or is in flight is stale."""
        with self._lock:
            for at in partitions:
                state = self._in_epoch(at)
                if state is not None:
                    self._refetch(state)

    def refetch_all(self) -> None:
        """Refetch every partition that was fetched ahead of its position."""
        with self._lock:
            for state in self._partitions.values():
                if state.position is not None and state.fetch_offset != state.position:
                    self._refetch(state)

    def position_in(self, at: PartitionEpoch) -> int | None:
        """The position, if the epoch is the partition's current one."""
        with self._lock:
            state = self._in_epoch(at)
            return None if state is None else state.position

    def position(self, partition: TopicPartition) -> int | None:
        """The next offset that the program gets; None while it is being looked up."""
        with self._lock:
            return self._of(partition).position

    def positions(self) -> dict[TopicPartition, OffsetAndMetadata]:
        """What to commit: the position of every partition that has one."""
        with self._lock:
            return {
                partition: OffsetAndMetadata(state.position, "", state.leader_epoch)
                for partition, state in self._partitions.items()
                if state.position is not None
            }

    def offsets(self, partition: TopicPartition) -> PartitionOffsets | None:
        """The partition's ends, as of the last fetch; None before the first."""
        with self._lock:
            return self._of(partition).offsets

    def lag(self, partition: TopicPartition) -> int | None:
        """How far the position is behind the end; None while one of them is unknown."""
        with self._lock:
            return self._of(partition).lag(self.read_committed)

    def lags(self) -> dict[TopicPartition, int]:
        """How far each position is behind the end, where both are known."""
        with self._lock:
            return {
                partition: lag
                for partition, state in self._partitions.items()
                if (lag := state.lag(self.read_committed)) is not None
            }

    def leads(self) -> dict[TopicPartition, int]:
        """How far each position is ahead of the log's start, where both are known."""
        with self._lock:
            return {
                partition: max(0, state.position - state.offsets.log_start_offset)
                for partition, state in self._partitions.items()
                if state.offsets is not None and state.position is not None
            }

    def facts(self) -> list[PartitionFacts]:
        """The state of every partition."""
        with self._lock:
            return [state.facts(partition) for partition, state in self._partitions.items()]

    # --- positions, found by the I/O thread --------------------------------------------------

    def to_initialize(self) -> list[PartitionEpoch]:
        """Partitions that have no position, and no reset under way either."""
        with self._lock:
            return [
                PartitionEpoch(partition, state.epoch)
                for partition, state in self._partitions.items()
                if state.position is None
                and state.reset is None
                and not (state.held or state.failed)
            ]

    def to_reset(self) -> dict[PartitionEpoch, OffsetReset]:
        """Partitions whose position has to be looked up by time."""
        with self._lock:
            return {
                PartitionEpoch(partition, state.epoch): state.reset
                for partition, state in self._partitions.items()
                if state.reset is not None and not state.failed
            }

    def start_at(self, at: PartitionEpoch, offset: int, leader_epoch: int) -> bool:
        """The position was found: begin there. False if the epoch is over."""
        with self._lock:
            state = self._in_epoch(at)
            if state is None or state.position is not None:
                return False
            state.move(self._next_epoch(), offset, leader_epoch)
            return True

    def start_by_default(self, at: PartitionEpoch) -> bool:
        """No position was found: reset as configured. False if that is an error."""
        with self._lock:
            state = self._in_epoch(at)
            if state is None:
                return True
            if self.default_reset is None:
                state.failed = True
                self._version += 1
                return False
            state.move(self._next_epoch(), None, NO_LEADER_EPOCH)
            state.reset = self.default_reset
            return True

    def update_topic_ids(self, topic_ids: Mapping[str, bytes]) -> list[PartitionEpoch]:
        """Void the positions in topics that have another id now: they were deleted and recreated.

        The offsets committed before are those of the old topic, so a partition that was read
        starts as if there were none. Returns the partitions that were voided; one without a
        position just looks its committed offset up again. Topics that are not named keep their
        ids: metadata may leave them out for a moment.
        """
        with self._lock:
            known = {partition.topic for partition in self._partitions}
            kept = {topic: id_ for topic, id_ in self._topic_ids.items() if topic in known}
            self._topic_ids = {**kept, **topic_ids}
            recreated = []
            for partition, state in self._partitions.items():
                topic_id = self._topic_ids.get(partition.topic)
                if topic_id == state.topic_id or topic_id is None:
                    continue
                if state.topic_id is not None:
                    was_read = state.position is not None
                    reset = state.reset
                    state.move(self._next_epoch(), None, NO_LEADER_EPOCH)
                    state.reset = reset
                    state.offsets = None
                    state.former_topic_id = state.topic_id
                    if was_read:
                        recreated.append(PartitionEpoch(partition, state.epoch))
                state.topic_id = topic_id
            return recreated

    def topic_ids_of(
        self, offsets: Mapping[TopicPartition, OffsetAndMetadata]
    ) -> dict[TopicPartition, bytes]:
        """The ids of the topics that offsets to be committed are in, where that is known.

        Until the program has got a record of a recreated topic, or has sought in it, the position
        is the one offset of that topic that it can know; any other is in the topic before.
        """
        found: dict[TopicPartition, bytes] = {}
        with self._lock:
            for partition, offset in offsets.items():
                state = self._partitions.get(partition)
                if state is None or state.topic_id is None:
                    continue
                found[partition] = state.topic_id
                if state.former_topic_id is not None and state.position != offset.offset:
                    found[partition] = state.former_topic_id
            return found

    # --- positions, validated by the I/O thread ----------------------------------------------

    def check_leaders(self, snapshot: ClusterMetadata) -> None:
        """Have the positions validated that were not checked with the present leader.

        Another leader, or another epoch of the same, may have lost records. A position without
        the epoch of the record before it (after a seek, say) cannot be checked.
        """
        with self._lock:
            for partition, state in self._partitions.items():
                known = None if state.position is None else snapshot.partition(*partition)
                if known is None or known.leader == NO_LEADER:
                    continue
                leader = (known.leader, known.leader_epoch)
                if state.leader != leader:
                    state.leader = leader
                    can_check = min(state.leader_epoch, known.leader_epoch) > NO_LEADER_EPOCH
                    if can_check:  # what was fetched from the former leader is dropped
                        state.refetch(self._next_epoch())
                        state.failed = False
                    elif state.is_validating:
                        self._version += 1
                    state.is_validating = can_check

    def to_validate(self) -> dict[PartitionEpoch, ValidationTarget]:
        """Positions to be checked with their leaders."""
        with self._lock:
            return {
                PartitionEpoch(partition, state.epoch): ValidationTarget(
                    state.position, state.leader_epoch, *state.leader
                )
                for partition, state in self._partitions.items()
                if state.is_validating
                and not state.failed
                and state.position is not None
                and state.leader is not None
            }

    def validated(self, at: PartitionEpoch) -> None:
        """The leader has the position: fetch it."""
        with self._lock:
            state = self._in_epoch(at)
            if state is not None:
                state.is_validating = False
                self._version += 1

    def truncated(self, at: PartitionEpoch, offset: int, leader_epoch: int) -> bool:
        """The leader's log differs from this offset on: continue there. False if it is over."""
        with self._lock:
            state = self._in_epoch(at)
            if state is None:
                return False
            leader = state.leader
            state.move(self._next_epoch(), offset, leader_epoch)
            state.leader = leader
            return True

    # --- fetching ----------------------------------------------------------------------------

    def fetchable(self) -> list[FetchTarget]:
        """The partitions to fetch, those served longest ago first."""
        with self._lock:
            return [
                FetchTarget(partition, state.epoch, state.fetch_offset)
                for partition, state in self._partitions.items()
                if state.is_fetchable()
            ]

    def fetched(
        self, at: PartitionEpoch, fetch_offset: int, next_offset: int, offsets: PartitionOffsets
    ) -> bool:
        """Continue fetching at `next_offset`. False if the answer is stale."""
        with self._lock:
            state = self._in_epoch(at)
            if state is None or state.fetch_offset != fetch_offset:
                return False
            state.offsets = offsets
            if next_offset != fetch_offset:
                state.fetch_offset = next_offset
                # To the end of the line: a broker that cannot serve all of a request serves its
                # first partitions.
                self._partitions[at.partition] = self._partitions.pop(at.partition)
            return True

    def fail(self, at: PartitionEpoch) -> bool:
        """An error is on its way to the caller: stop until then. False if the epoch is over."""
        with self._lock:
            state = self._in_epoch(at)
            if state is None:
                return False
            state.failed = True
            self._version += 1
            return True

    def retry_any(self, partitions: Iterable[PartitionEpoch]) -> bool:
        """The caller has the error: try again. False if all the epochs are over."""
        with self._lock:
            states = [state for at in partitions if (state := self._in_epoch(at)) is not None]
            for state in states:
                state.failed = False
            self._version += 1
            return bool(states)

    def is_current(self, at: PartitionEpoch) -> bool:
        """Whether the epoch is the partition's current one; if not, the data is stale."""
        with self._lock:
            return self._in_epoch(at) is not None

    def resting(self) -> frozenset[TopicPartition]:
        """Partitions whose records stay in the buffer for now: paused, or a listener is due."""
        with self._lock:
            if self._resting_version != self._version:
                self._resting = frozenset(
                    partition
                    for partition, state in self._partitions.items()
                    if state.paused or state.held
                )
                self._resting_version = self._version
            return self._resting

    # --- under the lock ----------------------------------------------------------------------

    def _of(self, partition: TopicPartition) -> PartitionState:
        state = self._partitions.get(partition)
        if state is None:
            raise IllegalStateError(
                f"partition {partition.partition} of {partition.topic!r} is not assigned to "
                "this consumer"
            )
        return state

    def _in_epoch(self, at: PartitionEpoch) -> PartitionState | None:
        state = self._partitions.get(at.partition)
        return state if state is not None and state.epoch == at.epoch else None

    def _since(self, at: PartitionEpoch) -> PartitionState | None:
        """The partition, unless it was assigned, sought or reset after the epoch."""
        state = self._partitions.get(at.partition)
        if state is None or not state.since_epoch <= at.epoch <= state.epoch:
            return None
        return state

    def _refetch(self, state: PartitionState) -> None:
        if state.position is not None:
            state.refetch(self._next_epoch())

    def _next_epoch(self) -> int:
        self._version += 1
        self._last_epoch += 1
        return self._last_epoch
