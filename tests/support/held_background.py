"""Blocking work that a test lets go when it wants to."""

from collections.abc import Callable

from broker_stub.blocking_work import run


class HeldBackground:
    """Keeps the node's blocking work until it is told to do it."""

    def __init__(self) -> None:
        self.held: list[tuple[Callable[[], None], Callable[[Exception | None], None]]] = []

    def submit(self, work: Callable[[], None], done: Callable[[Exception | None], None]) -> None:
        self.held.append((work, done))

    def let_go(self, error: Exception | None = None) -> None:
        """Do the oldest work; with an error, fail with it instead."""
        work, done = self.held.pop(0)
        done(run(work) if error is None else error)
