"""The programs of a world: a thread each, and one baton.

Only the holder of the baton runs. The scheduler hands it to one program, and gets it back when that
program waits or ends; then it runs the clients' loops, the network and the broker until a program's
next turn. So waits never nest, and with the same seed everything happens in the same order.
"""

from __future__ import annotations

import _thread
import math
import sys
import threading
import traceback
from collections.abc import Callable
from typing import Any, Final

from broker_stub.testing.simulation.scheduler import Event, Scheduler, WorldStuckError
from broker_stub.testing.simulation.trace import Trace
from pyclient.errors import IllegalStateError

# Of the real world: a program only computes while it has the baton.
_PATIENCE_SECONDS: Final = 60.0


class WorldOver(BaseException):
    """Ends a program whose world is closed. Not an Exception, so that programs do not catch it."""


class Program:
    """A function of the user's on its own thread.

    Attributes:
        name: what it is called in the trace.
        result: what the function returned, once it `is_done`.
        error: what it raised.
        is_astray: it waits for something in the real world, and has the baton.
    """

    def __init__(self, programs: Programs, name: str, function: Callable[[], Any]) -> None:
        self.name = name
        self.result: Any = None
        self.error: BaseException | None = None
        self.is_done = False
        self.is_astray = False
        self._is_interrupted = False
        self._programs = programs
        self._function = function
        self._baton = _thread.allocate_lock()
        self._baton.acquire()
        self._turn: Event | None = None
        self._thread = threading.Thread(target=self._run, name=f"simulated-{name}", daemon=True)
        self._thread.start()

    def __repr__(self) -> str:
        return f"<Program {self.name}>"

    @property
    def is_current_thread(self) -> bool:
        """Whether it is this program that asks."""
        return threading.get_ident() == self._thread.ident

    def interrupt(self) -> None:
        """Raise KeyboardInterrupt in its present wait, or in its next one, as Ctrl-C does."""
        if not self.is_done:
            self._is_interrupted = True
            if self._programs.running is not self:
                self._programs.wake(self)

    def raise_if_interrupted(self) -> None:
        """Raise KeyboardInterrupt, once for each `interrupt`. The program's own thread."""
        if self._is_interrupted:
            self._is_interrupted = False
            raise KeyboardInterrupt

    def go_on_at(self, turn: Event | None) -> None:
        """Schedule its next turn at this time only; None waits for a wake-up."""
        if self._turn is not None:
            self._turn.cancel()
        self._turn = turn

    def take_turn(self) -> None:
        """Let it have the baton until it waits or ends. The scheduler's thread."""
        programs = self._programs
        programs.running = self
        self._baton.release()
        if not programs.returned.acquire(timeout=_PATIENCE_SECONDS):
            self.is_astray = True
            raise WorldStuckError(
                f"{self.name} has not come back for {_PATIENCE_SECONDS:.0f} s of real time: does"
                f" it wait for something that is not in this world?\n{self._stack()}"
            )
        programs.running = None

    def stand_still(self) -> None:
        """Give the baton back, and wait for the next turn. The program's own thread.

        Raises:
            WorldOver: the world was closed meanwhile.
        """
        self._programs.returned.release()
        self._baton.acquire()
        if self._programs.is_over:
            raise WorldOver

    def _run(self) -> None:
        self._baton.acquire()
        note = self._programs.trace.note
        try:
            if not self._programs.is_over:
                note(self.name, "begins")
                self.result = self._function()
                note(self.name, "ends")
        except WorldOver:
            pass  # as it was told
        except BaseException as error:  # noqa: BLE001  the world raises it again
            note(self.name, "fails: %s", type(error).__name__)
            self.error = error
        finally:
            self.is_done = True
            self._programs.ended(self)
            self._programs.returned.release()

    def _stack(self) -> str:
        frame = sys._current_frames().get(self._thread.ident or 0)
        return "" if frame is None else "".join(traceback.format_stack(frame))

    def join(self) -> None:
        """Wait for the end of its thread, which has nothing left to do."""
        self._thread.join()


