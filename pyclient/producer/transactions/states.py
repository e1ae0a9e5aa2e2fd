"""The states of a transactional producer: one table, and the lock that guards the current one.

Callers and the I/O thread change the state, both through `TransactionStatus`. Its lock is held for
a few assignments only: nothing waits, logs or calls back under it, and no other lock is taken.
"""

from collections.abc import Callable, Mapping
from copy import copy
from enum import Enum
from typing import Final

from pyclient.errors import IllegalStateError, KafkaError, TransactionAbortableError
from pyclient.net.waiting import Waiter
from pyclient.producer.reentry import check_not_reentered, new_lock


class TransactionState(Enum):
    """What the producer is doing, in words for messages."""

    UNINITIALIZED = "init_transactions() was not called yet"
    INITIALIZING = "init_transactions() is under way"
    READY = "no transaction is open"
    IN_TRANSACTION = "a transaction is open"
    PREPARING = "the transaction is being prepared"
    PREPARED = "the transaction is prepared"
    COMMITTING = "the transaction is being committed"
    ABORTING = "the transaction is being aborted"
    BUMPING = "the producer gets a new epoch"
    ABORTABLE_ERROR = "the transaction has failed"
    FATAL_ERROR = "the producer has failed"


_S = TransactionState

TRANSITIONS: Final[Mapping[TransactionState, frozenset[TransactionState]]] = {
    _S.UNINITIALIZED: frozenset({_S.INITIALIZING, _S.FATAL_ERROR}),
    # Back, if the principal is not allowed to use the id: an operator may change that.
    _S.INITIALIZING: frozenset({_S.READY, _S.UNINITIALIZED, _S.FATAL_ERROR}),
    _S.READY: frozenset({_S.IN_TRANSACTION, _S.FATAL_ERROR}),
    _S.IN_TRANSACTION: frozenset(
        {_S.PREPARING, _S.COMMITTING, _S.ABORTING, _S.ABORTABLE_ERROR, _S.FATAL_ERROR}
    ),
    _S.PREPARING: frozenset({_S.PREPARED, _S.ABORTING, _S.ABORTABLE_ERROR, _S.FATAL_ERROR}),
    _S.PREPARED: frozenset({_S.COMMITTING, _S.ABORTING, _S.FATAL_ERROR}),
    _S.COMMITTING: frozenset({_S.READY, _S.BUMPING, _S.ABORTABLE_ERROR, _S.FATAL_ERROR}),
    _S.ABORTING: frozenset({_S.READY, _S.BUMPING, _S.FATAL_ERROR}),
    _S.BUMPING: frozenset({_S.READY, _S.FATAL_ERROR}),
    _S.ABORTABLE_ERROR: frozenset({_S.ABORTING, _S.FATAL_ERROR}),
    _S.FATAL_ERROR: frozenset(),
}

OPEN: Final = frozenset({_S.IN_TRANSACTION, _S.PREPARING, _S.COMMITTING})
"""Records and offsets of the transaction may still go out for the first time."""
FAILED: Final = frozenset({_S.ABORTABLE_ERROR, _S.FATAL_ERROR})

INIT: Final = "init_transactions()"
BEGIN: Final = "begin_transaction()"
SEND_OFFSETS: Final = "send_offsets_to_transaction()"
PREPARE: Final = "prepare_transaction()"
COMMIT: Final = "commit_transaction()"
ABORT: Final = "abort_transaction()"

_REMEDIES: Final[Mapping[TransactionState, str]] = {
    _S.UNINITIALIZED: f"call {INIT} first, once",
    _S.INITIALIZING: f"call {INIT} again, until it returns",
    _S.READY: f"call {BEGIN} first",
    _S.IN_TRANSACTION: f"call {COMMIT} or {ABORT} first",
    _S.PREPARING: f"call {PREPARE} again, until it returns, or {ABORT}",
    _S.PREPARED: f"call {COMMIT} or {ABORT} first",
    _S.COMMITTING: f"call {COMMIT} again, until it returns",
    _S.ABORTING: f"call {ABORT} again, until it returns",
    _S.BUMPING: "call the method that timed out again, until it returns",
}


