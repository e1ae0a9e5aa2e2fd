"""One transactional id: decides what a request does to its transaction. No I/O, no clock.

A decision is an image of the transaction to write to the log. `begin` keeps it as pending, and
nothing else is decided meanwhile (CONCURRENT_TRANSACTIONS); `complete` makes it current when the
log has it, `fail` drops it. A retried request is recognised and answered without a change.
"""

from collections.abc import Iterable
from typing import NamedTuple

from broker_stub.coordinator.transactions.transaction_state import (
    EPOCH_MAX,
    NO_EPOCH,
    NO_PRODUCER_ID,
    NO_TIME,
    PREPARED,
    TRANSITIONS,
    TransactionImage,
    TransactionState,
    is_exhausted,
)
from broker_stub.log.producers.transactions import EPOCH_BUMP_FROM
from pyclient.errors import (
    ConcurrentTransactionsError,
    InvalidPidMappingError,
    InvalidTxnStateError,
    ProducerFencedError,
    TransactionAbortableError,
)
from pyclient.types import TopicPartition


class NeedsProducerIdError(Exception):
    """The epochs of the producer id have run out: decide again with a new id."""


class ProducerIdAndEpoch(NamedTuple):
    """A producer, as a request names it."""

    producer_id: int
    epoch: int


class Transaction:
    """The state of one transactional id. Serving thread only.

    Attributes:
        image: what the log says.
        pending: what is being written to the log.
    """

    __slots__ = ("image", "pending")

    def __init__(self, image: TransactionImage) -> None:
        self.image = image
        self.pending: TransactionImage | None = None

    @property
    def state(self) -> TransactionState:
        """The state that the log has."""
        return self.image.state

    # --- decisions ---------------------------------------------------------------------------

    def init_producer_id(
        self,
        timeout_ms: int,
        expected: ProducerIdAndEpoch | None,
        new_producer_id: int | None,
        now_ms: int,
    ) -> TransactionImage | None:
        """Give the producer its next epoch; None if the ongoing transaction has to end first.

        Args:
            timeout_ms: the timeout of its transactions.
            expected: the id and epoch that the producer has, if it goes on after an error
                (KIP-360); others are fenced.
            new_producer_id: an id to use if the epochs have run out.
            now_ms: the time.

        Raises:
            ConcurrentTransactionsError: the last transaction is not complete: retry.
            ProducerFencedError: another producer has taken over.
            NeedsProducerIdError: decide again with `new_producer_id`.
        """
        image = self.image
        self._check_idle()
        if expected is not None and not self._is_known(expected):
            raise self._fenced(expected.epoch)
        if image.state in PREPARED:
            raise self._concurrent()
        if image.state is TransactionState.ONGOING:
            return None
        if image.is_epoch_exhausted and (
            expected is None or expected.epoch == image.producer_epoch
        ):
            if new_producer_id is None:
                raise NeedsProducerIdError
            producer_id, epoch = new_producer_id, 0
            last_epoch = NO_EPOCH if expected is None else image.producer_epoch
        else:
            producer_id = image.producer_id
            epoch, last_epoch = self._bumped(expected)
        return image._replace(
            producer_id=producer_id,
            previous_producer_id=image.producer_id,
            next_producer_id=NO_PRODUCER_ID,
            producer_epoch=epoch,
            last_producer_epoch=last_epoch,
            timeout_ms=timeout_ms,
            state=TransactionState.EMPTY,
            partitions=frozenset(),
            start_ms=NO_TIME,
            last_update_ms=now_ms,
        )

    def _is_known(self, expected: ProducerIdAndEpoch) -> bool:
        image = self.image
        return (
            image.producer_epoch == NO_EPOCH  # just created
            or expected.producer_id == image.producer_id
            # A retry after the epochs had run out: the producer has not heard of its new id.
            or (expected.producer_id == image.previous_producer_id and is_exhausted(expected.epoch))
        )

    def _bumped(self, expected: ProducerIdAndEpoch | None) -> tuple[int, int]:
        """The next epoch, and the last one that a retry may name."""
        current = self.image.producer_epoch
        if expected is None:
            return current + 1, NO_EPOCH
        if current in (NO_EPOCH, expected.epoch):
            return current + 1, current
        if expected.epoch == self.image.last_producer_epoch:
            return current, expected.epoch  # a retry: it was bumped already
        raise self._fenced(expected.epoch)

    def add_partitions(
        self,
        producer: ProducerIdAndEpoch,
        partitions: Iterable[TopicPartition],
        client_version: int,
        now_ms: int,
    ) -> TransactionImage | None:
        """Add partitions, and begin the transaction with the first; None if it has them.

        Raises:
            InvalidPidMappingError, ProducerFencedError: the producer is another one.
            ConcurrentTransactionsError: the last transaction is not complete: retry.
        """
        image = self.image
        self._check_producer(producer)
        self._check_idle()
        if image.state in PREPARED:
            raise self._concurrent()
        wanted = image.partitions.union(partitions)
        is_ongoing = image.state is TransactionState.ONGOING
        if is_ongoing and len(wanted) == len(image.partitions):
            return None
        return image._replace(
            state=TransactionState.ONGOING,
            partitions=wanted,
            start_ms=image.start_ms if is_ongoing else now_ms,
            last_update_ms=now_ms,
            client_version=client_version,
        )

    def verify_partitions(
        self, producer: ProducerIdAndEpoch, partitions: Iterable[TopicPartition]
    ) -> dict[TopicPartition, TransactionAbortableError]:
        """The partitions that are not in the transaction, and the error for each.

        Raises:
            InvalidPidMappingError, ProducerFencedError: the producer is another one.
            ConcurrentTransactionsError: the transaction is ending: retry.
        """
        self._check_producer(producer)
        if self.image.state in PREPARED:
            raise self._concurrent()
        return {
            one: TransactionAbortableError(f"{one.topic}-{one.partition} is not in the transaction")
            for one in partitions
            if one not in self.image.partitions
        }

    def end(
        self,
        producer: ProducerIdAndEpoch,
        *,
        commit: bool,
        client_version: int,
        new_producer_id: int | None,
        now_ms: int,
    ) -> TransactionImage | None:
        """Commit or abort; None if a retry finds it done.

        Raises:
            InvalidPidMappingError, ProducerFencedError: the producer is another one.
            ConcurrentTransactionsError: the markers are being written: retry.
            InvalidTxnStateError: nothing to end, or it ended the other way.
            NeedsProducerIdError: decide again with `new_producer_id`.
        """
        image = self.image
        bumps = client_version >= EPOCH_BUMP_FROM
        is_retry = bumps and self._is_retried_end(producer)
        if image.producer_id != producer.producer_id and not is_retry:
            raise self._unmapped(producer.producer_id)
        if not is_retry and (
            producer.epoch != image.producer_epoch or (bumps and image.state in PREPARED)
        ):
            raise self._fenced(producer.epoch)
        self._check_idle()
        outcome = _outcome(commit=commit)
        if image.state in PREPARED:
            if image.state is outcome:
                raise self._concurrent()
            raise self._cannot_end(commit=commit)
        if image.state is TransactionState.ONGOING:
            return self._ended(
                outcome, client_version, new_producer_id, now_ms, started_ms=image.start_ms
            )
        if bumps and not commit and not is_retry:
            # The partitions of the transaction may not have been added yet, so that an abort is
            # always possible: it fences the batches that are still on their way.
            return self._ended(outcome, client_version, new_producer_id, now_ms, started_ms=now_ms)
        if image.state is _COMPLETED.get(outcome) and (is_retry or not bumps):
            return None
        raise self._cannot_end(commit=commit)

    def _is_retried_end(self, producer: ProducerIdAndEpoch) -> bool:
        """Whether the producer may not have heard of the epoch that its EndTxn gave it."""
        image = self.image
        bumped = (
            producer.producer_id == image.producer_id and producer.epoch + 1 == image.producer_epoch
        )
        if image.state in PREPARED:
            return bumped
        overflowed = (
            producer.producer_id == image.previous_producer_id
            and producer.epoch == EPOCH_MAX - 1
            and image.producer_epoch == 0
        )
        is_complete = image.state in _COMPLETED.values()
        return is_complete and (bumped or overflowed)

    def _ended(
        self,
        outcome: TransactionState,
        client_version: int,
        new_producer_id: int | None,
        now_ms: int,
        *,
        started_ms: int,
    ) -> TransactionImage:
        image = self.image
        epoch, last_epoch = image.producer_epoch, image.last_producer_epoch
        next_producer_id = NO_PRODUCER_ID
        if client_version >= EPOCH_BUMP_FROM:
            if image.is_epoch_exhausted:
                if new_producer_id is None:
                    raise NeedsProducerIdError
                next_producer_id = new_producer_id
            epoch, last_epoch = epoch + 1, epoch
        return image._replace(
            next_producer_id=next_producer_id,
            producer_epoch=epoch,
            last_producer_epoch=last_epoch,
            state=outcome,
            start_ms=started_ms,
            last_update_ms=now_ms,
            client_version=client_version,
        )

    def fence(self, client_version: int, now_ms: int) -> TransactionImage:
        """Abort the ongoing transaction of a producer that is gone or too slow, and fence it."""
        image = self.image
        assert image.state is TransactionState.ONGOING
        self.begin(image._replace(state=TransactionState.PREPARE_EPOCH_FENCE))
        # A producer that fenced itself by naming its epoch (KIP-360) names it again in its retry.
        last_epoch = image.producer_epoch if client_version >= EPOCH_BUMP_FROM else NO_EPOCH
        return image._replace(
            producer_epoch=image.producer_epoch + 1,
            last_producer_epoch=last_epoch,
            state=TransactionState.PREPARE_ABORT,
            last_update_ms=now_ms,
            client_version=client_version,
        )

    def completed(self, now_ms: int) -> TransactionImage:
        """The markers of a decided transaction are written."""
        image = self.image
        if image.bumps_epoch:
            has_next = image.next_producer_id != NO_PRODUCER_ID
            image = image._replace(
                producer_id=image.next_producer_id if has_next else image.producer_id,
                previous_producer_id=image.producer_id,
                next_producer_id=NO_PRODUCER_ID,
                producer_epoch=0 if has_next else image.producer_epoch,
            )
        return image._replace(
            state=_COMPLETED[image.state], partitions=frozenset(), last_update_ms=now_ms
        )

    def dead(self) -> TransactionImage:
        """The transactional id has expired."""
        return self.image._replace(state=TransactionState.DEAD)

    # --- the log -----------------------------------------------------------------------------

    def begin(self, image: TransactionImage) -> None:
        """A decision is being written."""
        origin = self.image if self.pending is None else self.pending
        if image.state not in TRANSITIONS[origin.state]:
            raise AssertionError(
                f"transaction {image.transactional_id}: {origin.state} to {image.state}"
            )
        self.pending = image

    def complete(self) -> None:
        """The log has the decision."""
        assert self.pending is not None
        self.image = self.pending
        self.pending = None

    def fail(self) -> None:
        """The log refused it: as if nothing had been asked."""
        self.pending = None

    # --- checks ------------------------------------------------------------------------------

    def _check_producer(self, producer: ProducerIdAndEpoch) -> None:
        if producer.producer_id != self.image.producer_id:
            raise self._unmapped(producer.producer_id)
        if producer.epoch != self.image.producer_epoch:
            raise self._fenced(producer.epoch)

    def _check_idle(self) -> None:
        if self.pending is not None:
            raise self._concurrent()

    def _concurrent(self) -> ConcurrentTransactionsError:
        return ConcurrentTransactionsError(
            f"a change of {self.image.transactional_id} is under way; retry"
        )

    def _unmapped(self, producer_id: int) -> InvalidPidMappingError:
        return InvalidPidMappingError(
            f"{self.image.transactional_id} has the producer id {self.image.producer_id}, "
            f"not {producer_id}"
        )

    def _fenced(self, epoch: int) -> ProducerFencedError:
        return ProducerFencedError(
            f"{self.image.transactional_id} has the epoch {self.image.producer_epoch}, not {epoch}"
        )

    def _cannot_end(self, *, commit: bool) -> InvalidTxnStateError:
        what = "committed" if commit else "aborted"
        return InvalidTxnStateError(
            f"{self.image.transactional_id} can't be {what} in state {self.image.state.value}"
        )


_COMPLETED = {
    TransactionState.PREPARE_COMMIT: TransactionState.COMPLETE_COMMIT,
    TransactionState.PREPARE_ABORT: TransactionState.COMPLETE_ABORT,
}


def _outcome(*, commit: bool) -> TransactionState:
    return TransactionState.PREPARE_COMMIT if commit else TransactionState.PREPARE_ABORT
