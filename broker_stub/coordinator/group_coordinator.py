"""The coordinator of every group this node is responsible for: all of them, on one node.

Finds the group of a request, keeps groups and offsets in `__consumer_offsets` through the node's
ordinary append path, and brings them back from there at start. Serving thread only, but for
`load`, which runs before serving begins.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import TYPE_CHECKING

from broker_stub import diagnostics
from broker_stub.coordinator.classic_group import ClassicGroup
from broker_stub.coordinator.errors import as_coordinator
from broker_stub.coordinator.group_log import (
    OFFSETS_TOPIC,
    KeyValue,
    group_record,
    offset_record,
    partition_for_group,
    read_entry,
)
from broker_stub.coordinator.group_state import GroupState, JoinTerms
from broker_stub.coordinator.member import Member
from broker_stub.coordinator.offsets import CommittedOffset, CommittedOffsets
from broker_stub.replica.batches import build_batch
from broker_stub.request import Parked
from pyclient.errors import (
    BrokerResponseError,
    GroupIdNotFoundError,
    GroupNotEmptyError,
    IllegalGenerationError,
    InvalidGroupIdError,
    InvalidSessionTimeoutError,
    NotCoordinatorError,
    UnknownMemberIdError,
)
from pyclient.protocol.messages.group_records import (
    GroupMetadataKey,
    GroupMetadataValue,
    MemberMetadata,
    OffsetCommitKey,
    OffsetCommitValue,
)
from pyclient.protocol.messages.join_group import (
    JoinGroupRequest,
    JoinGroupRequestProtocol,
    JoinGroupResponse,
)
from pyclient.types import TopicPartition

if TYPE_CHECKING:
    from broker_stub.node import Node


class GroupCoordinator:
    """Groups by id, and the offsets they committed."""

    def __init__(self, node: Node) -> None:
        self._node = node
        self._groups: dict[str, ClassicGroup] = {}
        self.offsets = CommittedOffsets()

    # -- membership --------------------------------------------------------------------------

    def join(
        self, request: JoinGroupRequest, terms: JoinTerms
    ) -> JoinGroupResponse | Parked[JoinGroupResponse]:
        """JoinGroup; a group comes into being with its first member.

        Raises:
            KafkaError: the request is refused.
        """
        self.check_group_id(request.group_id)
        config = self._node.config
        lowest = config["group.min.session.timeout.ms"]
        highest = config["group.max.session.timeout.ms"]
        if not lowest <= request.session_timeout_ms <= highest:
            raise InvalidSessionTimeoutError(
                f"session timeout {request.session_timeout_ms} ms: "
                f"{lowest} to {highest} ms are allowed"
            )
        group = self._groups.get(request.group_id)
        if group is None:
            if request.member_id:
                raise UnknownMemberIdError(f"there is no group {request.group_id}")
            self._partition_index(request.group_id)  # refuse before anything is remembered
            group = self._new(request.group_id)
        answer = group.join(request, terms)
        self._groups[request.group_id] = group
        return answer

    def group(self, group_id: str) -> ClassicGroup:
        """An existing group.

        Raises:
            UnknownMemberIdError: there is none, so whoever asks is no member of it.
        """
        self.check_group_id(group_id)
        group = self._groups.get(group_id)
        if group is None:
            raise UnknownMemberIdError(f"there is no group {group_id}")
        return group

    def check_group_id(self, group_id: str) -> None:
        """Refuse a group that nobody can be a member of.

        Raises:
            InvalidGroupIdError: the id is empty.
        """
        if not group_id:
            raise InvalidGroupIdError("the group id is empty")

    def _new(self, group_id: str) -> ClassicGroup:
        node = self._node
        delay_ms = node.config["group.initial.rebalance.delay.ms"]
        return ClassicGroup(group_id, node.timers, node.entropy, delay_ms, self._keep_group)

    # -- offsets -----------------------------------------------------------------------------

    def check_commit(
        self, group_id: str, member_id: str, instance_id: str | None, generation_id: int
    ) -> None:
        """Whether this member may commit offsets now.

        Without a group id, too: old programs keep their offsets there, and Kafka lets them.

        Raises:
            KafkaError: it may not.
        """
        group = self._groups.get(group_id)
        if group is not None:
            group.validate_commit(member_id, instance_id, generation_id)
        elif generation_id >= 0:
            raise IllegalGenerationError(f"there is no group {group_id}")

    def commit(self, group_id: str, offsets: Mapping[TopicPartition, CommittedOffset]) -> None:
        """Write offsets to the log, all or none, then remember them.

        Raises:
            BrokerResponseError: they can't be written, as `errors.as_coordinator` says it.
        """
        records = [offset_record(group_id, one, offset) for one, offset in offsets.items()]
        if records:
            self._append(group_id, records)
        for partition, offset in offsets.items():
            self.offsets.put(group_id, partition, offset)

    def forget_topic(self, topic: str) -> None:
        """A topic is gone: so are the offsets in it."""
        for group_id, partition in list(self.offsets.of_topic(topic)):
            self._append(group_id, [offset_record(group_id, partition, None)])
            self.offsets.remove(group_id, partition)

    # -- looking at groups, and deleting them ------------------------------------------------

    def group_ids(self) -> list[str]:
        """Every group: those that had members, and those that only keep offsets here."""
        return list(dict.fromkeys([*self._groups, *self.offsets.group_ids()]))

    def find(self, group_id: str) -> ClassicGroup:
        """A group as it is; one that only keeps offsets here is empty.

        Raises:
            GroupIdNotFoundError: there is none.
        """
        group = self._groups.get(group_id)
        if group is not None:
            return group
        if not self.offsets.partitions(group_id):
            raise GroupIdNotFoundError(f"there is no group {group_id}")
        return self._new(group_id)

    def delete(self, group_id: str) -> None:
        """Delete an empty group with its offsets.

        Raises:
            InvalidGroupIdError, GroupIdNotFoundError, GroupNotEmptyError: it can't be.
        """
        self.check_group_id(group_id)
        if self.find(group_id).state is not GroupState.EMPTY:
            raise GroupNotEmptyError(f"group {group_id} has members")
        tombstones = [
            offset_record(group_id, partition, None)
            for partition in self.offsets.partitions(group_id)
        ]
        self._append(group_id, [*tombstones, group_record(group_id, None)])
        self._groups.pop(group_id, None)
        self.offsets.remove_group(group_id)

    # -- the log -----------------------------------------------------------------------------

    def _append(self, group_id: str, records: Sequence[KeyValue]) -> None:
        replicas = self._node.replicas
        index = self._partition_index(group_id)
        try:
            partition = replicas.partition(OFFSETS_TOPIC, index)
            replicas.append(partition, build_batch(records, self._node.clock.now_ms()))
        except BrokerResponseError as error:
            diagnostics.warn("group %s can't be written down: %s", group_id, error)
            raise as_coordinator(error) from error

    def _partition_index(self, group_id: str) -> int:
        topic = self._node.image.topic(OFFSETS_TOPIC)
        if topic is None:
            raise NotCoordinatorError(f"ask FindCoordinator first: there is no {OFFSETS_TOPIC} yet")
        return partition_for_group(group_id, len(topic.partitions))

    def _keep_group(self, group: ClassicGroup) -> None:
        value = GroupMetadataValue(
            protocol_type=group.protocol_type or "",
            generation=group.generation_id,
            protocol=group.protocol_name,
            leader=group.roster.leader_id,
            current_state_timestamp=self._node.clock.now_ms(),
            members=[
                MemberMetadata(
                    member_id=one.member_id,
                    group_instance_id=one.group_instance_id,
                    client_id=one.client_id,
                    client_host=one.client_host,
                    rebalance_timeout=one.rebalance_timeout_ms,
                    session_timeout=one.session_timeout_ms,
                    subscription=one.metadata(group.protocol_name),
                    assignment=one.assignment,
                )
                for one in group.roster
            ],
        )
        self._append(group.group_id, [group_record(group.group_id, value)])

    def load(self) -> None:
        """Bring groups and offsets back from the log."""
        topic = self._node.image.topic(OFFSETS_TOPIC)
        latest: dict[str, GroupMetadataValue | None] = {}
        for index in range(0 if topic is None else len(topic.partitions)):
            partition = self._node.replicas.partition(OFFSETS_TOPIC, index)
            for record in self._node.replicas.read_all(partition):
                self._replay(record.key, record.value, latest)
        for group_id, value in latest.items():
            if value is not None:
                self._restore(group_id, value)

    def _replay(
        self,
        key: bytes | None,
        value: bytes | None,
        latest: dict[str, GroupMetadataValue | None],
    ) -> None:
        entry = read_entry(key, value)
        if entry is None:
            return
        entry_key, entry_value = entry
        if isinstance(entry_key, GroupMetadataKey):
            assert entry_value is None or isinstance(entry_value, GroupMetadataValue)
            latest[entry_key.group] = entry_value
            return
        assert isinstance(entry_key, OffsetCommitKey)
        partition = TopicPartition(entry_key.topic, entry_key.partition)
        if entry_value is None:
            self.offsets.remove(entry_key.group, partition)
        else:
            assert isinstance(entry_value, OffsetCommitValue)
            offset = CommittedOffset(
                entry_value.offset,
                entry_value.leader_epoch,
                entry_value.metadata,
                entry_value.commit_timestamp,
            )
            self.offsets.put(entry_key.group, partition, offset)

    def _restore(self, group_id: str, value: GroupMetadataValue) -> None:
        group = self._groups[group_id] = self._new(group_id)
        group.generation_id = value.generation
        group.protocol_type = value.protocol_type or None
        group.protocol_name = value.protocol
        group.restore(
            (_restored(one, value.protocol or "") for one in value.members),
            GroupState.STABLE if value.members else GroupState.EMPTY,
        )
        group.roster.leader_id = value.leader


def _restored(metadata: MemberMetadata, protocol_name: str) -> Member:
    member = Member(
        metadata.member_id,
        metadata.group_instance_id,
        metadata.client_id,
        metadata.client_host,
        metadata.session_timeout,
        metadata.rebalance_timeout,
        [JoinGroupRequestProtocol(name=protocol_name, metadata=metadata.subscription)],
    )
    member.assignment = metadata.assignment
    return member
