"""The state of the producers that wrote to a partition.

Per producer: its epoch, the sequences and offsets of its last five batches, and the first offset
of its open transaction. `sequence_check` reads it before a batch is written; it is updated after.
Guarded by the lock of its log.
"""

from collections.abc import Iterable, Iterator, Mapping
from typing import Final, NamedTuple

from broker_stub.log.batch.header import NO_PRODUCER_ID, BatchHeader

NO_SEQUENCE: Final = -1
NO_EPOCH: Final = -1
NO_OFFSET: Final = -1
BATCHES_REMEMBERED: Final = 5
SEQUENCE_MASK: Final = 2**31 - 1


class RememberedBatch(NamedTuple):
    """The sequences, offsets and timestamp of a batch that was written."""

    last_sequence: int
    last_offset: int
    offset_delta: int
    timestamp: int

    @classmethod
    def of(cls, header: BatchHeader, last_offset: int) -> "RememberedBatch":
        """The batch with this header, written with this last offset."""
        return cls(
            last_sequence_of(header), last_offset, header.last_offset_delta, header.max_timestamp
        )

    @property
    def first_sequence(self) -> int:
        """The sequence of the first record."""
        return (self.last_sequence - self.offset_delta) & SEQUENCE_MASK

    @property
    def first_offset(self) -> int:
        """The offset of the first record."""
        return self.last_offset - self.offset_delta


class ProducerEntry:
    """One producer's state in one partition."""

    __slots__ = (
        "batches",
        "coordinator_epoch",
        "current_txn_first_offset",
        "epoch",
        "last_timestamp",
        "producer_id",
        "tail_is_known",
    )

    def __init__(
        self,
        producer_id: int,
        epoch: int = NO_EPOCH,
        *,
        batches: Iterable[RememberedBatch] = (),
        last_timestamp: int = -1,
        coordinator_epoch: int = -1,
        current_txn_first_offset: int = NO_OFFSET,
        tail_is_known: bool = True,
    ) -> None:
        self.producer_id = producer_id
        self.epoch = epoch
        self.batches = list(batches)  # oldest first, at most BATCHES_REMEMBERED
        self.last_timestamp = last_timestamp
        self.coordinator_epoch = coordinator_epoch
        self.current_txn_first_offset = current_txn_first_offset
        # A snapshot has one batch: there may be four more until the log's tail was read.
        self.tail_is_known = tail_is_known

    @property
    def is_in_transaction(self) -> bool:
        """Whether it has written in a transaction that has not ended."""
        return self.current_txn_first_offset != NO_OFFSET

    @property
    def last_sequence(self) -> int:
        """The sequence of the last record; -1 if no batch is remembered."""
        return self.batches[-1].last_sequence if self.batches else NO_SEQUENCE

    def recall(self, older: Iterable[RememberedBatch]) -> None:
        """Add the batches before the known ones that were found in the log's tail."""
        self.batches = [*older, *self.batches][-BATCHES_REMEMBERED:]
        self.tail_is_known = True

    def note(self, header: BatchHeader, last_offset: int) -> None:
        """Update the entry for a batch of records that was written."""
        self._use_epoch(header)
        if header.is_transactional and self.current_txn_first_offset == NO_OFFSET:
            self.current_txn_first_offset = last_offset - header.last_offset_delta
        self.batches.append(RememberedBatch.of(header, last_offset))
        del self.batches[:-BATCHES_REMEMBERED]

    def note_marker(self, header: BatchHeader, coordinator_epoch: int) -> None:
        """Update the entry for a marker that was written: the open transaction has ended."""
        self._use_epoch(header)
        self.coordinator_epoch = coordinator_epoch
        self.current_txn_first_offset = NO_OFFSET

    def _use_epoch(self, header: BatchHeader) -> None:
        if header.producer_epoch != self.epoch:
            self.epoch = header.producer_epoch
            self.batches.clear()
            self.tail_is_known = True  # sequences restart at 0, so there is no older batch to find
        self.last_timestamp = header.max_timestamp


