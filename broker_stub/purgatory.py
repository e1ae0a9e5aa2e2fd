"""Where delayed operations wait: for an event on a key they watch, or for a timeout.

`Timers` is the node's one timer; `Purgatory` adds the keys that operations watch (a partition, a
group). Neither blocks: the serving loop sleeps until `Timers.next_deadline_ms`, then calls
`Timers.fire`. Serving thread only.
"""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections.abc import Callable, Hashable, Iterable
from heapq import heapify, heappop, heappush

from pyclient.clock import Clock


class Timer:
    """A callback at a deadline."""

    __slots__ = ("_timers", "callback", "deadline_ms")

    def __init__(
        self, timers: Timers, deadline_ms: float, callback: Callable[[], None] | None
    ) -> None:
        self._timers = timers
        self.deadline_ms = deadline_ms
        self.callback = callback

    @property
    def pending(self) -> bool:
        """Whether it has neither fired nor been cancelled."""
        return self.callback is not None

    def cancel(self) -> None:
        """Do not call back. No effect if it fired or was cancelled."""
        if self.callback is not None:
            self.callback = None
            self._timers.note_cancelled()


class Timers:
    """Deadlines on the monotonic clock, earliest first; equal ones in the order they were set."""

    # Cancelled timers stay in the heap until they surface. Below this many they are not worth
    # a sweep; above, one is due when they are the majority, so a sweep is paid for by what it
    # removes.
    SWEEP_AT_LEAST = 512

    def __init__(self, clock: Clock) -> None:
        self._clock = clock
        self._heap: list[tuple[float, int, Timer]] = []
        self._count = 0
        self._cancelled = 0

    def now_ms(self) -> float:
        """The monotonic time that deadlines are counted in."""
        return self._clock.monotonic_ms()

    def after(self, delay_ms: float, callback: Callable[[], None]) -> Timer:
        """Call back in `delay_ms`."""
        timer = Timer(self, self._clock.monotonic_ms() + delay_ms, callback)
        self._count += 1
        heappush(self._heap, (timer.deadline_ms, self._count, timer))
        return timer

    def next_deadline_ms(self) -> float | None:
        """When the next timer is due, in monotonic milliseconds; None without one."""
        heap = self._heap
        while heap and not heap[0][2].pending:
            heappop(heap)
            self._cancelled -= 1
        return heap[0][0] if heap else None

    def fire(self) -> None:
        """Call back every timer that is due."""
        now_ms = self._clock.monotonic_ms()
        while (deadline_ms := self.next_deadline_ms()) is not None and deadline_ms <= now_ms:
            timer = heappop(self._heap)[2]
            callback, timer.callback = timer.callback, None
            if callback is not None:
                callback()

    def note_cancelled(self) -> None:
        """Count a cancelled timer; remove them when they are most of the heap."""
        self._cancelled += 1
        if self._cancelled > self.SWEEP_AT_LEAST and self._cancelled * 2 > len(self._heap):
            self._heap = [entry for entry in self._heap if entry[2].pending]
            heapify(self._heap)
            self._cancelled = 0


class DelayedOperation(ABC):
    """Something that waits for a condition, at most for a time, and completes exactly once."""

    # Set by the purgatory while the operation is in it.
    watched: tuple[Hashable, ...] = ()
    timer: Timer | None = None

    @abstractmethod
    def try_complete(self, key: Hashable) -> bool:
        """Something happened to `key`: complete if the condition holds now; whether it did."""

    @abstractmethod
    def expire(self) -> None:
        """The time is up: complete with what there is."""


class Purgatory:
    """Delayed operations by the keys they watch."""

    def __init__(self, timers: Timers) -> None:
        self._timers = timers
        self._watchers: dict[Hashable, dict[DelayedOperation, None]] = {}

    def __len__(self) -> int:
        return len({operation for watchers in self._watchers.values() for operation in watchers})

    def watch(
        self, operation: DelayedOperation, keys: Iterable[Hashable], timeout_ms: float
    ) -> None:
        """Keep an operation until it completes on one of its keys, or its time is up."""
        operation.watched = tuple(keys)
        for key in operation.watched:
            self._watchers.setdefault(key, {})[operation] = None
        operation.timer = self._timers.after(timeout_ms, lambda: self._expire(operation))

    def check_and_complete(self, key: Hashable) -> None:
        """Something happened to `key`: try to complete the operations that watch it."""
        watchers = self._watchers.get(key)
        if watchers is None:
            return
        # A copy: completing one may add or remove others.
        for operation in tuple(watchers):
            if operation in watchers and operation.try_complete(key):
                self.forget(operation)

    def forget(self, operation: DelayedOperation) -> None:
        """Remove an operation, completed or abandoned."""
        if operation.timer is not None:
            operation.timer.cancel()
            operation.timer = None
        for key in operation.watched:
            watchers = self._watchers.get(key)
            if watchers is not None:
                watchers.pop(operation, None)
                if not watchers:
                    del self._watchers[key]
        operation.watched = ()

    def _expire(self, operation: DelayedOperation) -> None:
        self.forget(operation)
        operation.expire()
