"""ListTransactions (API key 66): the transactions a broker coordinates."""

from pyclient.protocol.primitives import INT16, INT32, INT64, STRING
from pyclient.protocol.schema import Message, Struct, array, field


class ListTransactionsRequest(Message, api_key=66, versions="0-2", flexible="0+"):
    """List transactions by state, producer id, age or name."""

    state_filters: list[str] = field(array(STRING))
    producer_id_filters: list[int] = field(array(INT64))
    duration_filter: int = field(INT64, versions="1+", default=-1)
    transactional_id_pattern: str | None = field(STRING, versions="2+", nullable="2+", default=None)

    def version_floor(self) -> int:
        """1 for a filter by age, 2 for one by name."""
        if self.transactional_id_pattern is not None:
            return 2
        return 1 if self.duration_filter >= 0 else super().version_floor()


class TransactionState(Struct):
    """A transactional id, its producer and its state."""

    transactional_id: str = field(STRING)
    producer_id: int = field(INT64)
    transaction_state: str = field(STRING)


class ListTransactionsResponse(Message, api_key=66, versions="0-2", flexible="0+"):
    throttle_time_ms: int = field(INT32)
    error_code: int = field(INT16)
    unknown_state_filters: list[str] = field(array(STRING))
    transaction_states: list[TransactionState] = field(array(TransactionState))
