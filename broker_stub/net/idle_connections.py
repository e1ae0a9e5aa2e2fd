"""Closes connections that are idle for `connections.max.idle.ms`, as Kafka does.

One timer looks at all connections when the longest silent one may be due. A connection whose
request is parked is not idle. Serving thread only.
"""

from collections.abc import Collection
from typing import TYPE_CHECKING, Final

from broker_stub.purgatory import Timers
from pyclient.clock import Clock

if TYPE_CHECKING:
    from broker_stub.net.connection import Connection

# Idle connections are not looked for more often than this.
_CHECK_MS: Final = 100


class IdleConnections:
    """Finds and closes the idle ones among a server's connections.

    Attributes:
        max_idle_ms: how long a connection may be silent; -1 for ever.
    """

    def __init__(self, connections: "Collection[Connection]", timers: Timers, clock: Clock) -> None:
        self.max_idle_ms = -1
        self._connections = connections
        self._timers = timers
        self._clock = clock
        self._is_scheduled = False

    def on_connected(self) -> None:
        """A connection was added: look for idle ones from now on."""
        if not self._is_scheduled and self.max_idle_ms >= 0:
            self._is_scheduled = True
            self._timers.after(self.max_idle_ms, self._close_idle)

    def _close_idle(self) -> None:
        # Not the loop's time: the clock may have moved since the loop woke up.
        now_ms = self._clock.monotonic_ms()
        silent_since_ms = now_ms - self.max_idle_ms
        oldest_ms = now_ms
        for connection in list(self._connections):
            if connection.is_waiting:
                continue
            if connection.active_at_ms <= silent_since_ms:
                connection.close()
            else:
                oldest_ms = min(oldest_ms, connection.active_at_ms)
        self._is_scheduled = bool(self._connections)
        if self._is_scheduled:
            self._timers.after(max(oldest_ms - silent_since_ms, _CHECK_MS), self._close_idle)
