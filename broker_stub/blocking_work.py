"""Work that may block (fsync, deletion), away from the serving thread.

The core hands work over and is told when it is done, on its own thread; which thread does the
work is decided by whoever runs the core.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Protocol


class Background(Protocol):
    """Takes blocking work off the serving thread."""

    def submit(self, work: Callable[[], None], done: Callable[[Exception | None], None]) -> None:
        """Run `work` elsewhere, in the order of submission, then `done` on the serving thread.

        `done` gets the exception that `work` raised, or None. It may run before this returns.
        """


def run(work: Callable[[], None]) -> Exception | None:
    """Do the work; return what it raised. A failure belongs to whoever submitted it."""
    try:
        work()
    except Exception as error:  # noqa: BLE001  handed on to `done`
        return error
    return None
