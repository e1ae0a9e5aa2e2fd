"""What is known of a log: its offsets, epochs and producers, and how far it is on disk.

Everything here is guarded by one lock; the offsets can be read without it, since each is replaced
as a whole. What changes them is in `partition_log`.
"""

from collections.abc import Iterable, Mapping
from threading import Lock

from broker_stub.log.flushing import FlushState
from broker_stub.log.leader_epochs import EpochEnd, LeaderEpochs
from broker_stub.log.producers.producer_state import ProducerEntry, ProducerState, RememberedBatch


class LogState:
    """The state of one partition's log.

    Attributes:
        cleaned_to: the offset up to which the log was compacted. Background thread.
    """

    __slots__ = (
        "_flushes",
        "_high_watermark",
        "_lock",
        "_log_end_offset",
        "_log_start_offset",
        "cleaned_to",
        "leader_epochs",
        "producer_state",
    )

    def __init__(self, leader_epochs: LeaderEpochs) -> None:
        """That of an empty log."""
        self.leader_epochs = leader_epochs
        self.producer_state = ProducerState()
        self._lock = Lock()
        self._log_start_offset = 0
        self._log_end_offset = 0
        self._high_watermark = 0
        self._flushes = FlushState()
        self.cleaned_to = 0

    @property
    def log_start_offset(self) -> int:
        """The first offset that can be read."""
        return self._log_start_offset

    @property
    def log_end_offset(self) -> int:
        """The offset that the next record gets."""
        return self._log_end_offset

    @property
    def high_watermark(self) -> int:
        """The offset up to which all in-sync replicas have the log."""
        return self._high_watermark

    @property
    def recovery_point(self) -> int:
        """The offset up to which all is synced."""
        return self._flushes.recovery_point

    @property
    def last_stable_offset(self) -> int:
        """The offset up to which every transaction is decided."""
        first_unstable = self.producer_state.first_unstable_offset
        if first_unstable is None:
            return self._high_watermark
        return min(self._high_watermark, max(first_unstable, self._log_start_offset))

    def advance_high_watermark(self, offset: int) -> bool:
        """Move the high watermark forward, at most to the end; tell whether it moved."""
        with self._lock:
            before = self._high_watermark
            self._high_watermark = max(before, min(offset, self._log_end_offset))
            return self._high_watermark > before

    def end_of_epoch(self, leader_epoch: int) -> EpochEnd:
        """Where an epoch ends, or the last one before it that this log has."""
        with self._lock:
            return self.leader_epochs.end_offset_for(leader_epoch, self._log_end_offset)

    def producers(self) -> tuple[ProducerEntry, ...]:
        """The producers that are remembered at this moment."""
        with self._lock:
            return tuple(self.producer_state)

    def recall_producers(self, older: Mapping[int, Iterable[RememberedBatch]]) -> None:
        """Have them remember batches, by producer id, that the log's tail shows."""
        with self._lock:
            self.producer_state.recall(older)

    def expire_producers(self, now_ms: int, expiration_ms: int) -> None:
        """Forget idempotent producers that have not written for so long."""
        with self._lock:
            self.producer_state.expire(now_ms, expiration_ms)
