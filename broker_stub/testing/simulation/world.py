"""A simulated world: programs, their clients, a broker, and all that goes wrong between them.

    with Simulation(seed=17) as world:
        world.broker.create_topic("orders")
        world.program(publish, world)
        world.run()

The real cores of client and broker, one at a time, on a simulated clock, network and disk. All
chance comes from the seed: the same seed gives the same history, in any process. The code around
a world (a test) acts whenever no program does.
"""

import math
from collections.abc import Callable, Mapping
from contextlib import ExitStack
from functools import partial
from types import TracebackType
from typing import Any, Final, Self

from broker_stub.testing.simulation.broker import SimulatedBroker
from broker_stub.testing.simulation.chance import Chance, chance
from broker_stub.testing.simulation.clock import SimulatedClock, SkewedClock
from broker_stub.testing.simulation.conditions import CALM, Conditions, drawn
from broker_stub.testing.simulation.disk import SimulatedDisk
from broker_stub.testing.simulation.environment import SimulatedEnvironment
from broker_stub.testing.simulation.logged_errors import LoggedErrors
from broker_stub.testing.simulation.network import Network
from broker_stub.testing.simulation.programs import Program, Programs
from broker_stub.testing.simulation.scheduler import Scheduler, WorldStuckError
from broker_stub.testing.simulation.trace import Trace
from broker_stub.testing.simulation.weather import Weather

_TRACE_SHOWN: Final = 60
_RUN_MS: Final = 3_600_000.0
# How late a thread runs that could, where nothing holds it up.
_HESITATION_MS: Final = (0.001, 0.05)
_LOOK_AGAIN_MS: Final = 1.0
# How soon a crash follows other trouble: while clients come back and try again.
_AFTERMATH_MS: Final = (0.0, 300.0)


