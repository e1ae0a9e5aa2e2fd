"""The coordinator of every group: on one node, all of them.

Finds the group of a request, writes groups and offsets to `__consumer_offsets`, and reads them back
at start. Serving thread only, except `load`, which runs before serving begins.
"""

from __future__ import annotations

from collections.abc import Collection, Sequence
from functools import partial
from typing import TYPE_CHECKING, Final

from broker_stub import diagnostics
from broker_stub.coordinator.errors import as_coordinator
from broker_stub.coordinator.groups.classic_group import ClassicGroup
from broker_stub.coordinator.groups.commit_batch import CommitBatch, Done, Offsets
from broker_stub.coordinator.groups.group_loading import GroupLoader
from broker_stub.coordinator.groups.group_log import (
    OFFSETS_TOPIC,
    KeyValue,
    group_record,
    group_tombstone,
    offset_record,
    restore_group,
)
from broker_stub.coordinator.groups.group_state import GroupSettings, GroupState, JoinTerms
from broker_stub.coordinator.groups.offset_retention import expired_partitions
from broker_stub.coordinator.groups.offsets import CommittedOffsets
from broker_stub.coordinator.groups.pending_offsets import PendingOffsets
from broker_stub.coordinator.groups.subscriptions import CONSUMER
from broker_stub.coordinator.placement import partition_for
from broker_stub.coordinator.transactions.transaction import ProducerIdAndEpoch
from broker_stub.log.internal_batches import build_batch
from broker_stub.metadata.image import TopicImage
from broker_stub.request import Parked
from pyclient.error_codes import code_of
from pyclient.errors import (
    BrokerResponseError,
    GroupIdNotFoundError,
    GroupNotEmptyError,
    IllegalGenerationError,
    InvalidGroupIdError,
    InvalidRequestError,
    InvalidSessionTimeoutError,
    KafkaError,
    NotCoordinatorError,
    UnknownMemberIdError,
)
from pyclient.protocol.messages.join_group import JoinGroupRequest, JoinGroupResponse
from pyclient.types import TopicPartition

if TYPE_CHECKING:
    from broker_stub.node import Node

_MS_PER_MINUTE: Final = 60_000
_STRING_MAX: Final = 2**15 - 1  # of a record, in bytes
_MEMBER_NAME_MAX: Final = _STRING_MAX - len("-00000000-0000-0000-0000-000000000000")


