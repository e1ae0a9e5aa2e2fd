"""When a member has to show signs of life, and when it counts as dead. Time is handed in.

Two clocks. The coordinator removes a member that sent no heartbeat for `session.timeout.ms`. A
member whose program has not polled for `max.poll.interval.ms` removes itself: heartbeats come
from the I/O thread, so they alone would keep a stuck program's partitions for ever.
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


class Heartbeat:
    """The heartbeats of one membership. The I/O thread only."""

    def __init__(self, interval_ms: float, session_timeout_ms: float) -> None:
        self._interval_ms = interval_ms
        self._session_timeout_ms = session_timeout_ms
        self._due_at_ms = 0.0
        self._session_ends_at_ms = 0.0
        self.is_in_flight = False
        self.received_at_ms: float | None = None
        self.sent_total = 0

    def start(self, now_ms: float) -> None:
        """A session begins: the coordinator has just answered."""
        self._due_at_ms = now_ms + self._interval_ms
        self._session_ends_at_ms = now_ms + self._session_timeout_ms

    def is_due(self, now_ms: float) -> bool:
        """Whether to send one now."""
        return not self.is_in_flight and now_ms >= self._due_at_ms

    def sent(self, now_ms: float) -> None:
        """One is on its way."""
        self.is_in_flight = True
        self._due_at_ms = now_ms + self._interval_ms
        self.sent_total += 1

    def received(self, now_ms: float) -> None:
        """The coordinator answered, be it with an error."""
        self.is_in_flight = False
        self.received_at_ms = now_ms
        self._session_ends_at_ms = now_ms + self._session_timeout_ms

    def failed(self, now_ms: float, backoff_ms: float) -> None:
        """No answer came: try again soon."""
        self.is_in_flight = False
        self._due_at_ms = now_ms + backoff_ms

    def session_is_over(self, now_ms: float) -> bool:
        """Whether the coordinator must have given this member up."""
        return now_ms >= self._session_ends_at_ms

    def next_ms(self, can_send: bool) -> float:
        """When something is due, given whether there is a connection for heartbeats."""
        if self.is_in_flight or not can_send:
            return self._session_ends_at_ms
        return min(self._due_at_ms, self._session_ends_at_ms)
