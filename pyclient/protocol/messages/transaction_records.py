"""Records of `__transaction_state`: one transactional id each.

Framed as in `group_records`: the `record_type` in front of a key, the version in front of a value.
"""

from pyclient.protocol.primitives import INT8, INT16, INT32, INT64, STRING
from pyclient.protocol.schema import Message, Struct, array, field


class TransactionLogKey(Message, record_type=0, versions="0", flexible="none"):
    """Names a transactional id."""

    transactional_id: str = field(STRING)


class PartitionsSchema(Struct):
    topic: str = field(STRING)
    partition_ids: list[int] = field(array(INT32))


class TransactionLogValue(Message, record_type=0, versions="0-1", flexible="1+"):
    """A transaction's producer, state and partitions."""

    producer_id: int = field(INT64)
    previous_producer_id: int = field(INT64, versions="1+", default=-1, tag=0)
    next_producer_id: int = field(INT64, versions="1+", default=-1, tag=1)
    producer_epoch: int = field(INT16)
    next_producer_epoch: int = field(INT16, versions="1+", default=-1, tag=3)
    transaction_timeout_ms: int = field(INT32)
    # 0 empty, 1 ongoing, 2 commit prepared, 3 abort prepared, 4 committed, 5 aborted, 6 dead
    transaction_status: int = field(INT8)
    transaction_partitions: list[PartitionsSchema] | None = field(
        array(PartitionsSchema), nullable="0+"
    )
    transaction_last_update_timestamp_ms: int = field(INT64)
    transaction_start_timestamp_ms: int = field(INT64)
    client_transaction_version: int = field(INT16, versions="1+", tag=2)
