"""The only place that blocks.

A waiter is a latch: `wake` opens it for good, `wait` returns once it is open or the time is up.
Each wait needs a new waiter. Any thread may wake it, and any number of threads may wait for it,
except the I/O thread, which would deadlock.

Clients get their waiters from the engine, so that a simulation can hand out its own.
"""

from __future__ import annotations

import _thread
import threading
from contextlib import suppress
from typing import Protocol

from pyclient.errors import IllegalStateError, KafkaError


class Waiter(Protocol):
    """A latch: threads wait until any thread wakes it."""

    def wake(self) -> None:
        """End every wait, present and future. Costs little; more than once does no harm."""

    def wait(self, timeout_ms: float) -> bool:
        """Block until woken, at most `timeout_ms` (infinity: for ever); tell whether it was."""


class Waiting(Protocol):
    """Makes waiters, and knows the I/O thread."""

    def waiter(self) -> Waiter:
        """A new latch, not woken yet."""

    def claim_io_thread(self) -> None:
        """Note that the calling thread is the I/O thread."""

    def on_io_thread(self) -> bool:
        """Whether the calling thread is the I/O thread: a callback, then, that must not wait."""

    def abandon(self, error: KafkaError) -> None:
        """Make every wait raise `error`: no thread is left to wake a waiter."""


def check_may_wait(waiting: Waiting, call: str) -> None:
    """Refuse to block the I/O thread: it would wait for itself.

    Raises:
        IllegalStateError: the calling thread is the I/O thread; the message names `call`.
    """
    if waiting.on_io_thread():
        raise IllegalStateError(
            f"{call} would block the client's I/O thread, which runs this callback: "
            "hand the work to a thread of your own"
        )


class _LockWaiter:
    """A latch made of one lock: closed while the lock is held.

    A bare lock, because an Event costs ten times as much to make, and a signal (Ctrl-C)
    interrupts the wait for it just the same.
    """

    __slots__ = ("_lock", "_waiting", "_woken")

    def __init__(self, waiting: ThreadWaiting) -> None:
        self._waiting = waiting
        self._woken = False
        self._lock = _thread.allocate_lock()
        self._lock.acquire()

    def wake(self) -> None:
        if not self._woken:
            self._woken = True
            self._release()

    def wait(self, timeout_ms: float) -> bool:
        if self._woken:
            return True
        check_may_wait(self._waiting, "waiting")
        if self._waiting.abandoned is not None:
            raise self._waiting.abandoned
        seconds = min(max(timeout_ms, 0.0) / 1000, threading.TIMEOUT_MAX)
        if not self._lock.acquire(timeout=seconds):
            return False
        self._release()  # for the next waiter
        return True

    def _release(self) -> None:
        # Two threads may wake at the same moment: the latch is open then, as both wanted.
        with suppress(RuntimeError):
            self._lock.release()


class ThreadWaiting:
    """Waiters for ordinary threads.

    Attributes:
        abandoned: the error of every wait, once no thread is left to wake it.
    """

    def __init__(self) -> None:
        self._io_thread = -1
        self.abandoned: KafkaError | None = None

    def waiter(self) -> Waiter:
        """A new latch, not woken yet."""
        return _LockWaiter(self)

    def claim_io_thread(self) -> None:
        """Note that the calling thread is the I/O thread."""
        self._io_thread = threading.get_ident()

    def on_io_thread(self) -> bool:
        """Whether the calling thread is the I/O thread."""
        return threading.get_ident() == self._io_thread

    def abandon(self, error: KafkaError) -> None:
        """Make every wait raise `error`: no thread is left to wake a waiter."""
        self.abandoned = error
