"""When a member sends its next heartbeat, and when its session ends. The I/O thread only.

The coordinator removes a member that sent no heartbeat for `session.timeout.ms`. The I/O thread
sends them, so a stuck program would keep its partitions: `poll_interval` removes it.
"""


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
        """Whether to send a heartbeat now."""
        return not self.is_in_flight and now_ms >= self._due_at_ms

    def sent(self, now_ms: float) -> None:
        """A heartbeat was sent."""
        self.is_in_flight = True
        self._due_at_ms = now_ms + self._interval_ms
        self.sent_total += 1

    def received(self, now_ms: float) -> None:
        """The coordinator answered, possibly with an error."""
        self.is_in_flight = False
        self.received_at_ms = now_ms
        self._session_ends_at_ms = now_ms + self._session_timeout_ms

    def failed(self, now_ms: float, backoff_ms: float) -> None:
        """No answer came: try again soon."""
        self.is_in_flight = False
        self._due_at_ms = now_ms + backoff_ms

    def session_is_over(self, now_ms: float) -> bool:
        """Whether the coordinator must have removed this member."""
        return now_ms >= self._session_ends_at_ms

    def next_ms(self, can_send: bool) -> float:
        """When something is due, given whether there is a connection for heartbeats."""
        if self.is_in_flight or not can_send:
            return self._session_ends_at_ms
        return min(self._due_at_ms, self._session_ends_at_ms)
