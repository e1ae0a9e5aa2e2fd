"""Whose turn it is: what starts or ends a broker happens one after another.

Any thread. The lock is held for a whole turn, which may wait for other threads to end: those must
not ask for one. It guards `_is_taken`, and whatever is only touched in turns.
"""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager
from threading import RLock

from pyclient.errors import IllegalStateError


class Turns:
    """One turn at a time."""

    def __init__(self) -> None:
        self._lock = RLock()  # one that a thread does not wait for itself at
        self._is_taken = False

    @contextmanager
    def taken(self) -> Iterator[None]:
        """Wait for a turn, and have it for the block.

        Raises:
            IllegalStateError: the thread has its turn already: a signal handler interrupted it.
        """
        with self._lock:
            if self._is_taken:
                raise IllegalStateError(
                    "this thread is in the middle of starting or ending the broker"
                )
            self._is_taken = True
            try:
                yield
            finally:
                self._is_taken = False
