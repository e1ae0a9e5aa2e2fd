"""What becomes of a record: one result per batch, and per record a future of (result, index).

The I/O thread finishes results, any thread reads futures and adds callbacks. No lock: each step
that matters is one atomic operation (a deque's append or popleft, an attribute's assignment),
and whoever adds something looks afterwards whether it came too late.

A callback runs on the I/O thread, or on the adding thread if the outcome was already known. Its
exception is logged and goes nowhere.
"""

from __future__ import annotations

import contextlib
import functools
import logging
from bisect import bisect_right
from collections import deque
from collections.abc import Callable, Generator, Mapping, Sequence
from typing import TYPE_CHECKING, Any, Protocol

from pyclient.clock import Clock
from pyclient.errors import KafkaError, KafkaTimeoutError
from pyclient.net.waiting import Waiter
from pyclient.timers import Deadline
from pyclient.types import RecordMetadata, TopicPartition

if TYPE_CHECKING:
    import asyncio

log = logging.getLogger(__name__)

NO_OFFSET = -1
NO_TIMESTAMP = -1


class Waits(Protocol):
    """What waiting for a result needs of the engine."""

    clock: Clock

    def waiter(self) -> Waiter:
        """A latch to wait with."""

    def check_usable(self, call: str) -> None:
        """Raise if nothing will ever come: a forked child, a dead I/O thread."""

    def check_may_wait(self, call: str) -> None:
        """Raise inside a callback, where waiting would be for ever."""


class _Wakeable(Protocol):
    def wake(self) -> None: ...


class _Registration:
    """A callback or an errback of one record."""

    __slots__ = ("function", "future", "index", "on_error", "on_success")

    def __init__(
        self,
        future: FutureRecordMetadata,
        index: int,
        function: Callable[..., Any],
        *,
        on_success: bool,
        on_error: bool,
    ) -> None:
        self.future = future
        self.index = index  # in the batch that it is registered with: a split changes both
        self.function = function
        self.on_success = on_success
        self.on_error = on_error

    def run(self) -> None:
        error = self.future.exception
        try:
            if error is None:
                if self.on_success:
                    self.function(self.future.value)
            elif self.on_error:
                self.function(error)
        except Exception:  # a program's mistake must not end the I/O thread
            log.exception("A callback of a record for %s failed", self.future.topic_partition)


class _LoopWaiter:
    """Wakes the coroutines of an event loop."""

    __slots__ = ("_loop", "event")

    def __init__(self, loop: asyncio.AbstractEventLoop) -> None:
        import asyncio

        self._loop = loop
        self.event = asyncio.Event()

    def wake(self) -> None:
        with contextlib.suppress(RuntimeError):  # a closed loop, in which nobody waits any more
            self._loop.call_soon_threadsafe(self.event.set)


class BatchResult:
    """The outcome of a batch, for all its records."""

    __slots__ = (
        "_children",
        "_engine",
        "_loop_waiters",
        "_registrations",
        "_starts",
        "_waiters",
        "base_offset",
        "error",
        "is_done",
        "is_finished",
        "log_append_time_ms",
        "record_errors",
        "topic_partition",
    )

    def __init__(self, topic_partition: TopicPartition, engine: Waits) -> None:
        self.topic_partition = topic_partition
        self._engine = engine
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
        """Hand the records over to new results, `counts` records each, in order."""
        starts, start = [], 0
        for count in counts:
            starts.append(start)
            start += count
        self._starts = starts
        # The assignment that the others look at, so it comes last.
        self._children = [BatchResult(self.topic_partition, self._engine) for _ in counts]
        self._hand_over()
        self._wake_all()  # whoever waits here goes on to wait for the child
        return self._children

    def locate(self, index: int) -> tuple[BatchResult, int]:
        """The result that record `index` ended up with after splits, and its index there."""
        result = self
        while result._children:
            child = bisect_right(result._starts, index) - 1
            index -= result._starts[child]
            result = result._children[child]
        return result, index

    def register(self, registration: _Registration) -> None:
        """Have a callback run once the outcome is known: at once, if it is."""
        self._registrations.append(registration)
        if self.is_done:
            self._run_registrations()
        elif self._children:
            self._hand_over()

    def wait(self, deadline: Deadline) -> bool:
        """Block until the batch is finished or was split; False if time ran out first."""
        waiter = self._engine.waiter()
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

    def _finish(self) -> None:
        self.is_done = True
        self._run_registrations()
        self.is_finished = True
        # After the callbacks, so that what they did is there when flush() returns.
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
            child.register(registration)

    def _take_registrations(self) -> list[_Registration]:
        """Empty the queue. Two threads may do so at once: each gets what it popped."""
        taken: list[_Registration] = []
        while True:
            try:
                taken.append(self._registrations.popleft())
            except IndexError:
                return taken


