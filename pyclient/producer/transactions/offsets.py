"""Offsets of a consumer group on their way into a transaction."""

from collections.abc import Mapping

from pyclient.errors import KafkaError
from pyclient.producer.transactions.states import PendingCall
from pyclient.protocol.messages.txn_offset_commit import (
    TxnOffsetCommitRequest,
    TxnOffsetCommitRequestPartition,
    TxnOffsetCommitRequestTopic,
    TxnOffsetCommitResponse,
)
from pyclient.types import ConsumerGroupMetadata, OffsetAndMetadata, TopicPartition


class OffsetsToCommit:
    """One call of `send_offsets_to_transaction`. The I/O thread's, once it is handed over.

    Attributes:
        call: what its caller waits for.
        group: whose offsets they are.
        remaining: those that the group's coordinator has not accepted yet.
    """

    __slots__ = ("call", "group", "group_id", "remaining")

    def __init__(
        self,
        call: PendingCall,
        group: ConsumerGroupMetadata,
        offsets: Mapping[TopicPartition, OffsetAndMetadata],
    ) -> None:
        assert group.group_id is not None
        self.call = call
        self.group = group
        self.group_id = group.group_id
        self.remaining = dict(offsets)

    def request(
        self, transactional_id: str, producer_id: int, producer_epoch: int
    ) -> TxnOffsetCommitRequest:
        """The request for what remains."""
        topics: dict[str, list[TxnOffsetCommitRequestPartition]] = {}
        for (topic, partition), one in self.remaining.items():
            topics.setdefault(topic, []).append(
                TxnOffsetCommitRequestPartition(
                    partition_index=partition,
                    committed_offset=one.offset,
                    committed_leader_epoch=-1 if one.leader_epoch is None else one.leader_epoch,
                    committed_metadata=one.metadata or "",
                )
            )
        return TxnOffsetCommitRequest(
            transactional_id=transactional_id,
            group_id=self.group_id,
            producer_id=producer_id,
            producer_epoch=producer_epoch,
            generation_id=self.group.generation_id,
            member_id=self.group.member_id,
            group_instance_id=self.group.group_instance_id,
            topics=[
                TxnOffsetCommitRequestTopic(name=name, partitions=of) for name, of in topics.items()
            ],
        )

    def accept(self, response: TxnOffsetCommitResponse) -> set[int]:
        """Strike off what was accepted; the error codes of the rest."""
        codes = set()
        for topic in response.topics:
            for one in topic.partitions:
                if one.error_code:
                    codes.add(one.error_code)
                else:
                    self.remaining.pop(TopicPartition(topic.name, one.partition_index), None)
        return codes

    def finish(self, error: KafkaError | None = None) -> None:
        """Tell the caller the result."""
        self.call.finish(error)