class ProducerState:
    """The producers of one partition, by id.

    Attributes:
        is_recalling: whether a read of the log's tail was requested and is not finished.
    """

    __slots__ = ("_ended", "_entries", "_open_transactions", "is_recalling")

    def __init__(self) -> None:
        self.is_recalling = False
        self._entries: dict[int, ProducerEntry] = {}
        self._open_transactions: dict[int, int] = {}  # first offsets, by producer id
        # First offset and marker's offset of transactions whose marker may not be read yet.
        self._ended: list[tuple[int, int]] = []

    def __len__(self) -> int:
        return len(self._entries)

    def __iter__(self) -> Iterator[ProducerEntry]:
        return iter(self._entries.values())

    def get(self, producer_id: int) -> ProducerEntry | None:
        """The producer's entry, or None."""
        return self._entries.get(producer_id)

    def load(self, entries: Iterable[ProducerEntry]) -> None:
        """Replace all entries by those of a snapshot."""
        self._entries = {entry.producer_id: entry for entry in entries}
        self._open_transactions.clear()
        self._ended.clear()
        for entry in self:
            self._note_transaction(entry)

    def recall(self, older: Mapping[int, Iterable[RememberedBatch]]) -> None:
        """Complete entries from a snapshot with older batches, by producer id."""
        for entry in self:
            if not entry.tail_is_known:
                entry.recall(older.get(entry.producer_id, ()))

    @property
    def first_unstable_offset(self) -> int | None:
        """The first offset of the oldest open transaction; None if none is open."""
        return min(self._open_transactions.values(), default=None)

    @property
    def open_transactions(self) -> Mapping[int, int]:
        """The first offset of each open transaction, by producer id."""
        return self._open_transactions

    def update(self, header: BatchHeader, last_offset: int) -> None:
        """Update the producer of a batch of records that was written."""
        if header.producer_id == NO_PRODUCER_ID:
            return
        entry = self._entry_of(header)
        entry.note(header, last_offset)
        if header.is_transactional:
            self._note_transaction(entry)

    def end_transaction(
        self, header: BatchHeader, coordinator_epoch: int, marker_offset: int
    ) -> int | None:
        """End a producer's transaction; returns its first offset, or None if none was open."""
        entry = self._entry_of(header)
        entry.note_marker(header, coordinator_epoch)
        first_offset = self._open_transactions.pop(header.producer_id, None)
        if first_offset is not None:
            self._ended.append((first_offset, marker_offset))
        return first_offset

    def last_stable_offset(self, high_watermark: int) -> int:
        """Where readers of committed records stop: before what is open, or has no safe marker."""
        unstable = self.first_unstable_offset
        stable = high_watermark if unstable is None else min(unstable, high_watermark)
        for first_offset, marker_offset in self._ended:
            if marker_offset >= high_watermark:
                stable = min(stable, first_offset)
        return stable

    def on_high_watermark(self, high_watermark: int) -> None:
        """Markers before the high watermark are safe."""
        if self._ended:
            self._ended = [one for one in self._ended if one[1] >= high_watermark]

    def _entry_of(self, header: BatchHeader) -> ProducerEntry:
        entry = self._entries.get(header.producer_id)
        if entry is None:
            entry = self._entries[header.producer_id] = ProducerEntry(
                header.producer_id, header.producer_epoch
            )
        return entry

    def _note_transaction(self, entry: ProducerEntry) -> None:
        if entry.current_txn_first_offset == NO_OFFSET:
            self._open_transactions.pop(entry.producer_id, None)
        else:
            self._open_transactions[entry.producer_id] = entry.current_txn_first_offset

    def expire(self, now_ms: int, expiration_ms: int) -> int:
        """Forget producers that wrote nothing for `expiration_ms`; returns how many."""
        expired = [
            entry.producer_id
            for entry in self
            if entry.current_txn_first_offset == NO_OFFSET
            and now_ms - entry.last_timestamp >= expiration_ms
        ]
        for producer_id in expired:
            del self._entries[producer_id]
        return len(expired)


def last_sequence_of(header: BatchHeader) -> int:
    """The sequence of a batch's last record; sequences wrap from 2^31 - 1 to 0."""
    return (header.base_sequence + header.last_offset_delta) & SEQUENCE_MASK
