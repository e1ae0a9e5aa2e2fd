"""Whose turn it is: what starts or ends a broker happens one after another.

Any thread. The lock is held for a whole turn, which may wait for other threads to end: those must
not ask for one. It guards `_taken_by`, and whatever is only touched in turns.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator
from contextlib import contextmanager
from threading import RLock, get_ident

from pyclient.errors import IllegalStateError


class Turns:
    """One turn at a time."""

    def __init__(self) -> None:
        self._lock = RLock()  # one that a thread does not wait for itself at
        self._taken_by: int | None = None
        self._wish: Callable[[], None] | None = None

    def put_off(self, wish: Callable[[], None]) -> bool:
        """Have something done once this thread's turn is over; False if it has none.

        A signal handler that wants to end the broker may have interrupted a turn.
        """
        if self._taken_by != get_ident():
            return False
        self._wish = wish
        return True

    @contextmanager
    def taken(self) -> Iterator[None]:
        """Wait for a turn, have it for the block, and then do what was put off.

        Raises:
            IllegalStateError: the thread has its turn already: a signal handler interrupted it.
        """
        try:
            with self._lock:
                if self._taken_by is not None:
                    raise IllegalStateError(
                        "this thread is in the middle of starting or ending the broker"
                    )
                try:
                    self._taken_by = get_ident()
                    yield
                finally:
                    self._taken_by = None
        finally:
            wish, self._wish = self._wish, None
            if wish is not None:
                wish()
