"""The leader epochs of a log, and the offset that each starts at: `leader-epoch-checkpoint`.

Epochs and start offsets both increase from entry to entry. The file is rewritten without a sync
when entries change; the log's flush syncs it, on the background thread. Guarded by the lock of its
log.
"""

from bisect import bisect_right
from itertools import pairwise
from typing import Final, NamedTuple

from broker_stub.log.files.checkpoint_file import (
    CorruptCheckpointError,
    numbers,
    read_checkpoint,
    write_checkpoint,
)

NO_EPOCH: Final = -1
NO_OFFSET: Final = -1


class EpochEntry(NamedTuple):
    """An epoch, and where it starts."""

    epoch: int
    start_offset: int


class EpochEnd(NamedTuple):
    """The answer to OffsetForLeaderEpoch: the epoch found, and where it ends."""

    epoch: int
    end_offset: int


class LeaderEpochs:
    """The epochs of one partition."""

    __slots__ = ("_entries", "path")

    def __init__(self, path: str) -> None:
        self.path = path
        self._entries: list[EpochEntry] = []

    def load(self) -> None:
        """Read the file.

        Raises:
            CorruptCheckpointError: it is damaged.
        """
        entries = [
            EpochEntry(*numbers(self.path, entry)) for entry in read_checkpoint(self.path, fields=2)
        ]
        for before, entry in pairwise(entries):
            if not (before.epoch < entry.epoch and before.start_offset < entry.start_offset):
                raise CorruptCheckpointError(
                    f"{self.path}: epoch {entry.epoch} at offset {entry.start_offset} cannot"
                    f" follow epoch {before.epoch} at offset {before.start_offset}"
                )
        self._entries = entries

    @property
    def entries(self) -> tuple[EpochEntry, ...]:
        """All entries, oldest first."""
        return tuple(self._entries)

    @property
    def latest_epoch(self) -> int:
        """The epoch of the last batch; -1 in an empty log."""
        return self._entries[-1].epoch if self._entries else NO_EPOCH

    def assign(self, epoch: int, start_offset: int) -> bool:
        """Batches from `start_offset` on have this epoch. Returns whether an entry was added."""
        if epoch <= self.latest_epoch:
            return False
        # A leader that wrote nothing has no entry: its successor replaces it.
        self.truncate_from_end(start_offset)
        self._entries.append(EpochEntry(epoch, start_offset))
        return True

    def end_offset_for(self, epoch: int, log_end_offset: int) -> EpochEnd:
        """The end of `epoch`, or of the last epoch before it that this log has."""
        if epoch == NO_EPOCH:
            return EpochEnd(NO_EPOCH, NO_OFFSET)
        if epoch == self.latest_epoch:
            return EpochEnd(epoch, log_end_offset)
        at = bisect_right(self._entries, epoch, key=lambda entry: entry.epoch)
        if at == len(self._entries):  # newer than every entry: unknown
            return EpochEnd(NO_EPOCH, NO_OFFSET)
        if at == 0:  # older than every entry: it ends where the first one starts
            return EpochEnd(epoch, self._entries[0].start_offset)
        return EpochEnd(self._entries[at - 1].epoch, self._entries[at].start_offset)

    def epoch_for(self, offset: int) -> int:
        """The epoch in which the record at `offset` was written; -1 if unknown."""
        at = bisect_right(self._entries, offset, key=lambda entry: entry.start_offset)
        return self._entries[at - 1].epoch if at else NO_EPOCH

    def truncate_from_end(self, end_offset: int) -> bool:
        """Remove epochs that start at or after the end of the log; returns whether any did."""
        before = len(self._entries)
        while self._entries and self._entries[-1].start_offset >= end_offset:
            self._entries.pop()
        return len(self._entries) < before

    def truncate_from_start(self, start_offset: int) -> bool:
        """Remove epochs that end before the start of the log; returns whether any did."""
        at = bisect_right(self._entries, start_offset, key=lambda entry: entry.start_offset)
        if at == 0 or (at == 1 and self._entries[0].start_offset == start_offset):
            return False
        self._entries[:at] = [EpochEntry(self._entries[at - 1].epoch, start_offset)]
        return True

    def write(self) -> None:
        """Rewrite the checkpoint file from memory."""
        entries = [f"{epoch} {start_offset}" for epoch, start_offset in self._entries]
        write_checkpoint(self.path, entries, sync=None)
