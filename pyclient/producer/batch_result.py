"""The outcome of a batch, shared by its records' futures.

The I/O thread finishes results, any thread waits for them and adds callbacks. No lock: each step
that matters is one atomic operation (a deque's append or popleft, an attribute's assignment),
and a thread that adds a waiter or callback checks afterwards whether it was too late.
"""

from __future__ import annotations

import contextlib
from bisect import bisect_right
from collections import deque
from collections.abc import Callable, Mapping, Sequence
from typing import TYPE_CHECKING, Final, Protocol

from pyclient.clock import Clock
from pyclient.errors import KafkaError
from pyclient.net.waiting import Waiter
from pyclient.timers import Deadline
from pyclient.types import TopicPartition

if TYPE_CHECKING:
    import asyncio

NO_OFFSET: Final = -1
NO_TIMESTAMP: Final = -1


class Waits(Protocol):
    """What waiting for a result needs of the engine."""

    clock: Clock

    def waiter(self) -> Waiter:
        """A latch to wait with."""

    def on_io_thread(self) -> bool:
        """Whether this is the thread that callbacks run on."""

    def check_usable(self, call: str) -> None:
        """Raise if nothing will ever come: a forked child, a dead I/O thread."""

    def check_may_wait(self, call: str) -> None:
        """Raise inside a callback, where waiting would deadlock."""


class _Wakeable(Protocol):
    def wake(self) -> None: ...


class _Registration:
    """A callback that runs once a record's outcome is known."""

    __slots__ = ("index", "run")

    def __init__(self, index: int, run: Callable[[], None]) -> None:
        self.index = index  # in the batch that it is registered with: a split changes both
        self.run = run


class _LoopWaiter:
    """Wakes the coroutines of an event loop."""

    __slots__ = ("_loop", "event")

    def __init__(self, loop: asyncio.AbstractEventLoop) -> None:
        import asyncio

        self._loop = loop
        self.event = asyncio.Event()

    def wake(self) -> None:
        with contextlib.suppress(RuntimeError):  # the loop is closed, so nothing waits in it
            self._loop.call_soon_threadsafe(self.event.set)


class BatchResult:
    """The outcome of a batch, for all its records."""

    __slots__ = (
        "_children",
        "_loop_waiters",
        "_registrations",
        "_starts",
        "_waiters",
        "base_offset",
        "engine",
        "error",
        "is_done",
        "is_finished",
        "log_append_time_ms",
        "record_errors",
        "topic_partition",
    )

    def __init__(self, topic_partition: TopicPartition, engine: Waits) -> None:
        self.topic_partition = topic_partition
        self.engine = engine
        self.base_offset = NO_OFFSET
        self.log_append_time_ms = NO_TIMESTAMP
        self.error: KafkaError | None = None
        self.record_errors: Mapping[int, KafkaError] | None = None
        self.is_done = False  # the outcome is known
        self.is_finished = False  # and the callbacks have run
        self._registrations: deque[_Registration] = deque()
        self._waiters: dict[_Wakeable, None] = {}
        self._loop_waiters: dict[asyncio.AbstractEventLoop, _LoopWaiter] | None = None
        # After a split: the first index of each child, and the children.
        self._starts: Sequence[int] = ()
        self._children: Sequence[BatchResult] = ()

    def succeed(self, base_offset: int, log_append_time_ms: int = NO_TIMESTAMP) -> None:
        """All records were written. On the I/O thread, outside every lock."""
        self.base_offset = base_offset
        self.log_append_time_ms = log_append_time_ms
        self._finish()

    def fail(
        self, error: KafkaError, record_errors: Mapping[int, KafkaError] | None = None
    ) -> None:
        """No record was written, so far as we know. On the I/O thread, outside every lock.

        Args:
            error: what the batch failed with.
            record_errors: by index, the records that have an error of their own.
        """
        self.record_errors = record_errors
        self.error = error
        self._finish()

    def split(self, counts: Sequence[int]) -> Sequence[BatchResult]:
        """Split into new results of `counts` records each, in order."""
        starts, start = [], 0
        for count in counts:
            starts.append(start)
            start += count
        self._starts = starts
        # The assignment that the others look at, so it comes last.
        self._children = [BatchResult(self.topic_partition, self.engine) for _ in counts]
        self._hand_over()
        self._wake_all()  # waiters continue with the children
        return self._children

    def locate(self, index: int) -> tuple[BatchResult, int]:
        """The result that record `index` ended up with after splits, and its index there."""
        result = self
        while result._children:
            child = bisect_right(result._starts, index) - 1
            index -= result._starts[child]
            result = result._children[child]
        return result, index

    def register(self, index: int, run: Callable[[], None]) -> None:
        """Call `run` once a record's outcome is known: at once, if it is."""
        self._register(_Registration(index, run))

    def _register(self, registration: _Registration) -> None:
        self._registrations.append(registration)
        if self.is_done:
            self._run_registrations()
        elif self._children:
            self._hand_over()

    def wait(self, deadline: Deadline) -> bool:
        """Block until the batch is finished or was split; False if time ran out first."""
        waiter = self.engine.waiter()
        self._waiters[waiter] = None
        if not self.is_settled:
            try:
                waiter.wait(deadline.remaining_ms())
            finally:
                self._waiters.pop(waiter, None)
        return self.is_settled

    def wait_finished(self, deadline: Deadline) -> bool:
        """Block until all records have their outcome and the callbacks have run.

        Returns False if time ran out first.
        """
        if not (self.is_settled or self.wait(deadline)):
            return False
        return all(child.wait_finished(deadline) for child in self._children)

    def loop_event(self, loop: asyncio.AbstractEventLoop) -> asyncio.Event:
        """An event of this loop that is set when the batch is finished or was split.

        One for all records of the batch: a hop into a loop costs more than a hundred records.
        """
        if self._loop_waiters is None:
            self._loop_waiters = {}
        waiter = self._loop_waiters.get(loop)
        if waiter is None:
            waiter = self._loop_waiters[loop] = _LoopWaiter(loop)
            self._waiters[waiter] = None
            if self.is_settled:
                waiter.event.set()
        return waiter.event

    @property
    def is_settled(self) -> bool:
        """Whether there is nothing more to wait for here; after a split the children matter."""
        return self.is_finished or bool(self._children)

    @property
    def is_over(self) -> bool:
        """Whether all records have their outcome and the callbacks have run."""
        if self._children:
            return all(child.is_over for child in self._children)
        return self.is_finished

    @property
    def is_written(self) -> bool:
        """Whether the outcome is known, and is success for every record."""
        if self._children:
            return all(child.is_written for child in self._children)
        return self.is_done and self.error is None

    def _finish(self) -> None:
        self.is_done = True
        if self._registrations:
            self._run_registrations()
        self.is_finished = True
        # After the callbacks, so that what they did is there when flush() returns.
        if self._waiters:
            self._wake_all()

    def _wake_all(self) -> None:
        while True:
            try:
                waiter, _ = self._waiters.popitem()
            except KeyError:
                return
            waiter.wake()

    def _run_registrations(self) -> None:
        # In the order of the records: with several threads, that of registering may differ.
        for registration in sorted(self._take_registrations(), key=lambda one: one.index):
            registration.run()

    def _hand_over(self) -> None:
        for registration in self._take_registrations():
            child, registration.index = self.locate(registration.index)
            child._register(registration)

    def _take_registrations(self) -> list[_Registration]:
        """Empty the queue. Two threads may do so at once: each gets what it popped."""
        taken: list[_Registration] = []
        while True:
            try:
                taken.append(self._registrations.popleft())
            except IndexError:
                return taken
