"""What happened in a world, in order: to read after a failure, and to compare with a replay.

Lines are formatted only when read, since most histories succeed. Only the holder of the baton adds
lines.
"""

import hashlib
from collections.abc import Iterator
from typing import Any

from broker_stub.testing.simulation.clock import SimulatedClock


class Trace:
    """The events of one world."""

    def __init__(self, clock: SimulatedClock) -> None:
        self._clock = clock
        self._events: list[tuple[int, str, str, tuple[Any, ...]]] = []

    def note(self, who: str, what: str, *details: Any) -> None:
        """Add an event; `details` go into `what` as with `%`, later, so they must not change."""
        self._events.append((self._clock.now_us, who, what, details))

    def __len__(self) -> int:
        return len(self._events)

    def lines(self, last: int | None = None) -> Iterator[str]:
        """The events as text, all or the last ones: time in milliseconds, who, what."""
        events = self._events if last is None else self._events[-last:]
        for now_us, who, what, details in events:
            yield f"{now_us / 1000:12.3f}  {who:<16} {what % details if details else what}"

    def text(self) -> str:
        """All events, a line each."""
        return "".join(f"{line}\n" for line in self.lines())

    def digest(self) -> str:
        """A fingerprint: two worlds with the same one went the same way, byte for byte."""
        return hashlib.sha256(self.text().encode()).hexdigest()
