"""Groups: their states, members, offsets and lag."""

from enum import StrEnum
from typing import Any, ClassVar, NamedTuple

from pyclient.admin.types.result import AdminResult
from pyclient.errors import BrokerResponseError
from pyclient.types import TopicPartition


class GroupState(StrEnum):
    """The state of a group."""

    UNKNOWN = "Unknown"
    PREPARING_REBALANCE = "PreparingRebalance"
    COMPLETING_REBALANCE = "CompletingRebalance"
    STABLE = "Stable"
    DEAD = "Dead"
    EMPTY = "Empty"
    ASSIGNING = "Assigning"
    RECONCILING = "Reconciling"


class GroupType(StrEnum):
    """The protocol of a group."""

    UNKNOWN = "Unknown"
    CLASSIC = "classic"
    CONSUMER = "consumer"
    SHARE = "share"


class GroupListing(AdminResult):
    """A group in a list; state and type are empty where the broker does not tell them."""

    group_id: str
    protocol_type: str
    group_state: str
    group_type: str


class MemberSubscription(AdminResult):
    """The topics that a member wants, and what its assignor told the others."""

    topics: list[str]
    user_data: bytes | None

    @property
    def subscription(self) -> list[str]:
        """The topics, as kafka-python 2 calls them."""
        return self.topics


class AssignedTopic(AdminResult):
    """The partitions of one topic that a member reads."""

    topic: str
    partitions: list[int]


class MemberAssignment(AdminResult):
    """The partitions that a member reads."""

    PARTS: ClassVar = {"assigned_partitions": AssignedTopic}

    assigned_partitions: list[AssignedTopic]
    user_data: bytes | None

    @property
    def assignment(self) -> list[tuple[str, list[int]]]:
        """The partitions by topic, in kafka-python 2's form."""
        return [(one.topic, one.partitions) for one in self.assigned_partitions]

    def partitions(self) -> list[TopicPartition]:
        """The partitions one by one."""
        return [TopicPartition(topic, one) for topic, of in self.assignment for one in of]


class MemberDescription(AdminResult):
    """A member; its metadata and assignment are bytes where they can't be decoded."""

    member_id: str
    group_instance_id: str | None
    client_id: str
    client_host: str
    member_metadata: MemberSubscription | bytes
    member_assignment: MemberAssignment | bytes


class GroupDescription(AdminResult):
    """A group and its members, or the error.

    `authorized_operations` is None unless it was asked for.
    """

    PARTS: ClassVar = {"members": MemberDescription}

    group_id: str
    group_state: str
    protocol_type: str
    protocol_data: str
    members: list[MemberDescription]
    authorized_operations: list[str] | None
    error: str | None


class MemberToRemove:
    """A member to remove from its group: by its id, or by its instance id if it is static."""

    __slots__ = ("group_instance_id", "member_id", "reason")

    def __init__(
        self,
        member_id: str | None = None,
        group_instance_id: str | None = None,
        reason: str | None = None,
    ) -> None:
        """Name a member.

        Args:
            member_id: the id that the coordinator gave it.
            group_instance_id: its `group_instance_id` option (Kafka 2.4 and later).
            reason: what brokers log (Kafka 3.2 and later).
        """
        self.member_id = member_id
        self.group_instance_id = group_instance_id
        self.reason = reason

    def _fields(self) -> tuple[str | None, ...]:
        return self.member_id, self.group_instance_id, self.reason

    def __eq__(self, other: object) -> bool:
        return isinstance(other, MemberToRemove) and other._fields() == self._fields()

    def __hash__(self) -> int:
        return hash(self._fields())

    def __repr__(self) -> str:
        return (
            f"<MemberToRemove member_id={self.member_id},"
            f" group_instance_id={self.group_instance_id}, reason={self.reason}>"
        )


class OffsetReset(AdminResult):
    """Where a partition was reset to, and `NoError` or the class of the error."""

    error: type[BrokerResponseError]
    offset: int


class PartitionLag(AdminResult):
    """How far a group is behind in a partition.

    Attributes:
        committed: the offset that the group goes on reading at.
        end: the offset after the last record.
        lag: `end` minus `committed`, as Kafka's tools count it. It is negative for offsets from
            before the topic was deleted and created again.
        time_lag_ms: how long ago the first unread record was written, by its timestamp and this
            machine's clock; 0 if all was read, None if the record has no timestamp.
        error: why the others are None, as of a topic that does not exist any more.
    """

    committed: int
    end: int | None
    lag: int | None
    time_lag_ms: int | None
    error: str | None


class MemberInformation(NamedTuple):
    """A member, in kafka-python 2's form."""

    member_id: str
    client_id: str
    client_host: str
    member_metadata: Any
    member_assignment: Any


class GroupInformation(NamedTuple):
    """A group, in kafka-python 2's form."""

    error_code: int
    group: str
    state: str
    protocol_type: str
    protocol: str
    members: list[MemberInformation]
    authorized_operations: list[str] | None
