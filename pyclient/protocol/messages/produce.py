"""Produce (API key 0): record batches on their way into partitions.

A request with acks=0 gets no response at all. Version 12 is version 11 for a transaction that
adds its partitions by itself (transaction.version 2); from 13 on a topic is named by its id.
"""

from pyclient.protocol.messages.current_leader import LeaderIdAndEpoch, NodeEndpoint
from pyclient.protocol.primitives import (
    INT16,
    INT32,
    INT64,
    RECORDS,
    STRING,
    UUID,
    ZERO_UUID,
    Records,
    Uuid,
)
from pyclient.protocol.schema import Message, Struct, array, field, struct


class PartitionProduceData(Struct):
    index: int = field(INT32)
    records: Records | None = field(RECORDS, nullable="0+")


class TopicProduceData(Struct):
    name: str = field(STRING, versions="0-12", ignorable=True)
    topic_id: Uuid = field(UUID, versions="13+", ignorable=True)
    partition_data: list[PartitionProduceData] = field(array(PartitionProduceData))


class ProduceRequest(Message, api_key=0, versions="3-13", flexible="9+"):
    """Append record batches to partitions."""

    transactional_id: str | None = field(STRING, nullable="0+", default=None)
    acks: int = field(INT16)  # 0 none, 1 leader, -1 all in-sync replicas
    timeout_ms: int = field(INT32)
    topic_data: list[TopicProduceData] = field(array(TopicProduceData))

    __slots__ = ("_transaction_version",)

    def use_transaction_version(self, version: int) -> None:
        """Send it in the protocol of its transaction, whatever the broker reports by now."""
        self._transaction_version = version

    def version_cap(self, transaction_version: int = 0) -> int:
        """12 while a topic id is missing, 11 in a transaction before transaction.version 2."""
        transaction_version = getattr(self, "_transaction_version", transaction_version)
        if self.transactional_id is not None and transaction_version < 2:
            return 11
        if any(topic.topic_id == ZERO_UUID for topic in self.topic_data):
            return 12
        return super().version_cap(transaction_version)


class BatchIndexAndErrorMessage(Struct):
    """A record that made the broker refuse its batch."""

    batch_index: int = field(INT32)
    batch_index_error_message: str | None = field(STRING, nullable="0+", default=None)


class PartitionProduceResponse(Struct):
    """Where one batch was appended, or why it was not."""

    index: int = field(INT32)
    error_code: int = field(INT16)
    base_offset: int = field(INT64)
    log_append_time_ms: int = field(INT64, default=-1)
    log_start_offset: int = field(INT64, versions="5+", default=-1, ignorable=True)
    record_errors: list[BatchIndexAndErrorMessage] = field(
        array(BatchIndexAndErrorMessage), versions="8+", ignorable=True
    )
    error_message: str | None = field(
        STRING, versions="8+", nullable="8+", default=None, ignorable=True
    )
    current_leader: LeaderIdAndEpoch = field(struct(LeaderIdAndEpoch), versions="10+", tag=0)


class TopicProduceResponse(Struct):
    name: str = field(STRING, versions="0-12", ignorable=True)
    topic_id: Uuid = field(UUID, versions="13+", ignorable=True)
    partition_responses: list[PartitionProduceResponse] = field(array(PartitionProduceResponse))


class ProduceResponse(Message, api_key=0, versions="3-13", flexible="9+"):
    """Where the batches were appended."""

    responses: list[TopicProduceResponse] = field(array(TopicProduceResponse))
    throttle_time_ms: int = field(INT32)
    node_endpoints: list[NodeEndpoint] = field(array(NodeEndpoint), versions="10+", tag=0)
