"""Decides when a log is flushed (`flush.messages`, `flush.ms`) and tracks what is on disk.

After a failed fsync the kernel may have dropped dirty pages, and the next fsync reports success.
So the log then takes no more appends and is not closed cleanly; a restart reads what is really on
disk. Guarded by the lock of its log.
"""

from broker_stub.log.log_config import INT64_MAX, LogConfig
from pyclient.errors import KafkaStorageError


class FlushState:
    """The flush state of one log.

    Attributes:
        recovery_point: everything before this offset is synced; recovery starts here.
    """

    __slots__ = ("_failure", "_scheduled_ms", "_unflushed", "recovery_point")

    def __init__(self) -> None:
        self.recovery_point = 0
        self._unflushed = 0  # records appended since the last flush began
        self._scheduled_ms = INT64_MAX  # the delay of the flush that was requested last
        self._failure: str | None = None

    def check(self) -> None:
        """Refuse further writes after a failed sync.

        Raises:
            KafkaStorageError: an earlier sync failed.
        """
        if self._failure is not None:
            raise KafkaStorageError(self._failure)

    def on_append(self, records: int, config: LogConfig) -> bool:
        """Count appended records; returns whether `flush.messages` is reached."""
        self._unflushed += records
        return self._unflushed >= config.flush_messages

    def next_flush_ms(self, flush_ms: int, end_offset: int) -> int:
        """Delay until the next scheduled flush; INT64_MAX if none is needed."""
        if end_offset <= self.recovery_point or flush_ms >= self._scheduled_ms:
            return INT64_MAX
        self._scheduled_ms = flush_ms
        return flush_ms

    def on_begin(self) -> None:
        """A flush of everything appended so far begins."""
        self._unflushed = 0
        self._scheduled_ms = INT64_MAX

    def on_synced(self, end_offset: int) -> None:
        """Everything before `end_offset` is on disk."""
        self.recovery_point = max(self.recovery_point, end_offset)

    def on_failed(self, reason: str) -> None:
        """A sync failed: the content of the disk is unknown until a restart."""
        self._failure = f"{reason}; the log takes no more writes until the broker is restarted"