class Simulation:
    """One world, of one seed.

    Attributes:
        seed: where all chance comes from.
        conditions: what goes wrong while programs run.
        clock: its time.
        trace: what happened so far.
        broker: the broker.
    """

    def __init__(
        self,
        seed: int,
        conditions: Conditions | None = None,
        *,
        broker_config: Mapping[str, object] | None = None,
    ) -> None:
        """Make a world with a running broker.

        Args:
            seed: another one, another history.
            conditions: what goes wrong while programs run; by default the seed decides that, too.
            broker_config: options of the broker, by Kafka's names.
        """
        self.seed = seed
        self.conditions = drawn(self.chance("conditions")) if conditions is None else conditions
        self.clock = SimulatedClock()
        self.trace = Trace(self.clock)
        self.weather = Weather()
        self.scheduler = Scheduler(self.clock)
        self.programs = Programs(self.scheduler, self.trace, self.hesitation_ms)
        self.network = Network(
            self.scheduler, self.clock, self.weather, self.chance("network"), self.trace
        )
        self._threads = self.chance("threads")
        self._crashes = self.chance("crashes")
        self.network.on_broken = self._crash_after_trouble
        self._environments: list[SimulatedEnvironment] = []
        with ExitStack() as undo:
            self._logged_errors = LoggedErrors()
            undo.callback(self._logged_errors.detach)
            disk = SimulatedDisk(self.chance("disk"), self.trace)
            undo.callback(disk.remove)
            self.broker = SimulatedBroker(self, disk, broker_config)
            undo.callback(self.broker.kill)
            self.broker.start()
            self._undo = undo.pop_all()

    def chance(self, name: str) -> Chance:
        """A stream of random numbers: the same name in the same seed gives the same ones."""
        return chance(self.seed, name)

    def machine_clock(self, name: str) -> SkewedClock:
        """The clock of a machine, which may be wrong about the time of day."""
        return SkewedClock(self.clock, self.weather, self.chance(f"clock {name}"))

    # --- programs and their clients ----------------------------------------------------------

    def program(self, function: Callable[..., Any], *arguments: Any, name: str = "") -> Program:
        """Add a program; it begins when the world runs.

        Args:
            function: what it does. It may make clients with `client()`, and wait with them and
                with `sleep`; any other wait stops the whole world.
            arguments: handed to the function.
            name: what it is called in the trace; by default as the function.
        """
        return self.programs.add(name or function.__name__, partial(function, *arguments))

    def client(self, name: str = "") -> dict[str, Any]:
        """The arguments that make a client one of this world: `KafkaProducer(**world.client())`.

        Each call is for one client. `name` is its `client_id`; by default it is called after
        the program that asks, and numbered.
        """
        number = len(self._environments) + 1
        running = self.programs.running
        client_id = name or f"{'client' if running is None else running.name}-{number}"
        environment = SimulatedEnvironment(
            self, client_id, self.chance(f"client {number} {client_id}")
        )
        self._environments.append(environment)
        return {
            "bootstrap_servers": self.broker.bootstrap_servers,
            "client_id": client_id,
            "environment": environment,
        }

    def sleep(self, milliseconds: float) -> None:
        """Let time pass, in a program."""
        self.programs.wait(milliseconds)

    def note(self, what: str, *details: Any) -> None:
        """Add a line to the trace; `details` go into `what` as with `%`."""
        running = self.programs.running
        self.trace.note("test" if running is None else running.name, what, *details)

    # --- time --------------------------------------------------------------------------------

    def run(self, timeout_ms: float = _RUN_MS) -> None:
        """Let programs run, and things go wrong, until all have ended; then it is calm again.

        Raises:
            WorldStuckError: a program had not ended after `timeout_ms` of the world's time.
            BaseException: what a program raised.
        """
        self.weather.now = self.conditions
        self._crash_in_time()
        all_done = self.run_until(lambda: self.programs.all_done, timeout_ms)
        failed = self.programs.failed
        if failed is not None and failed.error is not None:
            raise failed.error
        if not all_done:
            raise WorldStuckError(
                f"after {timeout_ms:.0f} ms these have not ended: {self.programs.unfinished}"
            )
        self.calm()
        self._logged_errors.check()

    def run_until(self, condition: Callable[[], bool], timeout_ms: float) -> bool:
        """Run until the condition holds (True), or this much time has passed (False)."""
        if self.programs.running is None:
            return self.scheduler.run_until(condition, timeout_ms)
        end_us = self.clock.after(timeout_ms)
        while not condition():
            if self.clock.now_us >= end_us:
                return False
            self.sleep(_LOOK_AGAIN_MS)
        return True

    def run_for(self, milliseconds: float) -> None:
        """Advance the simulated time."""
        self.run_until(lambda: False, milliseconds)

    def calm(self) -> None:
        """Let nothing go wrong any more; a broker that is down starts now."""
        self.weather.now = CALM
        self.broker.start()

    def hesitation_ms(self) -> float:
        """How late a thread runs that could, this time."""
        now = self.weather.now
        if self._threads.happens(now.pause):
            return self._threads.uniform(0, now.pause_ms)
        return self._threads.uniform(*_HESITATION_MS)

    # --- crashes -----------------------------------------------------------------------------

    def _crash_in_time(self) -> None:
        """Plan the end of the life that the broker begins."""
        self._crash_after(self._crashes.exponential(self.weather.now.crash_every_ms))

    def _crash_after_trouble(self) -> None:
        if self._crashes.happens(self.weather.now.aftermath):
            self._crash_after(self._crashes.uniform(*_AFTERMATH_MS))

    def _crash_after(self, delay_ms: float) -> None:
        if delay_ms != math.inf:
            self.scheduler.after(delay_ms, partial(self._crash, self.broker.life_number))

    def _crash(self, life_number: int) -> None:
        now = self.weather.now
        if now.crash_every_ms == math.inf or not self.broker.is_up:
            return  # it has become calm, or the broker is down already
        if self.broker.life_number != life_number:
            return  # that life is over
        if self._crashes.happens(now.power_loss):
            self.broker.lose_power()
        else:
            self._crashes.choice((self.broker.kill, self.broker.stop))()
        self.scheduler.after(self._crashes.exponential(now.downtime_ms), self._come_back)

    def _come_back(self) -> None:
        self.broker.start()
        self._crash_in_time()

    # --- the end -----------------------------------------------------------------------------

    def close(self) -> None:
        """End what still runs, and leave nothing behind."""
        with self._undo as undo:
            for environment in self._environments:
                undo.callback(environment.end)
            undo.callback(self.programs.end)

    def explanation(self) -> str:
        """How to see this history again, and how it ended."""
        events = "\n".join(self.trace.lines(_TRACE_SHOWN))
        return (
            f"This was Simulation(seed={self.seed}), and will be again. {self.conditions}\n"
            f"The last of {len(self.trace)} events:\n{events}"
        )

    def __enter__(self) -> Self:
        return self

    def __exit__(
        self,
        exception_type: type[BaseException] | None,
        exception: BaseException | None,
        traceback: TracebackType | None,
    ) -> None:
        if exception is not None:
            exception.add_note(self.explanation())
        self.close()
