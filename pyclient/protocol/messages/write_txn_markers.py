"""WriteTxnMarkers (API key 27): the coordinator ends a transaction in its partitions."""

from pyclient.protocol.primitives import BOOL, INT8, INT16, INT32, INT64, STRING
from pyclient.protocol.schema import Message, Struct, array, field


class WritableTxnMarkerTopic(Struct):
    name: str = field(STRING)
    partition_indexes: list[int] = field(array(INT32))


class WritableTxnMarker(Struct):
    producer_id: int = field(INT64)
    producer_epoch: int = field(INT16)
    transaction_result: bool = field(BOOL)  # true commits, false aborts
    topics: list[WritableTxnMarkerTopic] = field(array(WritableTxnMarkerTopic))
    coordinator_epoch: int = field(INT32)
    transaction_version: int = field(INT8, versions="2+", ignorable=True)


class WriteTxnMarkersRequest(Message, api_key=27, versions="1-2", flexible="1+"):
    """Write commit or abort markers into partitions."""

    markers: list[WritableTxnMarker] = field(array(WritableTxnMarker))


class WritableTxnMarkerPartitionResult(Struct):
    partition_index: int = field(INT32)
    error_code: int = field(INT16)


class WritableTxnMarkerTopicResult(Struct):
    name: str = field(STRING)
    partitions: list[WritableTxnMarkerPartitionResult] = field(
        array(WritableTxnMarkerPartitionResult)
    )


class WritableTxnMarkerResult(Struct):
    producer_id: int = field(INT64)
    topics: list[WritableTxnMarkerTopicResult] = field(array(WritableTxnMarkerTopicResult))


class WriteTxnMarkersResponse(Message, api_key=27, versions="1-2", flexible="1+"):
    """Which markers were written."""

    markers: list[WritableTxnMarkerResult] = field(array(WritableTxnMarkerResult))
