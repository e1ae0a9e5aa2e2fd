"""Work that the requests of one turn of the serving loop share, done before the turn ends.

The server begins a turn when several sockets are ready. A handler may then leave work until all of
them were read, and park its request. Outside a turn (in simulation, say) nothing is left for later.
Serving thread only.
"""

from collections.abc import Callable


class Turn:
    """One turn after another.

    Attributes:
        is_open: whether work may be left for the end of the turn.
        has_work: whether any was.
    """

    __slots__ = ("_work", "has_work", "is_open")

    def __init__(self) -> None:
        self.is_open = False
        self.has_work = False
        self._work: list[Callable[[], None]] = []

    def begin(self) -> None:
        """From now on work may be left for the end."""
        self.is_open = True

    def leave(self, work: Callable[[], None]) -> None:
        """Call `work` once, at the end of the turn or before the next request that needs it."""
        self._work.append(work)
        self.has_work = True

    def settle(self) -> None:
        """Do what was left so far; the turn stays open."""
        work, self._work = self._work, []
        self.has_work = False
        for call in work:
            call()

    def end(self) -> None:
        """Do what was left, and close the turn."""
        self.is_open = False
        if self.has_work:
            self.settle()
