"""The states of a transaction, their transitions, and what the log says about one. Plain data."""

from collections.abc import Mapping
from enum import Enum
from typing import Final, NamedTuple

from broker_stub.log.producers.transactions import EPOCH_BUMP_FROM
from pyclient.types import TopicPartition

NO_PRODUCER_ID: Final = -1
NO_EPOCH: Final = -1
NO_TIME: Final = -1
EPOCH_MAX: Final = 2**15 - 1


class TransactionState(Enum):
    """A transaction's state, as DescribeTransactions and ListTransactions name it."""

    EMPTY = "Empty"
    """The producer id is known, and no transaction was begun with it."""
    ONGOING = "Ongoing"
    PREPARE_COMMIT = "PrepareCommit"
    """It is decided: the markers are being written."""
    PREPARE_ABORT = "PrepareAbort"
    COMPLETE_COMMIT = "CompleteCommit"
    COMPLETE_ABORT = "CompleteAbort"
    DEAD = "Dead"
    """The transactional id has expired: its tombstone is being written."""
    PREPARE_EPOCH_FENCE = "PrepareEpochFence"
    """The producer is being fenced and its transaction aborted; never in the log."""

    @property
    def number(self) -> int:
        """The state in the log."""
        return _NUMBERS[self]


_NUMBERS: Final = {state: number for number, state in enumerate(TransactionState)}
STATES_BY_NUMBER: Final = dict(enumerate(TransactionState))

TRANSITIONS: Final[Mapping[TransactionState, frozenset[TransactionState]]] = {
    TransactionState.EMPTY: frozenset(
        {
            TransactionState.EMPTY,  # InitProducerId
            TransactionState.ONGOING,
            TransactionState.PREPARE_ABORT,  # transaction version 2 aborts also what is empty
            TransactionState.DEAD,
        }
    ),
    TransactionState.ONGOING: frozenset(
        {
            TransactionState.ONGOING,  # more partitions
            TransactionState.PREPARE_COMMIT,
            TransactionState.PREPARE_ABORT,
            TransactionState.PREPARE_EPOCH_FENCE,
        }
    ),
    TransactionState.PREPARE_EPOCH_FENCE: frozenset({TransactionState.PREPARE_ABORT}),
    TransactionState.PREPARE_COMMIT: frozenset({TransactionState.COMPLETE_COMMIT}),
    TransactionState.PREPARE_ABORT: frozenset({TransactionState.COMPLETE_ABORT}),
    TransactionState.COMPLETE_COMMIT: frozenset(
        {
            TransactionState.EMPTY,
            TransactionState.ONGOING,
            TransactionState.PREPARE_ABORT,
            TransactionState.DEAD,
        }
    ),
    TransactionState.COMPLETE_ABORT: frozenset(
        {
            TransactionState.EMPTY,
            TransactionState.ONGOING,
            TransactionState.PREPARE_ABORT,
            TransactionState.DEAD,
        }
    ),
    TransactionState.DEAD: frozenset(),
}

PREPARED: Final = frozenset({TransactionState.PREPARE_COMMIT, TransactionState.PREPARE_ABORT})
"""The outcome is decided, and markers are missing."""
EXPIRABLE: Final = frozenset(
    {TransactionState.EMPTY, TransactionState.COMPLETE_COMMIT, TransactionState.COMPLETE_ABORT}
)
"""No transaction is open: the transactional id may expire."""


class TransactionImage(NamedTuple):
    """One record of the log: everything about a transactional id at one moment."""

    transactional_id: str
    producer_id: int
    producer_epoch: int
    timeout_ms: int
    state: TransactionState
    partitions: frozenset[TopicPartition]
    start_ms: int
    last_update_ms: int
    previous_producer_id: int = NO_PRODUCER_ID
    """The id before the last one: a retry may still name it."""
    next_producer_id: int = NO_PRODUCER_ID
    """The id to use once the markers are written, because the epochs have run out."""
    last_producer_epoch: int = NO_EPOCH
    """The epoch before the last bump: a retry may still name it. Not in the log."""
    client_version: int = 0
    """The transaction version by which it was last changed."""

    @property
    def bumps_epoch(self) -> bool:
        """Whether its end gives the producer a new epoch."""
        return self.client_version >= EPOCH_BUMP_FROM

    @property
    def is_epoch_exhausted(self) -> bool:
        """Whether the last epoch is in use: one more is kept free for fencing."""
        return is_exhausted(self.producer_epoch)


def is_exhausted(epoch: int) -> bool:
    """Whether no producer may get a later epoch than this one."""
    return epoch >= EPOCH_MAX - 1


def new_image(
    transactional_id: str, producer_id: int, timeout_ms: int, now_ms: int
) -> TransactionImage:
    """A transactional id that was never seen; InitProducerId gives it epoch 0."""
    return TransactionImage(
        transactional_id,
        producer_id,
        NO_EPOCH,
        timeout_ms,
        TransactionState.EMPTY,
        frozenset(),
        NO_TIME,
        now_ms,
    )