class PendingCall:
    """A call whose result the I/O thread brings.

    Attributes:
        name: the method.
        is_armed: the caller has finished its part, so that the I/O thread may act.
        is_done: the result is known: `error`, or success.
    """

    __slots__ = ("error", "is_armed", "is_done", "name", "waiter")

    def __init__(self, name: str, waiter: Waiter) -> None:
        self.name = name
        self.waiter = waiter
        self.is_armed = False
        self.is_done = False
        self.error: KafkaError | None = None

    def finish(self, error: KafkaError | None = None) -> None:
        """Tell the caller the result, once."""
        if not self.is_done:
            self.error = error
            self.is_done = True
            self.waiter.wake()


class TransactionStatus:
    """The state, the error that led to it, and the call that waits for the next one.

    Attributes:
        state: changed under the lock; the I/O thread and callers read it without.
        error: why the transaction or the producer has failed.
    """

    def __init__(self, transactional_id: str, new_waiter: Callable[[], Waiter]) -> None:
        self.transactional_id = transactional_id
        self.state = TransactionState.UNINITIALIZED
        self.error: KafkaError | None = None
        self._new_waiter = new_waiter
        self._pending: PendingCall | None = None
        self._lock = new_lock()

    # --- callers' threads --------------------------------------------------------------------

    def start(
        self, name: str, sources: frozenset[TransactionState], target: TransactionState
    ) -> PendingCall:
        """Begin a call that changes the state; the pending one if it is the same call again.

        Raises:
            IllegalStateError: another call has to be finished first, or it is not its turn.
            KafkaError: the transaction, or the producer, has failed.
        """
        check_not_reentered(self._lock)
        waiter = self._new_waiter()
        with self._lock:
            pending = self._pending
            if pending is not None:
                if pending.name == name:
                    return pending
                self._check_replaceable(pending, name)
            if self.state not in sources:
                raise self._refusal(name)
            self._become(target)
            self._pending = PendingCall(name, waiter)
            return self._pending

    def begin(self) -> None:
        """Open a transaction.

        Raises:
            As `start`.
        """
        check_not_reentered(self._lock)
        with self._lock:
            if self._pending is not None:
                self._check_replaceable(self._pending, BEGIN)
            if self.state is not TransactionState.READY:
                raise self._refusal(BEGIN)
            self._become(TransactionState.IN_TRANSACTION)

    def check_in_transaction(self, call: str) -> None:
        """Raise unless a transaction is open and takes records.

        Raises:
            As `start`.
        """
        if self.state is not TransactionState.IN_TRANSACTION:
            raise self._refusal(call)

    def acknowledge(self, pending: PendingCall) -> None:
        """The caller has seen the result: other calls may follow."""
        check_not_reentered(self._lock)
        with self._lock:
            if self._pending is pending:
                self._pending = None

    @property
    def pending(self) -> PendingCall | None:
        """The call that is under way, or whose result was not seen yet."""
        return self._pending

    def _check_replaceable(self, pending: PendingCall, name: str) -> None:
        """Raise if `name` may not follow a call that timed out."""
        if name == ABORT and (pending.name == PREPARE or (pending.is_done and pending.error)):
            return
        raise IllegalStateError(
            f"{name}: {pending.name} was called before and has timed out: call it again, until it"
            " returns"
        )

    def _refusal(self, call: str) -> KafkaError:
        state, error = self.state, self.error
        if state in FAILED and error is not None:
            return failure(state, error, self.transactional_id)
        return IllegalStateError(f"{call}: {state.value}: {_REMEDIES.get(state, 'close it')}")

    # --- the I/O thread ----------------------------------------------------------------------

    def move(self, target: TransactionState) -> PendingCall | None:
        """Change the state; returns the pending call, which the caller finishes if it is over."""
        with self._lock:
            self._become(target)
            if target is TransactionState.READY:
                self.error = None
            return self._pending

    def fail(self, target: TransactionState, error: KafkaError) -> PendingCall | None:
        """Change to an error state; the pending call, for the caller to finish it."""
        with self._lock:
            self._become(target)
            self.error = error
            return self._pending

    def _become(self, target: TransactionState) -> None:
        assert target in TRANSITIONS[self.state], f"{self.state.name} to {target.name}"
        self.state = target


def failure(state: TransactionState, error: KafkaError, transactional_id: str) -> KafkaError:
    """What a call raises after a failure: says what has failed and what to do."""
    if state is TransactionState.FATAL_ERROR:
        return copy(error)
    if error.abortable:
        return copy(error)
    found = TransactionAbortableError(
        f"the transaction of {transactional_id!r} has failed, call {ABORT}: {error}"
    )
    found.__cause__ = error
    return found
