"""How far a log is safely on disk, and whether its disk can still be believed.

After a failed fsync nobody knows which pages the kernel has dropped, and the next fsync reports
success: so the log takes no more batches, and is not closed as a clean one, until a restart has
read what is really there. Guarded by the lock of its log.
"""

from broker_stub.log.log_config import INT64_MAX
from pyclient.errors import KafkaStorageError


class FlushState:
    """What was synced, what waits for it, and the failure that ended both.

    Attributes:
        recovery_point: all before this offset is synced; recovery starts there.
    """

    __slots__ = ("_asked_ms", "_failure", "_unflushed", "recovery_point")

    def __init__(self) -> None:
        self.recovery_point = 0
        self._unflushed = 0
        self._asked_ms = INT64_MAX  # the delay of the flush that was asked for
        self._failure: str | None = None

    def check(self) -> None:
        """Refuse to go on after a sync has failed.

        Raises:
            KafkaStorageError: it has.
        """
        if self._failure is not None:
            raise KafkaStorageError(self._failure)

    def ask_in_ms(self, flush_ms: int, end_offset: int) -> int:
        """In how long a flush of a log with this end is to come; never, if it will come anyway."""
        if end_offset <= self.recovery_point or flush_ms >= self._asked_ms:
            return INT64_MAX
        self._asked_ms = flush_ms
        return flush_ms

    def note_appended(self, records: int) -> int:
        """Count records that were written; how many wait to be synced now."""
        self._unflushed += records
        return self._unflushed

    def begin(self) -> None:
        """A flush takes care of all that waits."""
        self._unflushed = 0
        self._asked_ms = INT64_MAX

    def done(self, end_offset: int) -> None:
        """All before `end_offset` is on disk."""
        self.recovery_point = max(self.recovery_point, end_offset)

    def failed(self, reason: str) -> None:
        """A sync failed: what is on disk is unknown from now on."""
        self._failure = f"{reason}; nothing more is written until a restart has read what is there"
