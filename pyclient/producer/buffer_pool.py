"""The producer's memory: `buffer.memory` bytes in all, handed out first come, first served.

Buffers of the pooled size (`batch.size`) go round for ever on a free list; a buffer of another
size counts against the total and is not kept. Callers' threads allocate and may wait, the I/O
thread releases. One lock guards everything here; waiters are woken after it is let go.
"""

from collections import deque
from collections.abc import Callable, Iterable
from typing import Protocol, TypeAlias

from pyclient.clock import Clock
from pyclient.errors import BufferExhaustedError, IllegalStateError
from pyclient.net.waiting import Waiter
from pyclient.producer.reentry import check_not_reentered, new_lock

Buffer: TypeAlias = bytearray | memoryview
"""Memory that counts against the total: what the pool gave out, or what it was exchanged for."""


class Holder(Protocol):
    """An owner of the pool's buffers, or of what they were exchanged for."""

    kept: memoryview | None
    spare: list[bytearray]

    def release_to(self, buffers: list[Buffer]) -> None:
        """Add the buffers to the list, in a step that cannot be interrupted."""


class _Claim:
    """A request for memory and what was granted; has a waiter if the caller has to wait."""

    __slots__ = ("buffer", "granted", "size", "waiter")

    def __init__(self, size: int) -> None:
        self.size = size
        self.waiter: Waiter | None = None
        self.granted = False
        self.buffer: bytearray | None = None


