"""One consumer of a consumer history: a program that does all that a program may do with one.

It polls, iterates and reads Arrow tables, commits, seeks, pauses, stalls, crashes, closes and
comes back; it is woken up and interrupted, and its listener and deserializer are slow or raise.
It reports what it gets to its `Reader`.
"""

from __future__ import annotations

from collections.abc import Callable, Collection
from typing import TYPE_CHECKING, Any, Final

from pyclient import KafkaConsumer
from pyclient.consumer.rebalance_listener import ConsumerRebalanceListener
from pyclient.errors import (
    CommitFailedError,
    FencedInstanceIdError,
    KafkaError,
    KafkaTimeoutError,
    NoBrokersAvailable,
    RebalanceInProgressError,
    UnknownTopicOrPartitionError,
    WakeupError,
)
from pyclient.types import OffsetAndMetadata, TopicPartition

if TYPE_CHECKING:
    from tests.simulation.consumer_history import ConsumerWorld

# Beside its timeout a call may take: a loop that is held up, threads that hesitate.
MARGIN_MS: Final = 1_000
API_TIMEOUT_MS: Final = 8_000
CLOSE_TIMEOUT_MS: Final = 3_000
COMMIT_ERRORS: Final = (
    CommitFailedError,
    FencedInstanceIdError,
    KafkaTimeoutError,
    RebalanceInProgressError,
    UnknownTopicOrPartitionError,
)


class PoisonError(Exception):
    """What the deserializer raises now and then."""


