"""How the consumer's calls wait for the I/O thread, and how `wakeup` ends a wait.

The caller's thread only, but for `wakeup`.
"""

from collections.abc import Callable
from typing import Final, TypeVar

from pyclient.consumer.inbox import Inbox
from pyclient.consumer.pending import Pending
from pyclient.errors import KafkaTimeoutError, WakeupError
from pyclient.net.engine import Engine
from pyclient.timers import Deadline

Value = TypeVar("Value")

_GRACE_MS: Final = 100
"""How much longer than its deadline a call waits for the I/O thread to report the cause."""


class CallerWait:
    """Blocks the caller's thread until the I/O thread reports something.

    Attributes:
        is_woken: `wakeup` was called, and no call has raised WakeupError for it yet.
        limit: what no wait outlasts, whatever its own timeout: `close` sets it, for the calls
            that listeners make inside.
    """

    def __init__(self, engine: Engine, inbox: Inbox) -> None:
        self._engine = engine
        self._inbox = inbox
        self.is_woken = False
        self.limit: Deadline | None = None

    def wakeup(self) -> None:
        """End the current wait, or the next one, with WakeupError. Any thread."""
        self.is_woken = True
        self._inbox.ring()

    def raise_if_woken(self) -> None:
        """Raise WakeupError, once for each wakeup that no call has reported yet."""
        if self.is_woken:
            self.is_woken = False
            raise WakeupError("wakeup() was called")

    def limited(self, timeout_ms: float) -> float:
        """The timeout, or what `limit` leaves of it."""
        return timeout_ms if self.limit is None else min(timeout_ms, self.limit.remaining_ms())

    def until(
        self, condition: Callable[[], bool], deadline: Deadline, interruptible: bool = True
    ) -> bool:
        """Wait until the I/O thread makes a condition true; False if time runs out first."""
        while not condition():
            self._engine.check_usable("waiting")
            if interruptible:
                self.raise_if_woken()
            remaining_ms = self.limited(deadline.remaining_ms())
            if remaining_ms <= 0:
                return False
            self._inbox.wait(remaining_ms)
        return True

    def run_callbacks_until(self, condition: Callable[[], bool], timeout_ms: float) -> None:
        """Run the callbacks of commits until a condition is true, or time runs out."""

        def is_true_now() -> bool:
            self._inbox.run_actions()
            return condition()

        self.until(is_true_now, Deadline(self._engine.clock, timeout_ms), interruptible=False)

    def result(
        self, pending: Pending[Value], timeout_ms: float, call: str, interruptible: bool = True
    ) -> Value:
        """Wait for a result; if that ends otherwise, what was asked for is abandoned.

        Raises:
            KafkaTimeoutError: it did not come in time.
            KafkaError: the I/O thread reported an error instead.
        """
        deadline = Deadline(self._engine.clock, timeout_ms + _GRACE_MS)
        try:
            is_done = self.until(lambda: pending.is_done, deadline, interruptible)
        except BaseException:
            pending.abandon()
            raise
        if not is_done:
            pending.abandon()
            raise KafkaTimeoutError(f"{call} was not answered within {timeout_ms:.0f} ms")
        return pending.result()
