"""DescribeProducers (API key 61): the producers that partitions remember."""

from pyclient.protocol.primitives import INT16, INT32, INT64, STRING
from pyclient.protocol.schema import Message, Struct, array, field


class TopicRequest(Struct):
    name: str = field(STRING)
    partition_indexes: list[int] = field(array(INT32))


class DescribeProducersRequest(Message, api_key=61, versions="0", flexible="0+"):
    """List the active producers of partitions."""

    topics: list[TopicRequest] = field(array(TopicRequest))


class ProducerState(Struct):
    """A producer as the partition leader remembers it."""

    producer_id: int = field(INT64)
    producer_epoch: int = field(INT32)
    last_sequence: int = field(INT32, default=-1)
    last_timestamp: int = field(INT64, default=-1)
    coordinator_epoch: int = field(INT32)
    current_txn_start_offset: int = field(INT64, default=-1)


class PartitionResponse(Struct):
    partition_index: int = field(INT32)
    error_code: int = field(INT16)
    error_message: str | None = field(STRING, nullable="0+", default=None)
    active_producers: list[ProducerState] = field(array(ProducerState))


class TopicResponse(Struct):
    name: str = field(STRING)
    partitions: list[PartitionResponse] = field(array(PartitionResponse))


class DescribeProducersResponse(Message, api_key=61, versions="0", flexible="0+"):
    """The producers that were found."""

    throttle_time_ms: int = field(INT32)
    topics: list[TopicResponse] = field(array(TopicResponse))