class BufferPool:
    """Bounded memory for record batches."""

    def __init__(
        self,
        total: int,
        pooled_size: int,
        *,
        clock: Clock,
        waiter: Callable[[], Waiter],
        on_exhausted: Callable[[], None],
    ) -> None:
        """Allocate nothing yet.

        Args:
            total: the bound, in bytes.
            pooled_size: the size of the buffers that are kept.
            clock: measures how long callers waited.
            waiter: makes what a caller waits with.
            on_exhausted: called, outside the lock, before a caller waits: batches that linger
                have to be sent now, or nothing would come back.
        """
        self.total = total
        self.pooled_size = pooled_size
        self._clock = clock
        self._waiter = waiter
        self._on_exhausted = on_exhausted
        self._lock = new_lock()
        self._free: list[bytearray] = []
        # Free bytes outside the free list. Negative while a split holds more than there is (see
        # `allocate_beyond`).
        self._unpooled = total
        self._returning: list[Buffer] = []  # on their way back
        self._queue: deque[_Claim] = deque()
        self._closed = False
        self.exhausted_count = 0  # callers whose wait timed out
        self.waited_ms = 0.0  # by all callers together

    @property
    def available(self) -> int:
        """Free bytes; read without the lock."""
        return self._available()

    @property
    def waiting_count(self) -> int:
        """How many callers wait for memory; read without the lock."""
        return len(self._queue)

    def allocate(self, size: int, timeout_ms: float) -> bytearray:
        """A buffer of `size` bytes; blocks while memory is short or earlier callers wait.

        Raises:
            BufferExhaustedError: there was no memory for `timeout_ms`.
            IllegalStateError: the pool was closed, before or meanwhile; or a signal handler has
                interrupted another call.
        """
        check_not_reentered(self._lock)
        claim = _Claim(size)
        try:
            with self._lock:
                self._check_open()
                if self._queue or self._available() < size:
                    claim.waiter = self._waiter()
                    self._queue.append(claim)
                else:
                    self._set_aside(claim)
            if claim.waiter is not None:
                self._on_exhausted()
                self._wait_for(claim, claim.waiter, timeout_ms)
            return self._buffer_of(claim)
        except BaseException:  # Ctrl-C, say: do not leak the memory
            self._give_up(claim)
            raise

    def try_allocate(self, size: int) -> bytearray | None:
        """A buffer of `size` bytes if there is one and no caller waits, else None.

        Raises:
            IllegalStateError: the pool is closed; or as above.
        """
        check_not_reentered(self._lock)
        claim = _Claim(size)
        try:
            with self._lock:
                self._check_open()
                if self._queue or self._available() < size:
                    return None
                self._set_aside(claim)
            return self._buffer_of(claim)
        except BaseException:
            self._give_up(claim)
            raise

    def lend(self, holder: Holder, count: int) -> int:
        """Fill up a holder's spare buffers to `count` pooled ones; returns how many it has then.

        Fewer if there is no more memory, or somebody waits for it.

        Raises:
            IllegalStateError: the pool is closed; or as above.
        """
        check_not_reentered(self._lock)
        spare, free = holder.spare, self._free
        with self._lock:
            self._check_open()
            if not self._queue:
                lent = min(count - len(spare), self._available() // self.pooled_size)
                kept = max(len(free) - max(lent, 0), 0)
                created = [bytearray(self.pooled_size) for _ in range(lent - (len(free) - kept))]
                unpooled = self._unpooled - len(created) * self.pooled_size
                # One step without a call, so that an interrupt leaves each buffer in one place.
                spare[:], free[kept:], self._unpooled = spare + free[kept:] + created, (), unpooled
        return len(spare)

    def allocate_beyond(self, size: int) -> bytearray:
        """A buffer of `size` bytes, now, even if the total does not have them.

        Only for the I/O thread, which cannot wait, when it splits a batch: what the parts take
        beyond the bound is paid back as soon as the whole is released.
        """
        buffer = bytearray(size)
        with self._lock:
            self._unpooled -= size
        return buffer

    def release(self, buffers: Iterable[Buffer]) -> None:
        """Take buffers back, and grant waiting claims."""
        with self._lock:
            self._returning += buffers
            self._take_back()
            granted = self._grant()
        _wake(granted)

    def exchange(self, holder: Holder, kept: memoryview) -> None:
        """Take a holder's buffers back for bytes that are elsewhere, and count, too, from now on.

        It may be interrupted: the holder has `kept` just if it counts.
        """
        size = len(kept)
        with self._lock:
            while self._unpooled < size and self._free:
                self._unpool()
            holder.kept, self._unpooled = kept, self._unpooled - size
            holder.release_to(self._returning)
            self._take_back()
            granted = self._grant()
        _wake(granted)

    def check_not_interrupted(self) -> None:
        """Raise where a signal handler has interrupted this thread inside a call of the pool."""
        check_not_reentered(self._lock)

    @property
    def is_short(self) -> bool:
        """Whether more than half of the memory is in use; read without the lock."""
        return 2 * self._available() < self.total

    def _take_back(self) -> None:
        """Under the lock. An interrupt leaves the rest to the next time.

        It comes at a call or a turn of the loop, so never between the last two steps.
        """
        returning = self._returning
        while returning:
            buffer = returning[-1]
            size = len(buffer)
            # What `exchange` let its owner keep is not ours; and what is held beyond the total is
            # paid back before anything is pooled.
            is_ours = size == self.pooled_size and isinstance(buffer, bytearray)
            if is_ours and self._unpooled >= 0:
                self._free += (buffer,)  # type: ignore[arg-type]
            else:
                self._unpooled += size
            del returning[-1]

    def _unpool(self) -> None:
        """Drop a free buffer, but keep its bytes available."""
        del self._free[-1]
        self._unpooled += self.pooled_size

    def close(self) -> None:
        """Allocate no more; waiting callers get an error. Buffers can still be released."""
        check_not_reentered(self._lock)
        with self._lock:
            self._closed = True
            refused = list(self._queue)
            self._queue.clear()
        _wake(refused)

    def _available(self) -> int:
        return self._unpooled + len(self._free) * self.pooled_size

    def _check_open(self) -> None:
        if self._closed:
            raise IllegalStateError("the producer was closed: no memory for another record")

    def _set_aside(self, claim: _Claim) -> None:
        """Give a claim the memory that is there for it. Under the lock.

        Where no buffer is free, reserves its bytes: the caller creates the buffer outside the lock.
        No call between taking and noting, or an interrupt might come in between.
        """
        if claim.size == self.pooled_size and self._free:
            claim.buffer = self._free[-1]
            del self._free[-1]
            claim.granted = True
            return
        while self._unpooled < claim.size:
            self._unpool()
        self._unpooled -= claim.size
        claim.granted = True

    def _buffer_of(self, claim: _Claim) -> bytearray:
        return bytearray(claim.size) if claim.buffer is None else claim.buffer

    def _grant(self) -> list[_Claim]:
        """Set memory aside for the oldest claims, as far as it goes. Under the lock."""
        granted = []
        # In order: a large claim must not starve.
        while self._queue and self._available() >= self._queue[0].size:
            claim = self._queue.popleft()
            self._set_aside(claim)
            granted.append(claim)
        return granted

    def _wait_for(self, claim: _Claim, waiter: Waiter, timeout_ms: float) -> None:
        started_ms = self._clock.monotonic_ms()
        waiter.wait(timeout_ms)
        with self._lock:
            self.waited_ms += self._clock.monotonic_ms() - started_ms
            if claim.granted:
                return
            self._check_open()
            self.exhausted_count += 1
            held = self.total - self._available()
            waiting = len(self._queue)
        raise BufferExhaustedError(
            f"no memory for a batch of {claim.size} bytes within {timeout_ms:.0f} ms"
            f" (max.block.ms): records that are not acknowledged yet hold {held} of the"
            f" {self.total} bytes of buffer.memory, and {waiting} callers wait for more",
            buffered=held,
            limit=self.total,
        )

    def _give_up(self, claim: _Claim) -> None:
        """Leave the queue; memory that was granted already goes to the next claim."""
        with self._lock:
            if claim.granted:
                claim.granted = False
                if claim.buffer is not None:
                    self._free.append(claim.buffer)
                else:
                    self._unpooled += claim.size
            elif claim in self._queue:  # not if the pool was closed
                self._queue.remove(claim)
            granted = self._grant()
        _wake(granted)


def _wake(claims: Iterable[_Claim]) -> None:
    for claim in claims:
        if claim.waiter is not None:
            claim.waiter.wake()
