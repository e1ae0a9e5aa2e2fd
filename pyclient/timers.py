"""Deadlines and back-off over an injected clock. A leaf; nothing here waits."""

import math

from pyclient.clock import Clock
from pyclient.entropy import Entropy


class Deadline:
    """The time by which a call must end; it may span several waits."""

    __slots__ = ("_clock", "_end_ms", "timeout_ms")

    def __init__(self, clock: Clock, timeout_ms: float | None) -> None:
        """Start now; None never expires."""
        if timeout_ms is not None and timeout_ms < 0:
            raise ValueError(f"a timeout cannot be negative: {timeout_ms} ms")
        self._clock = clock
        self.timeout_ms = math.inf if timeout_ms is None else timeout_ms
        self._end_ms = clock.monotonic_ms() + self.timeout_ms

    def remaining_ms(self) -> float:
        """The time left, at least 0; infinity if it never expires."""
        return max(0.0, self._end_ms - self._clock.monotonic_ms())

    @property
    def expired(self) -> bool:
        """Whether the time is over."""
        return self._clock.monotonic_ms() >= self._end_ms


class ExponentialBackoff:
    """Kafka's pause between attempts: doubled each time up to a maximum, and jittered.

    The jitter keeps clients that failed together from coming back together.
    """

    __slots__ = ("_entropy", "_exponent_max", "_initial_ms", "_jitter", "_max_ms", "_multiplier")

    def __init__(
        self,
        entropy: Entropy,
        initial_ms: float,
        max_ms: float,
        multiplier: float = 2.0,
        jitter: float = 0.2,
    ) -> None:
        self._entropy = entropy
        self._initial_ms = min(initial_ms, max_ms)
        self._max_ms = max_ms
        self._multiplier = multiplier
        self._jitter = jitter
        # Past this exponent the maximum rules; without the bound the power would overflow.
        self._exponent_max = (
            math.log(max_ms / max(initial_ms, 1), multiplier) if max_ms > initial_ms else 0.0
        )

    def backoff_ms(self, attempts: int) -> float:
        """The pause after `attempts` earlier pauses: 0 gives the initial one."""
        if self._exponent_max <= 0:
            return self._initial_ms
        factor = self._entropy.uniform(1 - self._jitter, 1 + self._jitter)
        growth = math.pow(self._multiplier, min(attempts, self._exponent_max))
        return min(self._initial_ms * growth * factor, self._max_ms)
