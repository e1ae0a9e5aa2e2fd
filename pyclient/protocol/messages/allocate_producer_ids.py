"""AllocateProducerIds (API key 67): a broker gets a block of producer ids."""

from pyclient.protocol.primitives import INT16, INT32, INT64
from pyclient.protocol.schema import Message, field


class AllocateProducerIdsRequest(Message, api_key=67, versions="0", flexible="0+"):
    """Ask for a block of producer ids."""

    broker_id: int = field(INT32)
    broker_epoch: int = field(INT64, default=-1)


class AllocateProducerIdsResponse(Message, api_key=67, versions="0", flexible="0+"):
    """The block: its first id and its length."""

    throttle_time_ms: int = field(INT32)
    error_code: int = field(INT16)
    producer_id_start: int = field(INT64)
    producer_id_len: int = field(INT32)
