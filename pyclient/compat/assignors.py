"""Assignors as programs for kafka-python write them: its base class, and what they return.

`partition_assignment_strategy` takes such assignors. kafka-python 2 and 3 name the two messages
differently; both names are here.
"""

from abc import ABC, abstractmethod
from collections.abc import Iterable, Sequence
from typing import Any

from pyclient.consumer.group.assignors import (
    CooperativeStickyAssignor,
    RangePartitionAssignor,
    RebalanceProtocol,
    RoundRobinPartitionAssignor,
    StickyPartitionAssignor,
)
from pyclient.consumer.group.consumer_protocol import (
    Assignment,
    MemberSubscription,
    encode_assignment,
    encode_subscription,
)
from pyclient.types import TopicPartition


class ConsumerProtocolSubscription:
    """What a member tells the leader: the result of `AbstractPartitionAssignor.metadata`."""

    def __init__(self, version: int, topics: Iterable[str], user_data: bytes | None = b"") -> None:
        self.version = version
        self.topics = list(topics)
        self.user_data = user_data

    @property
    def subscription(self) -> list[str]:
        """The topics, by the name that they had before version 2.3."""
        return self.topics

    def encode(self) -> bytes:
        """Kafka's encoding."""
        return encode_subscription(
            MemberSubscription(topics=tuple(self.topics), user_data=self.user_data)
        )


class ConsumerProtocolAssignment:
    """What a member is to read: the values that `AbstractPartitionAssignor.assign` returns."""

    def __init__(
        self,
        version: int,
        assigned_partitions: Iterable[tuple[str, Iterable[int]]],
        user_data: bytes | None = b"",
    ) -> None:
        self.version = version
        self.assigned_partitions = [(topic, list(of)) for topic, of in assigned_partitions]
        self.user_data = user_data

    @property
    def assignment(self) -> list[tuple[str, list[int]]]:
        """The partitions by topic, by their name in version 2."""
        return self.assigned_partitions

    def partitions(self) -> list[TopicPartition]:
        """The partitions one by one."""
        return [TopicPartition(topic, n) for topic, of in self.assigned_partitions for n in of]

    def encode(self) -> bytes:
        """Kafka's encoding."""
        by_topic: dict[str, list[int]] = {}
        for topic, partitions in self.assigned_partitions:
            by_topic.setdefault(topic, []).extend(partitions)
        return encode_assignment(Assignment(by_topic, self.user_data))


ConsumerProtocolMemberMetadata = ConsumerProtocolSubscription
ConsumerProtocolMemberAssignment = ConsumerProtocolAssignment


class AbstractPartitionAssignor(ABC):
    """kafka-python's base class of assignors."""

    @property
    @abstractmethod
    def name(self) -> str:
        """What members agree on: only an assignor that all of them name can be chosen."""

    def supported_protocols(self) -> Sequence[RebalanceProtocol]:
        """The rebalance protocols that its assignments are safe under."""
        return (RebalanceProtocol.EAGER,)

    @abstractmethod
    def assign(self, cluster: Any, members: Any) -> Any:
        """The `ConsumerProtocolAssignment` of each member, by member id.

        Args:
            cluster: has `partitions_for_topic` and the other methods of `ClusterMetadata`.
            members: objects with `member_id`, `group_instance_id` and `metadata`, which is the
                subscription; also a dict of subscriptions by member id, as in version 2.
        """

    @abstractmethod
    def metadata(self, topics: Any) -> Any:
        """What to tell the leader: a `ConsumerProtocolSubscription`."""

    @abstractmethod
    def on_assignment(self, assignment: Any, generation: int) -> None:
        """This member got an assignment; `generation` may be left out."""


for _ours in (
    CooperativeStickyAssignor,
    RangePartitionAssignor,
    RoundRobinPartitionAssignor,
    StickyPartitionAssignor,
):
    AbstractPartitionAssignor.register(_ours)
