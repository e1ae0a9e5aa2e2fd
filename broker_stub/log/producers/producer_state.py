"""What a partition remembers of idempotent producers, so that a retry is written once.

Per producer: its epoch, the sequences and offsets of its last five batches (as many as a client
may have in flight), and where its open transaction starts, which folders of Apache Kafka may hold.
Checked before a batch is written, updated after. Guarded by the lock of its log.
"""

from collections.abc import Iterable, Iterator, Mapping
from typing import Final, NamedTuple

from broker_stub.log.batch.header import NO_PRODUCER_ID, BatchHeader
from pyclient.errors import InvalidProducerEpochError, OutOfOrderSequenceError

NO_SEQUENCE: Final = -1
NO_EPOCH: Final = -1
NO_OFFSET: Final = -1
BATCHES_REMEMBERED: Final = 5
_SEQUENCE_MASK: Final = 2**31 - 1


class RememberedBatch(NamedTuple):
    """A batch as a retry of it would show itself, and where it was written."""

    last_sequence: int
    last_offset: int
    offset_delta: int
    timestamp: int

    @classmethod
    def of(cls, header: BatchHeader, last_offset: int) -> "RememberedBatch":
        """A batch that was written with the last offset given."""
        return cls(
            last_sequence_of(header), last_offset, header.last_offset_delta, header.max_timestamp
        )

    @property
    def first_sequence(self) -> int:
        """The sequence of its first record."""
        return (self.last_sequence - self.offset_delta) & _SEQUENCE_MASK

    @property
    def first_offset(self) -> int:
        """The offset of its first record."""
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
        # A snapshot keeps one batch: until the log's tail was read, there may be four more.
        self.tail_is_known = tail_is_known

    @property
    def last_sequence(self) -> int:
        """The sequence of the last record; -1 when none is remembered."""
        return self.batches[-1].last_sequence if self.batches else NO_SEQUENCE

    def duplicate_of(self, header: BatchHeader) -> RememberedBatch | None:
        """The remembered batch that `header`'s is a retry of."""
        if header.producer_epoch != self.epoch:
            return None
        last_sequence = last_sequence_of(header)
        for batch in reversed(self.batches):
            if (
                batch.last_sequence == last_sequence
                and batch.first_sequence == header.base_sequence
            ):
                return batch
        return None

    def may_have_forgotten(self, header: BatchHeader) -> bool:
        """Whether the batch may be a retry of one that only the log's tail still shows."""
        behind = (self.last_sequence - header.base_sequence) & _SEQUENCE_MASK
        return (
            not self.tail_is_known
            and header.producer_epoch == self.epoch
            and behind < _SEQUENCE_MASK // 2  # else it is ahead
        )

    def recall(self, older: Iterable[RememberedBatch]) -> None:
        """Remember batches before the known ones, too: all that the log's tail shows."""
        self.batches = [*older, *self.batches][-BATCHES_REMEMBERED:]
        self.tail_is_known = True

    def note(self, header: BatchHeader, last_offset: int) -> None:
        """Note a batch of records that was written with the last offset given."""
        self._use_epoch(header)
        if header.is_transactional and self.current_txn_first_offset == NO_OFFSET:
            self.current_txn_first_offset = last_offset - header.last_offset_delta
        self.batches.append(RememberedBatch.of(header, last_offset))
        del self.batches[:-BATCHES_REMEMBERED]

    def note_marker(self, header: BatchHeader, coordinator_epoch: int) -> None:
        """Note that the open transaction has ended."""
        self._use_epoch(header)
        self.coordinator_epoch = coordinator_epoch
        self.current_txn_first_offset = NO_OFFSET

    def _use_epoch(self, header: BatchHeader) -> None:
        if header.producer_epoch != self.epoch:
            self.epoch = header.producer_epoch
            self.batches.clear()
            self.tail_is_known = True  # sequences start anew, there is no older retry
        self.last_timestamp = header.max_timestamp


class ProducerState:
    """The producers of one partition, by id.

    Attributes:
        is_recalling: whether the log's tail is being read for them, or about to be.
    """

    __slots__ = ("_entries", "_open_transactions", "is_recalling")

    def __init__(self) -> None:
        self.is_recalling = False
        self._entries: dict[int, ProducerEntry] = {}
        self._open_transactions: dict[int, int] = {}  # first offsets, by producer id

    def __len__(self) -> int:
        return len(self._entries)

    def __iter__(self) -> Iterator[ProducerEntry]:
        return iter(self._entries.values())

    def get(self, producer_id: int) -> ProducerEntry | None:
        """The producer's entry; None when it is not known here."""
        return self._entries.get(producer_id)

    def load(self, entries: Iterable[ProducerEntry]) -> None:
        """Take over the entries of a snapshot, and only those."""
        self._entries = {entry.producer_id: entry for entry in entries}
        self._open_transactions.clear()
        for entry in self:
            self._note_transaction(entry)

    def recall(self, older: Mapping[int, Iterable[RememberedBatch]]) -> None:
        """Complete the entries of a snapshot by what the log's tail shows, by producer id."""
        for entry in self:
            if not entry.tail_is_known:
                entry.recall(older.get(entry.producer_id, ()))

    @property
    def first_unstable_offset(self) -> int | None:
        """Where the oldest open transaction starts; None when none is open."""
        return min(self._open_transactions.values(), default=None)

    @property
    def open_transactions(self) -> Mapping[int, int]:
        """Where each open transaction starts, by producer id."""
        return self._open_transactions

    def check(self, header: BatchHeader, *, check_sequence: bool) -> None:
        """Refuse a batch whose producer is fenced, or that does not follow its last one.

        An unknown producer may start anywhere: what it wrote may have expired.

        Raises:
            InvalidProducerEpochError: a newer instance of the producer has written here.
            OutOfOrderSequenceError: batches before this one are missing.
        """
        entry = self._entries.get(header.producer_id)
        if entry is None or entry.epoch == NO_EPOCH:
            return
        if header.producer_epoch < entry.epoch:
            raise InvalidProducerEpochError(
                f"producer {header.producer_id} writes with epoch {header.producer_epoch}, "
                f"but epoch {entry.epoch} is in use"
            )
        if not check_sequence:
            return
        if header.producer_epoch > entry.epoch:
            expected = 0
        else:
            expected = (entry.last_sequence + 1) & _SEQUENCE_MASK
        if header.base_sequence != expected:
            raise OutOfOrderSequenceError(
                f"producer {header.producer_id}, epoch {header.producer_epoch}, sends sequence "
                f"{header.base_sequence} where {expected} is next"
            )

    def update(self, header: BatchHeader, last_offset: int) -> None:
        """Note a batch of records that was written."""
        if header.producer_id == NO_PRODUCER_ID:
            return
        entry = self._entry_of(header)
        entry.note(header, last_offset)
        if header.is_transactional:
            self._note_transaction(entry)

    def end_transaction(self, header: BatchHeader, coordinator_epoch: int) -> int | None:
        """Note a marker that was written; where the transaction started that it ends, if one."""
        entry = self._entry_of(header)
        entry.note_marker(header, coordinator_epoch)
        return self._open_transactions.pop(header.producer_id, None)

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
        """Forget producers that have not written for so long; how many were."""
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
    return (header.base_sequence + header.last_offset_delta) & _SEQUENCE_MASK
