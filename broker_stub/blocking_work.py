"""The interface by which the broker's core hands off work that may block (fsync, deletion).

The core submits work on the serving thread and gets the outcome there. The code that runs the core
decides where the work is done: a broker on the background thread, a simulation on its only one.
"""

from collections.abc import Callable
from typing import Protocol


class Background(Protocol):
    """Takes blocking work off the serving thread."""

    def submit(self, work: Callable[[], None], done: Callable[[Exception | None], None]) -> None:
        """Run `work` on another thread, in order of submission, then `done` on the serving thread.

        `done` gets the exception that `work` raised, or None. It may run before `submit` returns.
        """


def run(work: Callable[[], None]) -> Exception | None:
    """Run the work and return the exception that it raised, for the `done` of its submitter."""
    try:
        work()
    except Exception as error:  # noqa: BLE001  handed on to `done`
        return error
    return None
