"""`max.poll.interval.ms`: a member whose program polls too rarely leaves its group.

Heartbeats come from the I/O thread, so they alone would keep the partitions of a stuck program for
ever. `ClassicMembership` asks `PollTimer.is_late` on every turn, and leaves.
"""

import math


class PollTimer:
    """When the program polled last: written by the caller's thread, read by the I/O thread.

    One attribute holds it all, and a store is atomic, so there is no lock.
    """

    def __init__(self, max_poll_interval_ms: float) -> None:
        self.interval_ms = max_poll_interval_ms
        self._polled_at_ms: float | None = None

    @property
    def is_running(self) -> bool:
        """Whether the program polls at all: a consumer joins its group by its first poll."""
        return self._polled_at_ms is not None

    @property
    def polled_at_ms(self) -> float | None:
        """When the program polled last; None if it never has."""
        return self._polled_at_ms

    def polled(self, now_ms: float) -> None:
        """The program is in `poll`."""
        self._polled_at_ms = now_ms

    def deadline_ms(self) -> float:
        """When the next poll is due."""
        polled_at_ms = self._polled_at_ms
        return math.inf if polled_at_ms is None else polled_at_ms + self.interval_ms

    def is_late(self, now_ms: float) -> bool:
        """Whether the program has not polled for too long."""
        return now_ms >= self.deadline_ms()
