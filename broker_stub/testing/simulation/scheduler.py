"""What happens next: events in the order of their time, one at a time.

Everything in a world is an event: a message arrives, a loop turns, a program goes on, a timer
fires. Equal moments go by who asked first, so that the order is the same in every replay.
The thread that called `run_until` owns it; a program that holds the baton may add events.
"""

import math
from collections.abc import Callable
from heapq import heappop, heappush
from typing import Final

from broker_stub.testing.simulation.clock import SimulatedClock

# Far more than any history needs: beyond it, events repeat without end.
_EVENTS_MAX: Final = 2_000_000


class WorldStuckError(AssertionError):
    """The world makes no progress: events repeat without end, or none is left."""


class Event:
    """Something that will happen, unless it is cancelled."""

    __slots__ = ("action", "time_us")

    def __init__(self, time_us: int, action: Callable[[], None]) -> None:
        self.time_us = time_us
        self.action: Callable[[], None] | None = action

    def cancel(self) -> None:
        """Cancel the event. Allowed at any time, even after it happened."""
        self.action = None


class Scheduler:
    """The events of one world."""

    def __init__(self, clock: SimulatedClock) -> None:
        self._clock = clock
        self._heap: list[tuple[int, int, Event]] = []
        self._count = 0

    def after(self, delay_ms: float, action: Callable[[], None]) -> Event:
        """Have something happen `delay_ms` from now."""
        return self.at(self._clock.after(delay_ms), action)

    def at(self, time_us: int, action: Callable[[], None]) -> Event:
        """Have something happen at a moment that is not past."""
        event = Event(time_us, action)
        self._count += 1
        heappush(self._heap, (time_us, self._count, event))
        return event

    def run_until(self, condition: Callable[[], bool], timeout_ms: float) -> bool:
        """Run events until the condition holds (True) or the time is up (False).

        Raises:
            WorldStuckError: nothing would happen any more, or far too much has.
        """
        end_us = math.inf if timeout_ms == math.inf else self._clock.after(timeout_ms)
        for _ in range(_EVENTS_MAX):
            if condition():
                return True
            next_us = self._next_us()
            if next_us > end_us:
                self._clock.now_us = int(end_us)
                return False
            if next_us == math.inf:
                raise WorldStuckError("nothing happens any more, and somebody still waits")
            event = heappop(self._heap)[2]
            self._clock.now_us = event.time_us
            if event.action is not None:
                event.action()
        raise WorldStuckError(f"more than {_EVENTS_MAX} events: something goes round and round")

    def _next_us(self) -> float:
        heap = self._heap
        while heap and heap[0][2].action is None:
            heappop(heap)
        return heap[0][0] if heap else math.inf
