"""DescribeLogDirs (API key 35): what lies in a broker's log folders."""

from pyclient.protocol.primitives import BOOL, INT16, INT32, INT64, STRING
from pyclient.protocol.schema import Message, Struct, array, field


class DescribableLogDirTopic(Struct):
    topic: str = field(STRING)
    partitions: list[int] = field(array(INT32))


class DescribeLogDirsRequest(Message, api_key=35, versions="1-5", flexible="2+"):
    """Describe log folders; null for all partitions."""

    topics: list[DescribableLogDirTopic] | None = field(
        array(DescribableLogDirTopic), nullable="0+"
    )


class DescribeLogDirsPartition(Struct):
    """A replica, its size and its lag."""

    partition_index: int = field(INT32)
    partition_size: int = field(INT64)
    offset_lag: int = field(INT64)
    is_future_key: bool = field(BOOL)


class DescribeLogDirsTopic(Struct):
    name: str = field(STRING)
    partitions: list[DescribeLogDirsPartition] = field(array(DescribeLogDirsPartition))


class DescribeLogDirsResult(Struct):
    """A log folder and what is in it."""

    error_code: int = field(INT16)
    log_dir: str = field(STRING)
    topics: list[DescribeLogDirsTopic] = field(array(DescribeLogDirsTopic))
    total_bytes: int = field(INT64, versions="4+", default=-1, ignorable=True)
    usable_bytes: int = field(INT64, versions="4+", default=-1, ignorable=True)
    is_cordoned: bool = field(BOOL, versions="5+", ignorable=True)


class DescribeLogDirsResponse(Message, api_key=35, versions="1-5", flexible="2+"):
    """The log folders of the broker."""

    throttle_time_ms: int = field(INT32)
    error_code: int = field(INT16, versions="3+", ignorable=True)
    results: list[DescribeLogDirsResult] = field(array(DescribeLogDirsResult))
