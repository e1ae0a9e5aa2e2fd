"""What the I/O thread has for the caller's thread.

The I/O thread never runs a program's code for the consumer: it posts it here, and the caller's
thread runs it inside `poll`. The consumer waits here and nowhere else, so whatever happens
(records, a rebalance, a finished commit, `wakeup`) ends its wait by `ring`.
"""

from collections import deque
from collections.abc import Callable
from typing import TypeAlias

from pyclient.errors import KafkaError
from pyclient.net.waiting import Waiter

Action: TypeAlias = Callable[[], None]


class Inbox:
    """Actions for the caller's thread, and the bell that wakes it."""

    def __init__(self, new_waiter: Callable[[], Waiter], submit: Callable[[Action], None]) -> None:
        """`submit` runs an action on the I/O thread."""
        self._new_waiter = new_waiter
        self._submit = submit
        self._actions: deque[Action] = deque()
        self._waiter = new_waiter()

    def post(self, action: Action) -> None:
        """Have the caller's thread run `action` in its next poll. Any thread."""
        self._actions.append(action)
        self.ring()

    def post_error(self, error: KafkaError, acknowledge: Action | None = None) -> None:
        """Have the caller's next poll raise `error`. Any thread.

        A core that would only meet the error again waits until `acknowledge` is called, on the
        I/O thread, when the program has the error: so errors do not pile up between polls.
        """

        def fail() -> None:
            if acknowledge is not None:
                self._submit(acknowledge)
            raise error

        self.post(fail)

    def ring(self) -> None:
        """End the wait, or the next one if there is none. Any thread."""
        self._waiter.wake()

    def run(self) -> None:
        """Run what was posted, in order; one that raises leaves the rest for the next time."""
        while self._actions:
            self._actions.popleft()()

    def wait(self, timeout_ms: float) -> None:
        """Block until `ring`, at most so long. The caller's thread, which then looks again."""
        if self._waiter.wait(timeout_ms):
            # A new latch first, then the look: what comes in between rings the new one.
            self._waiter = self._new_waiter()
