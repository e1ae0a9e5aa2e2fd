"""OffsetDelete (API key 47): forget a group's offsets of some partitions."""

from pyclient.protocol.primitives import INT16, INT32, STRING
from pyclient.protocol.schema import Message, Struct, array, field


class OffsetDeleteRequestPartition(Struct):
    """A partition whose offset to forget."""

    partition_index: int = field(INT32)


class OffsetDeleteRequestTopic(Struct):
    name: str = field(STRING)
    partitions: list[OffsetDeleteRequestPartition] = field(array(OffsetDeleteRequestPartition))


class OffsetDeleteRequest(Message, api_key=47, versions="0", flexible="none"):
    """Delete committed offsets of topics the group no longer reads."""

    group_id: str = field(STRING)
    topics: list[OffsetDeleteRequestTopic] = field(array(OffsetDeleteRequestTopic))


class OffsetDeleteResponsePartition(Struct):
    partition_index: int = field(INT32)
    error_code: int = field(INT16)


class OffsetDeleteResponseTopic(Struct):
    name: str = field(STRING)
    partitions: list[OffsetDeleteResponsePartition] = field(array(OffsetDeleteResponsePartition))


class OffsetDeleteResponse(Message, api_key=47, versions="0", flexible="none"):
    """Which offsets were forgotten."""

    error_code: int = field(INT16)
    throttle_time_ms: int = field(INT32)
    topics: list[OffsetDeleteResponseTopic] = field(array(OffsetDeleteResponseTopic))
