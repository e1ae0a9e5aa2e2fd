"""Checks a batch's producer epoch and sequence, and finds duplicates, before it is written.

The last five batches of a producer are remembered, as many as a client may have in flight. After a
restart, a snapshot has the last one of each; the four before it are in the log's tail. That is
read (see `recall`) only when a sequence looks like a retry of them, so a clean start reads nothing.
It happens on the background thread because it may take long; meanwhile such a retry is refused
with a retriable error. Called under the lock of the log.
"""

from collections.abc import Callable, Sequence

from broker_stub.log.batch.header import BatchHeader
from broker_stub.log.producers.producer_state import (
    NO_EPOCH,
    SEQUENCE_MASK,
    ProducerEntry,
    ProducerState,
    RememberedBatch,
    last_sequence_of,
)
from pyclient.errors import (
    InvalidProducerEpochError,
    InvalidTxnStateError,
    KafkaStorageError,
    OutOfOrderSequenceError,
)


def check_producers(
    state: ProducerState,
    headers: Sequence[BatchHeader],
    request_recall: Callable[[], None],
    *,
    from_client: bool,
    is_verified: bool,
    starts_at_zero: bool = False,
) -> RememberedBatch | None:
    """Check the batches of an append; returns the earlier batch if one is a duplicate.

    Duplicates, sequences and transactions are checked only for clients. `is_verified` says that
    the transaction coordinator has the partition in the producer's transaction; `starts_at_zero`
    that its epoch is new with every transaction, so that no earlier sequence can be missing.

    Raises:
        InvalidProducerEpochError, OutOfOrderSequenceError: see `check_sequence`.
        InvalidTxnStateError: see `_check_transaction`.
        KafkaStorageError: the producer's older batches have to be read first; `request_recall` was
            called, unless that is under way.
    """
    for header in headers:
        if header.producer_id < 0:
            continue
        entry = state.get(header.producer_id)
        if entry is None:
            # An unknown producer may start anywhere: its entry may have expired.
            if from_client:
                _check_transaction(entry, header, is_verified=is_verified)
                if starts_at_zero and header.is_transactional and header.base_sequence:
                    raise _out_of_order(header, 0)
            continue
        if from_client:
            duplicate = find_duplicate(entry, header)
            if duplicate is not None:
                return duplicate
            if _may_be_forgotten(entry, header):
                if not state.is_recalling:
                    state.is_recalling = True
                    request_recall()
                raise KafkaStorageError(
                    f"the batches that producer {header.producer_id} wrote before the broker "
                    "started are being read; send the batch again"
                )
            # First: a fenced producer's batch is never verified, and INVALID_TXN_STATE would be
            # fatal to older clients.
            _check_epoch(entry, header)
            _check_transaction(entry, header, is_verified=is_verified)
        check_sequence(entry, header, from_client=from_client)
    return None


def _check_transaction(
    entry: ProducerEntry | None, header: BatchHeader, *, is_verified: bool
) -> None:
    """Refuse a batch outside its producer's transaction, and one of none inside it.

    Raises:
        InvalidTxnStateError: as Apache Kafka says it.
    """
    is_open = entry is not None and entry.is_in_transaction
    if header.is_transactional:
        is_ongoing = is_open and entry is not None and entry.epoch == header.producer_epoch
        if not is_ongoing and not is_verified:
            raise InvalidTxnStateError("Record was not part of an ongoing transaction")
    elif is_open:
        raise InvalidTxnStateError(
            f"Expected transactional write from producer {header.producer_id}"
        )


def find_duplicate(entry: ProducerEntry, header: BatchHeader) -> RememberedBatch | None:
    """The remembered batch with the same epoch and sequences."""
    if header.producer_epoch != entry.epoch:
        return None
    last_sequence = last_sequence_of(header)
    for batch in reversed(entry.batches):
        if batch.last_sequence == last_sequence and batch.first_sequence == header.base_sequence:
            return batch
    return None


def _may_be_forgotten(entry: ProducerEntry, header: BatchHeader) -> bool:
    """Whether the batch may be a retry of one that is only in the log's tail."""
    behind = (entry.last_sequence - header.base_sequence) & SEQUENCE_MASK
    return (
        not entry.tail_is_known
        and header.producer_epoch == entry.epoch
        and behind < SEQUENCE_MASK // 2  # else it is ahead
    )


def check_sequence(entry: ProducerEntry, header: BatchHeader, *, from_client: bool) -> None:
    """Refuse a batch whose producer is fenced or, for clients, whose sequence is not the next.

    Raises:
        InvalidProducerEpochError: a newer instance of the producer has written here.
        OutOfOrderSequenceError: batches before this one are missing.
    """
    if entry.epoch == NO_EPOCH:
        return
    _check_epoch(entry, header)
    if not from_client:
        return
    next_sequence = (entry.last_sequence + 1) & SEQUENCE_MASK
    expected = 0 if header.producer_epoch > entry.epoch else next_sequence
    if header.base_sequence != expected:
        raise _out_of_order(header, expected)


def _check_epoch(entry: ProducerEntry, header: BatchHeader) -> None:
    if header.producer_epoch < entry.epoch:
        raise InvalidProducerEpochError(
            f"producer {header.producer_id} writes with epoch {header.producer_epoch}, "
            f"but epoch {entry.epoch} is in use"
        )


def _out_of_order(header: BatchHeader, expected: int) -> OutOfOrderSequenceError:
    return OutOfOrderSequenceError(
        f"producer {header.producer_id}, epoch {header.producer_epoch}, sends sequence "
        f"{header.base_sequence} where {expected} is next"
    )
