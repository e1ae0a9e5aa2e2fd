"""The lock that starting, stopping and killing a broker take: one of them at a time.

Any thread. The lock is held while the broker's threads end: those threads must not take it. It
guards `_owner`, and what `Broker` touches only under it.
"""

from collections.abc import Callable, Iterator
from contextlib import contextmanager
from threading import RLock, get_ident

from pyclient.errors import IllegalStateError


class LifecycleLock:
    """A lock whose owner is known, so that a signal handler can defer instead of deadlocking."""

    def __init__(self) -> None:
        self._lock = RLock()  # reentrant: a signal handler on the owner's thread gets an error
        self._owner: int | None = None
        self._deferred: Callable[[], None] | None = None

    def defer(self, action: Callable[[], None]) -> bool:
        """Run `action` when this thread releases the lock; False if it does not hold it.

        A signal handler that stops the broker may have interrupted its start.
        """
        if self._owner != get_ident():
            return False
        self._deferred = action
        return True

    @contextmanager
    def held(self) -> Iterator[None]:
        """Hold the lock for the block, then run what was deferred.

        Raises:
            IllegalStateError: this thread holds it: a signal handler interrupted the block.
        """
        try:
            with self._lock:
                if self._owner is not None:
                    raise IllegalStateError(
                        "this thread is in the middle of starting or stopping the broker"
                    )
                try:
                    self._owner = get_ident()
                    yield
                finally:
                    self._owner = None
        finally:
            action, self._deferred = self._deferred, None
            if action is not None:
                action()
