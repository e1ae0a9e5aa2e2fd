"""DeleteRecords (API key 21): move the start of partitions forward."""

from pyclient.protocol.primitives import INT16, INT32, INT64, STRING
from pyclient.protocol.schema import Message, Struct, array, field


class DeleteRecordsPartition(Struct):
    """Where one partition is to start; -1 for its high watermark."""

    partition_index: int = field(INT32)
    offset: int = field(INT64)


class DeleteRecordsTopic(Struct):
    name: str = field(STRING)
    partitions: list[DeleteRecordsPartition] = field(array(DeleteRecordsPartition))


class DeleteRecordsRequest(Message, api_key=21, versions="0-2", flexible="2+"):
    """Delete the records below an offset."""

    topics: list[DeleteRecordsTopic] = field(array(DeleteRecordsTopic))
    timeout_ms: int = field(INT32)


class DeleteRecordsPartitionResult(Struct):
    partition_index: int = field(INT32)
    low_watermark: int = field(INT64)
    error_code: int = field(INT16)


class DeleteRecordsTopicResult(Struct):
    name: str = field(STRING)
    partitions: list[DeleteRecordsPartitionResult] = field(array(DeleteRecordsPartitionResult))


class DeleteRecordsResponse(Message, api_key=21, versions="0-2", flexible="2+"):
    """Where the partitions start now."""

    throttle_time_ms: int = field(INT32)
    topics: list[DeleteRecordsTopicResult] = field(array(DeleteRecordsTopicResult))