class FutureRecordMetadata:
    """What `send` returns: the promise of a `RecordMetadata`, or of an error.

    `await` works too, in a coroutine of any event loop.
    """

    __slots__ = ("_index", "_result", "_sizes", "_timestamp_ms")

    def __init__(
        self,
        result: BatchResult,
        index: int,
        timestamp_ms: int,
        sizes: tuple[int, int, int],
    ) -> None:
        self._result = result
        self._index = index
        self._timestamp_ms = timestamp_ms
        self._sizes = sizes  # key, value, headers; -1 where there is none

    @property
    def topic_partition(self) -> TopicPartition:
        """Where the record goes."""
        return self._result.topic_partition

    @property
    def is_done(self) -> bool:
        """Whether the outcome is known."""
        return self._result.is_done or self._result.locate(self._index)[0].is_done

    @property
    def exception(self) -> KafkaError | None:
        """The error that the record failed with; None if it did not, or not yet."""
        result, index = self._result.locate(self._index)
        if result.error is None or result.record_errors is None:
            return result.error
        return result.record_errors.get(index, result.error)

    @property
    def value(self) -> RecordMetadata | None:
        """Where the record went; None if it failed, or is not there yet."""
        result, index = self._result.locate(self._index)
        if not result.is_done or result.error is not None:
            return None
        base_offset = result.base_offset
        appended_ms = result.log_append_time_ms
        topic_partition = result.topic_partition
        return RecordMetadata(
            topic_partition.topic,
            topic_partition.partition,
            topic_partition,
            base_offset + index if base_offset != NO_OFFSET else NO_OFFSET,
            appended_ms if appended_ms != NO_TIMESTAMP else self._timestamp_ms,
            None,
            *self._sizes,
        )

    def succeeded(self) -> bool:
        """Whether the record was written."""
        return self.is_done and self.exception is None

    def failed(self) -> bool:
        """Whether the record failed."""
        return self.is_done and self.exception is not None

    def retriable(self) -> bool:
        """Whether the record failed with an error that may pass."""
        error = self.exception
        return error is not None and error.retriable

    def get(self, timeout: float | None = None) -> RecordMetadata:
        """Wait for the outcome, at most `timeout` seconds.

        Raises:
            KafkaTimeoutError: the outcome was not known by then; the record may still arrive.
            KafkaError: the record failed.
            IllegalStateError: called in a callback for a record whose outcome is not known.
        """
        if not self.is_done:
            self._wait(timeout)
        return self._outcome()

    def _wait(self, timeout: float | None) -> None:
        engine = self._result._engine
        engine.check_may_wait("get()")
        engine.check_usable("get()")
        deadline = Deadline(engine.clock, None if timeout is None else timeout * 1000)
        while not self.is_done:
            result, _ = self._result.locate(self._index)
            if not (result.wait(deadline) or self.is_done):
                raise KafkaTimeoutError(
                    f"no acknowledgement of the record for {self.topic_partition.topic}-"
                    f"{self.topic_partition.partition} within {timeout} s; it is still on its way"
                )

    def _outcome(self) -> RecordMetadata:
        error = self.exception
        if error is not None:
            raise error
        value = self.value
        assert value is not None, "an outcome is an error or a value"
        return value

    def add_callback(
        self, f: Callable[..., Any], *args: Any, **kwargs: Any
    ) -> FutureRecordMetadata:
        """Call `f(*args, record_metadata, **kwargs)` once the record is written."""
        return self._register(f, args, kwargs, on_success=True)

    def add_errback(self, f: Callable[..., Any], *args: Any, **kwargs: Any) -> FutureRecordMetadata:
        """Call `f(*args, error, **kwargs)` once the record has failed."""
        return self._register(f, args, kwargs, on_error=True)

    def add_both(self, f: Callable[..., Any], *args: Any, **kwargs: Any) -> FutureRecordMetadata:
        """Call `f` as a callback or as an errback, whichever it will be."""
        return self._register(f, args, kwargs, on_success=True, on_error=True)

    def _register(
        self,
        function: Callable[..., Any],
        args: tuple[Any, ...],
        kwargs: dict[str, Any],
        *,
        on_success: bool = False,
        on_error: bool = False,
    ) -> FutureRecordMetadata:
        if args or kwargs:
            function = functools.partial(function, *args, **kwargs)
        result, index = self._result.locate(self._index)
        result.register(
            _Registration(self, index, function, on_success=on_success, on_error=on_error)
        )
        return self

    def __await__(self) -> Generator[Any, None, RecordMetadata]:
        while not self.is_done:
            import asyncio  # a program that awaits has loaded it already

            result, _ = self._result.locate(self._index)
            yield from result.loop_event(asyncio.get_running_loop()).wait().__await__()
        return self._outcome()

    def __repr__(self) -> str:
        error = self.exception
        state = "pending" if not self.is_done else f"{self.value if error is None else error!r}"
        return f"<FutureRecordMetadata for {self.topic_partition}: {state}>"
