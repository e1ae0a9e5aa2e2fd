"""InitProducerId (API key 22): a producer gets its id and epoch.

For a transactional id this also fences the producer before it and aborts what it left open.
Version 6 (two-phase commit) is not stable in Kafka.
"""

from pyclient.protocol.primitives import BOOL, INT16, INT32, INT64, STRING
from pyclient.protocol.schema import Message, field


class InitProducerIdRequest(Message, api_key=22, versions="0-6", stable="0-5", flexible="2+"):
    """Ask for a producer id, or for a higher epoch of one."""

    transactional_id: str | None = field(STRING, nullable="0+")
    transaction_timeout_ms: int = field(INT32)
    producer_id: int = field(INT64, versions="3+", default=-1)
    producer_epoch: int = field(INT16, versions="3+", default=-1)
    enable2_pc: bool = field(BOOL, versions="6+")
    keep_prepared_txn: bool = field(BOOL, versions="6+")


class InitProducerIdResponse(Message, api_key=22, versions="0-6", stable="0-5", flexible="2+"):
    """The producer id and epoch to write with."""

    throttle_time_ms: int = field(INT32)
    error_code: int = field(INT16)
    producer_id: int = field(INT64, default=-1)
    producer_epoch: int = field(INT16)
    ongoing_txn_producer_id: int = field(INT64, versions="6+", default=-1)
    ongoing_txn_producer_epoch: int = field(INT16, versions="6+", default=-1)
