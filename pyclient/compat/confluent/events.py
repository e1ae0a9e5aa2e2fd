"""What `poll` serves: callbacks that wait until the program asks for them.

Any thread adds events; the thread that polls runs them, so a program's callbacks run where it
expects them, and their exceptions come out of its own call.
"""

import queue
from collections.abc import Callable

from pyclient.clock import Clock
from pyclient.timers import Deadline


class Events:
    """Events in the order in which they happened."""

    def __init__(self, clock: Clock) -> None:
        self._clock = clock
        self._waiting: queue.SimpleQueue[Callable[[], int]] = queue.SimpleQueue()

    def add(self, serve: Callable[[], int]) -> None:
        """Have the next poll call `serve`, which returns how many events it was. Any thread."""
        self._waiting.put(serve)

    def serve(self, timeout_ms: float) -> int:
        """Run what waits, or else wait for the first event; returns how many there were."""
        deadline = Deadline(self._clock, timeout_ms)
        served = 0
        while True:
            wait_ms = 0 if served else deadline.remaining_ms()
            try:
                # In slices: no platform waits for years.
                serve = self._waiting.get(wait_ms > 0, min(wait_ms, 60_000) / 1000)
            except queue.Empty:
                if served or deadline.remaining_ms() <= 0:
                    return served
                continue
            served += serve()