class GroupCoordinator:
    """Groups by id, and the offsets they committed.

    Attributes:
        unreadable_records: how many records of `__consumer_offsets` the last start skipped.
    """

    def __init__(self, node: Node) -> None:
        self._node = node
        self._groups: dict[str, ClassicGroup] = {}
        self.offsets = CommittedOffsets()
        self.pending = PendingOffsets()
        self._commits = CommitBatch(node, self._on_committed)
        self.unreadable_records = 0
        config = node.config
        self._settings = GroupSettings(
            initial_rebalance_delay_ms=config["group.initial.rebalance.delay.ms"],
            max_size=config["group.max.size"],
        )
        self._retention_ms: int = config["offsets.retention.minutes"] * _MS_PER_MINUTE
        self._schedule_retention()

    # --- membership --------------------------------------------------------------------------

    def join(
        self, request: JoinGroupRequest, terms: JoinTerms
    ) -> JoinGroupResponse | Parked[JoinGroupResponse]:
        """JoinGroup. The first member creates the group.

        Raises:
            KafkaError: the join is refused.
        """
        self.check_group_id(request.group_id)
        config = self._node.config
        self._check_member_ids(request, terms)
        lowest = config["group.min.session.timeout.ms"]
        highest = config["group.max.session.timeout.ms"]
        if not lowest <= request.session_timeout_ms <= highest:
            raise InvalidSessionTimeoutError(
                f"session timeout {request.session_timeout_ms} ms is not within "
                f"{lowest} ms and {highest} ms"
            )
        group = self._groups.get(request.group_id)
        if group is not None:
            return group.join(request, terms)
        self.log_topic()
        if request.member_id:
            raise UnknownMemberIdError(f"there is no group {request.group_id}")
        return self._join_new_group(request, terms)

    def _join_new_group(
        self, request: JoinGroupRequest, terms: JoinTerms
    ) -> JoinGroupResponse | Parked[JoinGroupResponse]:
        """Create a group with its first member. If the log or the group refuses, there is none."""
        group = self._new(request.group_id)
        record = group_record(group)  # without the member: its generation is not complete
        answer = group.join(request, terms)
        try:
            self._append(request.group_id, [record])
        except KafkaError as error:
            group.die(code_of(error))
            raise
        self._groups[request.group_id] = group
        return answer

    def group(self, group_id: str) -> ClassicGroup:
        """The group that a member says it is in.

        Raises:
            InvalidGroupIdError: the id is empty.
            NotCoordinatorError: there are no groups at all.
            UnknownMemberIdError: there is no such group.
        """
        self.check_group_id(group_id)
        group = self._groups.get(group_id)
        if group is None:
            self.log_topic()
            raise UnknownMemberIdError(f"there is no group {group_id}")
        return group

    def check_group_id(self, group_id: str) -> None:
        """Refuse an id that no group with members can have.

        Raises:
            InvalidGroupIdError: the id is empty.
        """
        if not group_id:
            raise InvalidGroupIdError("the group id is empty")

    def _check_member_ids(self, request: JoinGroupRequest, terms: JoinTerms) -> None:
        # One member that the log cannot take would keep its whole group from becoming stable.
        longest = max(terms.client_id, request.group_instance_id or "", key=len)
        if len(longest.encode("utf-8", "surrogatepass")) > _MEMBER_NAME_MAX:
            raise InvalidRequestError(
                f"a client id or instance id has at most {_MEMBER_NAME_MAX} bytes"
            )

    def _new(self, group_id: str) -> ClassicGroup:
        node = self._node
        return ClassicGroup(
            group_id,
            timers=node.timers,
            clock=node.clock,
            entropy=node.entropy,
            settings=self._settings,
            on_change=self._persist,
        )

    # --- offsets -----------------------------------------------------------------------------

    def check_commit(
        self,
        group_id: str,
        member_id: str,
        instance_id: str | None,
        generation_id: int,
        *,
        names_missing_group: bool,
        in_transaction: bool = False,
    ) -> None:
        """Check that a member may commit offsets now. The group id may be empty.

        Raises:
            NotCoordinatorError: there are no groups at all.
            GroupIdNotFoundError: there is no group, and the client understands this error.
            IllegalGenerationError: there is no group, and it does not.
            KafkaError: the member may not.
        """
        group = self._groups.get(group_id)
        if group is not None:
            if in_transaction:
                group.validate_transactional_commit(member_id, instance_id, generation_id)
            else:
                group.validate_commit(member_id, instance_id, generation_id)
            return
        self.log_topic()
        if generation_id >= 0:
            missing = GroupIdNotFoundError if names_missing_group else IllegalGenerationError
            raise missing(f"there is no group {group_id}")

    def commit(self, group_id: str, offsets: Offsets, done: Done) -> None:
        """Write offsets to the log, all or none, then make them visible.

        `done` gets None, or the error if the log refused them, translated by
        `errors.as_coordinator`. It may be called before this returns.
        """
        try:
            index = partition_for(group_id, len(self.log_topic().partitions))
        except NotCoordinatorError as error:
            done(error)
            return
        self._commits.add(index, group_id, offsets, done)
        if group_id not in self._groups:
            # The commit creates the group, which the next commit of the turn has to find.
            self._commits.write()

    def _on_committed(self, group_id: str, offsets: Offsets) -> None:
        for partition, offset in offsets.items():
            self.offsets.put(group_id, partition, offset)
            if self.pending:
                self.pending.supersede(group_id, partition)
        self._ensure(group_id)

    def _ensure(self, group_id: str) -> None:
        """A group that only commits offsets exists from its first commit on."""
        if group_id not in self._groups:
            self._groups[group_id] = self._new(group_id)

    def offsets_partition(self, group_id: str) -> TopicPartition:
        """The partition of `__consumer_offsets` that a transaction writes a group's offsets to.

        Raises:
            NotCoordinatorError: there are no groups at all.
        """
        index = partition_for(group_id, len(self.log_topic().partitions))
        return TopicPartition(OFFSETS_TOPIC, index)

    def commit_in_transaction(
        self, group_id: str, producer: ProducerIdAndEpoch, offsets: Offsets, done: Done
    ) -> None:
        """Write offsets to the log that become visible when the producer's transaction commits.

        The caller has verified that the transaction has the partition that they are written to.
        """
        try:
            index = self.offsets_partition(group_id).partition
        except NotCoordinatorError as error:
            done(error)
            return
        on_written = partial(self._on_pending, index, producer.producer_id)
        self._commits.write_transactional(index, group_id, producer, offsets, done, on_written)

    def _on_pending(self, index: int, producer_id: int, group_id: str, offsets: Offsets) -> None:
        for partition, offset in offsets.items():
            self.pending.put(index, producer_id, group_id, partition, offset)
        self._ensure(group_id)

    def end_transaction(self, index: int, producer_id: int, *, committed: bool) -> None:
        """A marker was written to a partition of the log: its pending offsets are decided."""
        for group_id, offsets in self.pending.end(index, producer_id, committed=committed):
            for partition, offset in offsets.items():
                self.offsets.put(group_id, partition, offset)

    def find_for_offset_delete(self, group_id: str) -> ClassicGroup:
        """The group, if offsets of it may be deleted.

        Raises:
            InvalidGroupIdError, GroupIdNotFoundError: there is no such group.
            GroupNotEmptyError: it has members whose subscriptions a broker cannot know.
        """
        self.check_group_id(group_id)
        group = self.find(group_id)
        if group.state is not GroupState.EMPTY and group.protocol_type != CONSUMER:
            raise GroupNotEmptyError(f"group {group_id} has members")
        return group

    def delete_offsets(self, group_id: str, partitions: Collection[TopicPartition]) -> None:
        """Delete offsets; partitions without one are ignored.

        Raises:
            BrokerResponseError: the log refused it.
        """
        known = [
            one
            for one in partitions
            if self.offsets.get(group_id, one) is not None or self.pending.has(group_id, one)
        ]
        if known:
            self._append(group_id, [offset_record(group_id, one, None) for one in known])
        for partition in known:
            self.offsets.remove(group_id, partition)
            self.pending.remove(group_id, partition)

    def forget_topic(self, topic: str) -> None:
        """A topic was deleted: delete the offsets in it."""
        if topic == OFFSETS_TOPIC:
            self._unload()
            return
        doomed = {
            group_id: set(partitions) for group_id, partitions in self.offsets.of_topic(topic)
        }
        for group_id in self.pending.group_ids():
            pending = {one for one in self.pending.partitions(group_id) if one.topic == topic}
            doomed.setdefault(group_id, set()).update(pending)
        for group_id, found in doomed.items():
            self.delete_offsets(group_id, sorted(found))

    # --- retention ---------------------------------------------------------------------------

    def _schedule_retention(self) -> None:
        interval_ms = self._node.config["offsets.retention.check.interval.ms"]
        self._node.timers.after(interval_ms, self._expire_offsets)

    def _expire_offsets(self) -> None:
        """Delete expired offsets, and groups that have neither members nor offsets."""
        self._schedule_retention()
        now_ms = self._node.clock.now_ms()
        for group_id, group in list(self._groups.items()):
            offsets = self.offsets.of_group(group_id)
            expired = [
                one
                for one in expired_partitions(group, offsets, now_ms, self._retention_ms)
                if not self.pending.has(group_id, one)
            ]
            is_unused = (
                group.state is GroupState.EMPTY
                and not group.has_pending_members
                and not self.pending.has_group(group_id)
                and len(expired) == len(offsets)
            )
            try:
                if is_unused:
                    self._delete(group)
                else:
                    self.delete_offsets(group_id, expired)
            except KafkaError as error:
                diagnostics.warn("expired offsets of group %s stay: %s", group_id, error)

    # --- looking at groups, and deleting them ------------------------------------------------

    def groups(self) -> list[ClassicGroup]:
        """All groups, also those that only have offsets."""
        return list(self._groups.values())

    def find(self, group_id: str) -> ClassicGroup:
        """A group.

        Raises:
            NotCoordinatorError: there are no groups at all.
            GroupIdNotFoundError: there is none with this id.
        """
        group = self._groups.get(group_id)
        if group is None:
            self.log_topic()
            raise GroupIdNotFoundError(f"Group {group_id} not found.")  # Apache Kafka's words
        return group

    def delete(self, group_id: str) -> None:
        """Delete an empty group and its offsets.

        Raises:
            GroupIdNotFoundError, GroupNotEmptyError: it cannot be deleted.
            BrokerResponseError: the log refused it.
        """
        group = self.find(group_id)
        if group.state is not GroupState.EMPTY:
            raise GroupNotEmptyError(f"group {group_id} has members")
        self._delete(group)

    def _delete(self, group: ClassicGroup) -> None:
        group_id = group.group_id
        pending = self.pending.partitions(group_id)
        partitions = sorted(pending.union(self.offsets.partitions(group_id)))
        tombstones = [offset_record(group_id, partition, None) for partition in partitions]
        self._append(group_id, [*tombstones, group_tombstone(group_id)])
        self.offsets.remove_group(group_id)
        for partition in pending:
            self.pending.remove(group_id, partition)
        del self._groups[group_id]
        group.die(NotCoordinatorError.code)

    # --- the log -----------------------------------------------------------------------------

    def _append(self, group_id: str, records: Sequence[KeyValue]) -> None:
        replicas = self._node.replicas
        index = partition_for(group_id, len(self.log_topic().partitions))
        try:
            partition = replicas.partition(OFFSETS_TOPIC, index)
            replicas.append(partition, build_batch(records, self._node.clock.now_ms()))
        except BrokerResponseError as error:
            diagnostics.warn("cannot write group %s to %s: %s", group_id, OFFSETS_TOPIC, error)
            raise as_coordinator(error) from error

    def log_topic(self) -> TopicImage:
        """The topic of groups and offsets; it may not have been created yet.

        Raises:
            NotCoordinatorError: it does not exist.
        """
        topic = self._node.image.topic(OFFSETS_TOPIC)
        if topic is None:
            raise NotCoordinatorError(f"{OFFSETS_TOPIC} does not exist: send FindCoordinator first")
        return topic

    def _persist(self, group: ClassicGroup) -> None:
        self._append(group.group_id, [group_record(group)])

    def load(self) -> None:
        """Read groups and offsets back from the log."""
        topic = self._node.image.topic(OFFSETS_TOPIC)
        loader = GroupLoader(self.offsets, self.pending)
        for index in range(0 if topic is None else len(topic.partitions)):
            loader.replay(self._node.replicas.partition(OFFSETS_TOPIC, index).log)
        loader.finish()
        self.unreadable_records = loader.unreadable
        for group_id, value in loader.groups.items():
            group = self._groups[group_id] = self._new(group_id)
            restore_group(group, value)
        for group_id in (*self.offsets.group_ids(), *self.pending.group_ids()):
            self._ensure(group_id)

    def _unload(self) -> None:
        """The log is gone, and with it all groups and offsets."""
        groups = self.groups()
        self._groups.clear()
        self.offsets.clear()
        self.pending.clear()
        for group in groups:
            group.die(NotCoordinatorError.code)
