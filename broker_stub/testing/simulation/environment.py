"""What one client stands on in a world: see `pyclient.net.environment`.

The client's loop has no thread: the scheduler turns it when it was woken, when the network has
news for it, and when something falls due. A poll never waits; it tells until when it would have.
"""

from __future__ import annotations

import errno
import math
from collections.abc import Callable, Sequence
from typing import TYPE_CHECKING

from broker_stub.testing.simulation.programs import SimulatedWaiter
from broker_stub.testing.simulation.transport import SimulatedTransport
from pyclient.entropy import Entropy
from pyclient.errors import IllegalStateError, KafkaError
from pyclient.net.resolver import Address, Resolution
from pyclient.net.waiting import check_may_wait

if TYPE_CHECKING:
    from broker_stub.testing.simulation.scheduler import Event
    from broker_stub.testing.simulation.world import Simulation
    from pyclient.net.connection import Connection
    from pyclient.net.io_thread import IoThread
    from pyclient.net.transport import SocketOptions

_NO_FAMILY = 0  # addresses here are of no family that the system knows


class SimulatedPoller:
    """The network of one client."""

    def __init__(self, environment: SimulatedEnvironment, options: SocketOptions) -> None:
        self.network = environment.world.network
        self.client_name = environment.client_name
        self.limit_bytes = options.receive_message_max_bytes
        self.scratch = memoryview(bytearray(1 << 16))
        self.unflushed: dict[SimulatedTransport, None] = {}
        self._environment = environment
        self._news: dict[SimulatedTransport, None] = {}
        self._is_woken = False
        self._sleep_ms = 0.0

    def resolve(self, host: str, port: int) -> Resolution:
        """Look a host up among those of the world."""
        resolution = Resolution()
        resolution.done = True
        if self.network.knows(host):
            resolution.addresses = [Address(_NO_FAMILY, (host, port))]
        else:
            resolution.error = OSError(errno.ENOENT, "there is no such host in this world")
        return resolution

    def open(self, address: Address, owner: Connection) -> SimulatedTransport:
        return SimulatedTransport(self, address, owner)

    def poll(self, timeout_ms: float) -> Sequence[SimulatedTransport]:
        """Write and read without waiting; the loop is scheduled for the end of the wait."""
        for transport in self.unflushed:
            if not transport.flush():
                self.network.later(transport.on_writable)
        self.unflushed.clear()
        news, self._news = self._news, {}
        self._sleep_ms = 0 if news or self._is_woken else timeout_ms
        self._is_woken = False
        return list(news)

    def idle_ms(self) -> float:
        """For how long the loop has nothing to do, after a turn."""
        return 0 if self._news or self._is_woken or self.unflushed else self._sleep_ms

    def has_news(self, transport: SimulatedTransport) -> None:
        """Something happened to a transport."""
        self._news[transport] = None
        self._environment.turn_soon()

    def wake(self) -> None:
        """End the present poll, or the next one."""
        if not self._is_woken:
            self._is_woken = True
            self._environment.turn_soon()

    def close(self) -> None:
        """Let go of everything."""


class SimulatedEnvironment:
    """Time, chance, the network and waiting, for one client."""

    def __init__(self, world: Simulation, client_name: str, entropy: Entropy) -> None:
        self.world = world
        self.client_name = client_name
        self.clock = world.machine_clock(client_name)
        self.entropy = entropy
        self._poller: SimulatedPoller | None = None
        self._loop: IoThread | None = None
        self._turn: Event | None = None
        self._is_turning = False

    # --- the environment of an engine --------------------------------------------------------

    def new_waiting(self) -> SimulatedEnvironment:
        """Where the client's callers wait."""
        return self

    def new_poller(self, options: SocketOptions) -> SimulatedPoller:
        """The network.

        Raises:
            IllegalStateError: another client lives here already.
        """
        if self._poller is not None:
            raise IllegalStateError("one `world.client()` is for one client: ask for another")
        self._poller = SimulatedPoller(self, options)
        return self._poller

    def run(self, io_thread: IoThread, name: str) -> Callable[[], None]:  # noqa: ARG002
        """Turn a loop from now on."""
        self._loop = io_thread
        self.turn_soon()
        return lambda: None  # once it has ended, there is no thread to wait for

    def run_beside(self, function: Callable[[], None], name: str) -> None:
        """One more program; none after the end of the world."""
        if not self.world.programs.is_over:
            self.world.programs.add(name, function)

    # --- its waiting -------------------------------------------------------------------------

    def waiter(self) -> SimulatedWaiter:
        """Something to wait for."""
        return SimulatedWaiter(self.world.programs, self._check_may_wait)

    def claim_io_thread(self) -> None:
        """Only `IoThread.run` claims a thread, which is not used here."""
        raise IllegalStateError("a simulated loop has no thread")

    def on_io_thread(self) -> bool:
        """Whether the loop is at its turn: a callback asks, then."""
        return self._is_turning

    def abandon(self, error: KafkaError) -> None:
        """A forked child has no world."""
        raise error

    def _check_may_wait(self) -> None:
        check_may_wait(self, "waiting")

    # --- the loop's turns --------------------------------------------------------------------

    def turn_soon(self) -> None:
        """There is something to do, unless the loop is just at it."""
        if self._loop is not None and not self._is_turning:
            self._turn_in(0)

    def _turn_in(self, delay_ms: float) -> None:
        """Have the loop turned after a while, or before if that is planned already."""
        if delay_ms == math.inf:
            return
        turn = self.world.scheduler.after(
            max(delay_ms, 0) + self.world.hesitation_ms(), self._take_turn
        )
        planned = self._turn
        if planned is not None and planned.action is not None:
            earlier, later = (planned, turn) if planned.time_us <= turn.time_us else (turn, planned)
            later.cancel()
            turn = earlier
        self._turn = turn

    def _take_turn(self) -> None:
        loop, poller = self._loop, self._poller
        assert loop is not None
        assert poller is not None
        self._turn = None
        self._is_turning = True
        try:
            if loop.is_closing:
                self._loop = None
                loop.finish()
                return
            loop.run_once()
        finally:
            self._is_turning = False
        self._turn_in(poller.idle_ms())

    def end(self) -> None:
        """End the loop as a killed process does: close its sockets, and send nothing more."""
        loop, self._loop = self._loop, None
        turn, self._turn = self._turn, None
        if turn is not None:
            turn.cancel()
        if loop is not None:
            loop.finish()
