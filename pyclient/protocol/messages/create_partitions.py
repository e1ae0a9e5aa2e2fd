"""CreatePartitions (API key 37): give topics more partitions."""

from pyclient.protocol.primitives import BOOL, INT16, INT32, STRING
from pyclient.protocol.schema import Message, Struct, array, field


class CreatePartitionsAssignment(Struct):
    """Brokers for one new partition."""

    broker_ids: list[int] = field(array(INT32))


class CreatePartitionsTopic(Struct):
    """A topic and the partition count it is to have."""

    name: str = field(STRING)
    count: int = field(INT32)
    assignments: list[CreatePartitionsAssignment] | None = field(
        array(CreatePartitionsAssignment), nullable="0+"
    )


class CreatePartitionsRequest(Message, api_key=37, versions="0-3", flexible="2+"):
    """Raise the partition count of topics."""

    topics: list[CreatePartitionsTopic] = field(array(CreatePartitionsTopic))
    timeout_ms: int = field(INT32)
    validate_only: bool = field(BOOL)


class CreatePartitionsTopicResult(Struct):
    name: str = field(STRING)
    error_code: int = field(INT16)
    error_message: str | None = field(STRING, nullable="0+", default=None)


class CreatePartitionsResponse(Message, api_key=37, versions="0-3", flexible="2+"):
    """The outcome for each topic."""

    throttle_time_ms: int = field(INT32)
    results: list[CreatePartitionsTopicResult] = field(array(CreatePartitionsTopicResult))
