"""EndTxn (API key 26): commit or abort a transaction.

Version 5 asks for transaction.version 2: every transaction ends with a new epoch, which the
response carries, so that a delayed request can't touch the next transaction (KIP-890).
"""

from pyclient.protocol.primitives import BOOL, INT16, INT32, INT64, STRING
from pyclient.protocol.schema import Message, field


class EndTxnRequest(Message, api_key=26, versions="0-5", flexible="3+"):
    """Commit or abort the ongoing transaction."""

    transactional_id: str = field(STRING)
    producer_id: int = field(INT64)
    producer_epoch: int = field(INT16)
    committed: bool = field(BOOL)  # true commits, false aborts

    __slots__ = ("_transaction_version",)

    def use_transaction_version(self, version: int) -> None:
        """Send it in the protocol of its transaction, whatever the broker reports by now."""
        self._transaction_version = version

    def version_cap(self, transaction_version: int = 0) -> int:
        """4 before transaction.version 2."""
        transaction_version = getattr(self, "_transaction_version", transaction_version)
        return 4 if transaction_version < 2 else super().version_cap(transaction_version)


class EndTxnResponse(Message, api_key=26, versions="0-5", flexible="3+"):
    """Whether the outcome is decided, and the epoch to go on with."""

    throttle_time_ms: int = field(INT32)
    error_code: int = field(INT16)
    producer_id: int = field(INT64, versions="5+", default=-1, ignorable=True)
    producer_epoch: int = field(INT16, versions="5+", default=-1, ignorable=True)