class Programs:
    """All programs of a world, and who has the baton.

    Attributes:
        running: the program that has it; None while it is the scheduler's.
        is_over: the world is closed, and waiting programs must end.
        all_done: every program has ended, or one has failed.
        failed: the first program that raised.
    """

    def __init__(
        self, scheduler: Scheduler, trace: Trace, hesitation_ms: Callable[[], float]
    ) -> None:
        """Without programs; `hesitation_ms` says how late a thread runs that could."""
        self.running: Program | None = None
        self.is_over = False
        self.all_done = True
        self.failed: Program | None = None
        self.returned = _thread.allocate_lock()
        self.returned.acquire()
        self._scheduler = scheduler
        self.trace = trace
        self._hesitation_ms = hesitation_ms
        self._all: list[Program] = []

    def add(self, name: str, function: Callable[[], Any]) -> Program:
        """A program that starts when the world goes on."""
        if any(one.name == name for one in self._all):
            raise ValueError(f"there is a program {name!r} already")
        program = Program(self, name, function)
        self._all.append(program)
        self.all_done = False
        self.wake(program)
        return program

    def ended(self, program: Program) -> None:
        """A program has; called by it."""
        if program.error is not None and self.failed is None:
            self.failed = program
        self.all_done = self.failed is not None or not self.unfinished

    @property
    def unfinished(self) -> list[str]:
        """The names of those that have not ended."""
        return [one.name for one in self._all if not one.is_done]

    def wake(self, program: Program) -> None:
        """Let a program that stands still go on soon."""
        program.go_on_at(self._scheduler.after(self._hesitation_ms(), program.take_turn))

    def wait(self, timeout_ms: float) -> None:
        """Have the program that asks stand still, until it is woken or the time is up.

        Raises:
            IllegalStateError: no program asks, but the code around the world.
            KeyboardInterrupt: the program was interrupted.
            WorldOver: the world was closed meanwhile.
        """
        program = self.running
        if program is None or not program.is_current_thread:
            if self.is_over:
                return  # somebody's clean-up; nobody will ever wake it
            raise IllegalStateError(
                "only a program of the simulation can wait: start one with"
                " `world.program(function)` and let time pass with `world.run()`"
            )
        if self.is_over:
            raise WorldOver
        program.raise_if_interrupted()
        timer = None
        if timeout_ms != math.inf:
            late_ms = timeout_ms + self._hesitation_ms()
            timer = self._scheduler.after(late_ms, program.take_turn)
        program.go_on_at(timer)
        program.stand_still()
        program.raise_if_interrupted()

    def end(self) -> None:
        """Unwind every unfinished program, except one that waits outside the simulation."""
        self.is_over = True
        for program in self._all:
            while not (program.is_done or program.is_astray):
                program.take_turn()
            if program.is_done:
                program.join()


class SimulatedWaiter:
    """A latch, as `pyclient.net.waiting` wants it: waiting hands the baton back."""

    __slots__ = ("_check", "_programs", "_waiting", "_woken")

    def __init__(self, programs: Programs, check: Callable[[], None]) -> None:
        """Start closed; `check` raises in callers that must not wait."""
        self._programs = programs
        self._check = check
        self._woken = False
        self._waiting: list[Program] = []

    def wake(self) -> None:
        """End every wait, present and future."""
        if not self._woken:
            self._woken = True
            for program in self._waiting:
                self._programs.wake(program)

    def wait(self, timeout_ms: float) -> bool:
        """Stand still until woken or the time is up; tell which."""
        if self._woken:
            return True
        self._check()
        program = self._programs.running
        if program is not None:
            self._waiting.append(program)
        try:
            self._programs.wait(timeout_ms)
        finally:
            if program is not None:
                self._waiting.remove(program)
        return self._woken
