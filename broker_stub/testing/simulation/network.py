"""The network of a world: addresses, and what happens to messages and connection attempts.

The scheduler's thread, or the program that has the baton.
"""

import errno
import os
from collections.abc import Callable
from functools import partial
from typing import Final

from broker_stub.testing.simulation.chance import Chance
from broker_stub.testing.simulation.clock import SimulatedClock
from broker_stub.testing.simulation.scheduler import Scheduler
from broker_stub.testing.simulation.trace import Trace
from broker_stub.testing.simulation.weather import Weather
from broker_stub.testing.simulation.wire import End, Listener, Wire

_CUTS_MAX: Final = 3


class Network:
    """Addresses, and the connections to them."""

    def __init__(
        self,
        scheduler: Scheduler,
        clock: SimulatedClock,
        weather: Weather,
        chance: Chance,
        trace: Trace,
    ) -> None:
        self.scheduler = scheduler
        self.clock = clock
        self.weather = weather
        self.chance = chance
        self.trace = trace
        self._listeners: dict[tuple[str, int], Listener] = {}
        self._wire_count = 0
        self.on_broken: Callable[[], None] = lambda: None  # told when a connection breaks

    def listen(self, host: str, port: int, listener: Listener) -> None:
        """Register a listener at an address."""
        self._listeners[host, port] = listener

    def knows(self, host: str) -> bool:
        """Whether a host name can be resolved."""
        return any(known == host for known, _ in self._listeners)

    def connect(
        self, host: str, port: int, name: str, client: End, on_done: Callable[[], None]
    ) -> Wire:
        """Begin to connect: `on_done`, or the client loses it, or it hears nothing at all."""
        self._wire_count += 1
        listener = self._listeners.get((host, port))
        wire = Wire(self, f"{name}#{self._wire_count}", client, listener)
        self.later(partial(self._arrive, wire, listener, on_done))
        return wire

    def _arrive(self, wire: Wire, listener: Listener | None, on_done: Callable[[], None]) -> None:
        """The attempt has reached the other machine."""
        refuses = self.chance.happens(self.weather.now.refuse)
        if wire.is_abandoned:
            return
        if listener is None or not listener.is_up or refuses:
            silent = refuses and self.chance.happens(0.5)
            if silent or (listener is not None and not listener.is_powered):
                self.trace.note(wire.name, "gets no answer")
            else:
                self.trace.note(wire.name, "is refused")
                wire.refuse(
                    ConnectionRefusedError(errno.ECONNREFUSED, os.strerror(errno.ECONNREFUSED))
                )
        else:
            self.trace.note(wire.name, "connects")
            wire.connected(listener.accept(wire))
            wire.to_client.tell(on_done)

    def later(self, action: Callable[[], None]) -> None:
        """Schedule a call after the delay of a message."""
        self.scheduler.after(self.delay_ms(), action)

    def delay_ms(self) -> float:
        """How long a message takes."""
        now = self.weather.now
        if self.chance.happens(now.slow):
            return self.chance.uniform(0, now.slow_ms)
        return now.latency_ms * self.chance.uniform(0.2, 1.8)

    def pieces(self, data: bytes) -> list[bytes]:
        """A message as it arrives: in one piece, or cut anywhere."""
        if len(data) < 2 or not self.chance.happens(self.weather.now.split):
            return [data] if data else []
        count = 1 + self.chance.below(_CUTS_MAX)
        cuts = sorted({1 + self.chance.below(len(data) - 1) for _ in range(count)})
        return [data[start:end] for start, end in zip([0, *cuts], [*cuts, None], strict=True)]
