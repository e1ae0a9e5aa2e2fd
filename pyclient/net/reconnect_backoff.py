"""When a node may be connected to again: `reconnect.backoff.ms`, growing with each failed attempt.

One per connection. Touched by the I/O thread only.
"""

import math

from pyclient.timers import ExponentialBackoff


class ReconnectBackoff:
    """The pause between two attempts to connect to a node.

    Attributes:
        failures: failed attempts in a row.
        retry_at_ms: no attempt before this time.
    """

    __slots__ = ("_backoff", "failures", "retry_at_ms")

    def __init__(self, backoff: ExponentialBackoff) -> None:
        self._backoff = backoff
        self.failures = 0
        self.retry_at_ms = -math.inf

    def disconnected(self, now_ms: float) -> None:
        """The connection, or the attempt to make one, has ended: the pause begins."""
        self.retry_at_ms = now_ms + self._backoff.backoff_ms(self.failures)

    def failed(self) -> None:
        """The attempt came to nothing: the next pause is longer."""
        self.failures += 1

    def connected(self) -> None:
        """The broker has answered: the next pause is the shortest again."""
        self.failures = 0