class GroupMember(ConsumerRebalanceListener):
    """The program of one consumer, over its crashes."""

    def __init__(self, history: ConsumerWorld, name: str, options: dict[str, Any]) -> None:
        """A `group_id` of None makes a consumer that reads alone."""
        self.name = name
        self.consumer: KafkaConsumer | None = None
        self._history = history
        self._world = history.world
        self._options = options
        self._is_member = options["group_id"] is not None
        checker = history.checker
        self.reader = checker.member(name) if self._is_member else checker.reader_alone(name)
        self._chance = self._world.chance(f"member {name}")
        self._in_listener_ms = 0.0
        self._is_fenced = False
        self._crash: Callable[[], None] = lambda: None

    # --- the program -------------------------------------------------------------------------

    def run(self) -> None:
        """Use one consumer after another until it is calm, then poll until all is read."""
        self._rest(2_000)
        while not self._history.is_over:
            self._start()
            try:
                self._use()
            finally:
                self._end()
            if not self._history.is_calm:
                self._rest(5_000)

    def _rest(self, most_ms: float) -> None:
        try:
            self._world.sleep(self._chance.uniform(0, most_ms))
        except KeyboardInterrupt:
            self._world.note("is interrupted")

    def _start(self) -> None:
        while True:
            client = self._world.client()
            self._crash = client["environment"].end
            try:
                self.consumer = KafkaConsumer(
                    **client, **self._options, value_deserializer=self._deserialize
                )
                break
            except NoBrokersAvailable:
                self._rest(200)
            except KeyboardInterrupt:
                self._crash()
        if self._is_member or self._chance.happens(0.5):
            self._subscribe()
        else:
            partitions = self._history.records.partitions()
            self.consumer.assign(partitions)
            self.reader.assigned(partitions)
            self.reader.is_fixed = True

    def _subscribe(self) -> None:
        topics = self._history.topics
        if self._options["group_id"] and self._chance.happens(0.2):
            self._in_use.subscribe(pattern="|".join(topics), listener=self)
        else:
            self._in_use.subscribe(topics, listener=self)

    def _use(self) -> None:
        self._is_fenced = False
        chance, history = self._chance, self._history
        actions = self._actions()
        while not history.is_over:
            history.checker.raise_violation()
            if history.is_calm:
                action: Callable[[], object] = self._poll_calmly
            else:
                action = chance.choice(actions)
            try:
                if action() == "end" or self._is_fenced:
                    return
            except KeyboardInterrupt:
                self._world.note("is interrupted")
            except WakeupError:
                self._world.note("is woken")
            self._sample()

    def _actions(self) -> list[Callable[[], object]]:
        weights: list[tuple[int, Callable[[], object]]] = [
            (12, self._poll),
            (6, self._iterate),
            (4, self._poll_arrow),
            (2, self._pause),
            (2, self._resume),
            (4, self._sleep),
        ]
        if self._is_member:
            weights += [
                (6, self._commit),
                (3, self._commit_async),
                (2, self._seek_back),
                (1, self._seek_forward),
                (1, self._look_up),
                (1, self._subscribe_again),
                (1, self._rebalance),
                (1, self._stall),
                (1, self._stop),
                (1, self._die),
            ]
        return [action for weight, action in weights for _ in range(weight)]

    def _end(self) -> None:
        """Close the consumer and end the process, after any failure."""
        consumer, self.consumer = self.consumer, None
        try:
            if consumer is not None:
                began_ms = self._begin()
                consumer.close(timeout_ms=CLOSE_TIMEOUT_MS)
                # The I/O thread has at least a second to end.
                self._check_time("close()", began_ms, CLOSE_TIMEOUT_MS + 1_000)
        except KeyboardInterrupt:
            self._world.note("is interrupted")
        finally:
            self._crash()
            self.reader.ended()

    # --- what it does with its consumer ------------------------------------------------------

    @property
    def _in_use(self) -> KafkaConsumer:
        assert self.consumer is not None
        return self.consumer

    def _poll(self) -> None:
        timeout_ms = self._chance.choice((0, 50, 500, 2_000))
        self._poll_for(timeout_ms, self._chance.choice((None, None, 1, 3)))

    def _poll_calmly(self) -> None:
        consumer = self._in_use
        consumer.resume(*sorted(consumer.paused()))
        if self._history.heir == consumer.config["client.id"]:
            self._history.heir = None
            self._world.note("makes its group rebalance")
            consumer.enforce_rebalance("the leader was away")
        self._poll_for(500, None)

    def _poll_for(self, timeout_ms: float, max_records: int | None) -> None:
        consumer = self._in_use
        paused = consumer.paused()
        began_ms = self._begin()
        found = {}
        try:
            found = consumer.poll(timeout_ms, max_records)
        except PoisonError:
            self._world.note("meets poison")
        except KafkaError as error:
            self._check_read_error(error)
        paused &= consumer.paused()  # a rebalance forgets
        assert not paused & found.keys(), f"{self.name} got records of paused partitions"
        for partition, records in found.items():
            self.reader.returned((partition, one.offset, one.value) for one in records)
        self._check_time(f"poll({timeout_ms})", began_ms, timeout_ms)

    def _iterate(self) -> None:
        consumer = self._in_use
        began_ms = self._begin()
        left = 1 + self._chance.below(8)
        try:
            for record in consumer:
                partition = TopicPartition(record.topic, record.partition)
                self.reader.returned([(partition, record.offset, record.value)])
                left -= 1
                if not left:
                    break
                if self._is_member and self._chance.happens(0.1):
                    self._commit()
        except PoisonError:
            self._world.note("meets poison")
        except KafkaError as error:
            self._check_read_error(error)
        if left == 8:
            self._check_time("iteration", began_ms, self._options["consumer_timeout_ms"])

    def _poll_arrow(self) -> None:
        timeout_ms = self._chance.choice((0, 50, 500))
        began_ms = self._begin()
        try:
            table = self._in_use.poll_arrow(timeout_ms)
        except KafkaError as error:
            self._check_read_error(error)
        else:
            columns = (
                table[name].to_pylist() for name in ("topic", "partition", "offset", "value")
            )
            self.reader.returned(
                (TopicPartition(topic, partition), offset, value)
                for topic, partition, offset, value in zip(*columns, strict=True)
            )
        self._check_time(f"poll_arrow({timeout_ms})", began_ms, timeout_ms)

    def _check_read_error(self, error: KafkaError) -> None:
        if isinstance(error, WakeupError):
            raise error
        if isinstance(error, FencedInstanceIdError):
            # By a late request of the process that crashed before: only a restart helps.
            self._is_fenced = True
            return
        assert isinstance(error.__cause__, PoisonError), f"{self.name} may not fail: {error!r}"
        self._world.note("meets poison")

    def _commit(self) -> None:
        try:
            began_ms = self._begin()
            timeout_ms = self._chance.choice((100, 1_000, API_TIMEOUT_MS))
            self._in_use.commit(self._offsets(), timeout_ms=timeout_ms)
        except KafkaError as error:
            if isinstance(error, WakeupError):
                raise
            self._world.note("could not commit: %r", error)
            if not (error.retriable or isinstance(error, COMMIT_ERRORS)):
                raise AssertionError(f"{self.name} may not fail to commit") from error
        self._check_time(f"commit({timeout_ms})", began_ms, timeout_ms)

    def _commit_async(self) -> None:
        self._in_use.commit_async(self._offsets())

    def _offsets(self) -> dict[TopicPartition, OffsetAndMetadata] | None:
        """What to commit: the positions, or some of what was returned."""
        last = {
            partition: self.reader.last_offsets[life]
            for partition, life in self.reader.last_lives.items()
            if partition in self.reader.owned
        }
        if self._chance.happens(0.6) or not last:
            return None
        return {
            partition: OffsetAndMetadata(offset + 1, "", -1) for partition, offset in last.items()
        }

    def _seek_back(self) -> None:
        """Go back to any earlier record, or to the beginning."""
        partition = self._any_partition()
        if partition is None:
            return
        if self._chance.happens(0.3):
            self._in_use.seek_to_beginning(partition)
        else:
            life = self.reader.last_lives.get(partition)
            if life is None or life != self._history.records.life_of(partition):
                return  # in a topic that was created again, an old offset may be ahead
            offset = self._chance.below(self.reader.last_offsets[life] + 1)
            self._in_use.seek(partition, offset)
        self._world.note("seeks back in %s", partition)
        self.reader.begin(partition)

    def _seek_forward(self) -> None:
        """Skip some records on purpose: no member gets them."""
        partition = self._any_partition()
        life = None if partition is None else self.reader.last_lives.get(partition)
        if partition is None or life is None or life != self._history.records.life_of(partition):
            return
        log = self._history.records.logs[life]
        last = self.reader.last_offsets[life]
        ahead = [offset for offset in log.data if offset > last]
        if ahead:
            to = ahead[self._chance.below(len(ahead))]
            self._in_use.seek(partition, to)
            self._world.note("seeks forward to %s@%d", partition, to)
            self.reader.begin(partition)
            for offset in [one for one in log.unread if one < to]:
                del log.unread[offset]

    def _look_up(self) -> None:
        partition = self._any_partition()
        if partition is None:
            return
        try:
            self._in_use.position(partition, timeout_ms=500)
            self._in_use.committed(partition, timeout_ms=500)
        except KafkaError as error:
            if isinstance(error, WakeupError) or not error.retriable:
                raise
            self._world.note("could not look up: %r", error)

    def _subscribe_again(self) -> None:
        """Leave the group and come back with the same consumer."""
        if not self._chance.happens(0.3):
            return
        consumer = self._in_use
        try:
            self._begin()
            consumer.unsubscribe()
        finally:
            # An interrupt ends the call, but not the subscription.
            if consumer.subscription() is None:
                self.reader.ended()
                self._subscribe()

    def _rebalance(self) -> None:
        if self._chance.happens(0.3):
            self._in_use.enforce_rebalance("the program wants it")

    def _pause(self) -> None:
        partition = self._any_partition()
        if partition is not None:
            self._in_use.pause(partition)

    def _resume(self) -> None:
        self._in_use.resume(*sorted(self._in_use.paused()))

    def _any_partition(self) -> TopicPartition | None:
        partitions = sorted(self._in_use.assignment())
        return self._chance.choice(partitions) if partitions else None

    def _sleep(self) -> None:
        self._world.sleep(self._chance.choice((1, 100, 1_000)))

    def _stall(self) -> None:
        """Be late for the next poll."""
        if self._chance.happens(0.3):
            self._world.sleep(self._options["max_poll_interval_ms"] * 1.2)

    def _stop(self) -> str | None:
        return "end" if self._chance.happens(0.3) else None

    def _die(self) -> str | None:
        """End as a killed process does: the broker learns of it by its sockets alone."""
        if not self._chance.happens(0.3):
            return None
        self._world.note("crashes")
        self._crash()
        self.consumer = None
        return "end"

    # --- what is called back -----------------------------------------------------------------

    def _deserialize(self, value: bytes | None) -> bytes | None:
        if not self._history.is_calm:
            if self._chance.happens(self._history.poison):
                raise PoisonError
            if self._chance.happens(self._history.poison):
                raise KeyboardInterrupt
        return value

    def on_partitions_revoked(self, revoked: Collection[TopicPartition]) -> None:
        self._world.note("gives up %s", _names(revoked))
        self._sample()
        self._in_a_listener(lambda: self.reader.gone(revoked))

    def on_partitions_assigned(self, assigned: Collection[TopicPartition]) -> None:
        self._world.note("takes %s", _names(assigned))
        self.reader.assigned(assigned)
        self._sample(is_assigned=True)
        self._in_a_listener(lambda: None)

    def on_partitions_lost(self, lost: Collection[TopicPartition]) -> None:
        self._world.note("loses %s", _names(lost))
        self.reader.gone(lost)

    def _in_a_listener(self, at_last: Callable[[], None]) -> None:
        began_ms = self._now_ms()
        try:
            if not self._history.is_calm and self._is_member and self.consumer is not None:
                if self._chance.happens(0.2):
                    self._world.sleep(self._chance.uniform(0, 1_500))
                if self._chance.happens(0.1):
                    self._commit()
        except WakeupError:
            self._world.note("is woken in its listener")
        finally:
            at_last()
            self._in_listener_ms += self._now_ms() - began_ms

    # --- checks ------------------------------------------------------------------------------

    def _sample(self, is_assigned: bool = False) -> None:
        """Report the generation and the assigned partitions."""
        consumer = self.consumer
        if self._is_member and consumer is not None:
            metadata, partitions = consumer.group_metadata(), consumer.assignment()
            self._history.checker.owns(self.name, metadata, partitions, is_assigned=is_assigned)

    def _now_ms(self) -> float:
        return self._world.clock.monotonic_ms()

    def _begin(self) -> float:
        self._in_listener_ms = 0.0
        return self._now_ms()

    def _check_time(self, call: str, began_ms: float, timeout_ms: float) -> None:
        took_ms = self._now_ms() - began_ms - self._in_listener_ms
        most_ms = timeout_ms + MARGIN_MS + 6 * self._world.conditions.pause_ms
        assert took_ms <= most_ms, f"{call} of {self.name} took {took_ms:.0f} ms"


def _names(partitions: Collection[TopicPartition]) -> str:
    return ", ".join(f"{one.topic}-{one.partition}" for one in sorted(partitions)) or "nothing"
