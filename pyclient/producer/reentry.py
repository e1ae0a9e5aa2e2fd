"""Detects a signal handler that calls the producer it has interrupted.

The handler runs on the main thread, in the middle of whatever that thread does: of `send` with a
lock held, for instance. Waiting for the lock would be for ever, and going on would see a batch half
made. So it is told, and the interrupted `send` ends with that error.
"""

from threading import RLock
from typing import Protocol, cast

from pyclient.errors import IllegalStateError


class OwnedLock(Protocol):
    """A lock that can be asked whether this thread holds it."""

    def __enter__(self) -> bool: ...

    def __exit__(self, *_: object) -> None: ...

    def _is_owned(self) -> bool: ...


def new_lock() -> OwnedLock:
    """A new lock, released."""
    return cast(OwnedLock, RLock())


def check_not_reentered(lock: OwnedLock) -> None:
    """Raise if this thread holds the lock already.

    Raises:
        IllegalStateError: a signal handler must not use the producer at this moment.
    """
    if lock._is_owned():  # as `threading.Condition` does; there is no public way
        raise interrupted_itself()


def interrupted_itself() -> IllegalStateError:
    """The error that the signal handler gets."""
    return IllegalStateError(
        "a signal handler called the producer that it had interrupted inside a call: set a flag"
        " in the handler instead, and call flush() or close() where the program checks the flag"
    )
