"""What the I/O thread has for the caller's thread.

The I/O thread never runs a program's code for the consumer: it posts it here, and the caller's
thread runs it inside `poll`. The consumer waits here and nowhere else, so whatever happens
(records, a rebalance, a finished commit, `wakeup`) ends its wait by `ring`.
"""

from collections import deque
from collections.abc import Callable
from typing import NamedTuple, TypeAlias

from pyclient.errors import IllegalStateError, KafkaError
from pyclient.net.waiting import Waiter

Action: TypeAlias = Callable[[], object]
Step: TypeAlias = Callable[[], bool]
"""Work in several parts: does what it can now, and returns True once it is over."""


class _PostedError(NamedTuple):
    error: KafkaError
    acknowledge: Action
    before_raise: Callable[[], bool]


def _nothing() -> None:
    pass


def _always() -> bool:
    return True


class Inbox:
    """Actions and errors for the caller's thread, and the latch that wakes it."""

    def __init__(self, new_waiter: Callable[[], Waiter], submit: Callable[[Action], None]) -> None:
        """`submit` runs an action on the I/O thread."""
        self._new_waiter = new_waiter
        self._submit = submit
        self._steps: deque[Step] = deque()
        self._actions: deque[Action] = deque()
        self._errors: deque[_PostedError] = deque()
        self._is_in_step = False
        self._waiter = new_waiter()
        self._on_post: Action = _nothing

    def on_post(self, interrupt: Action) -> None:
        """Call `interrupt`, on any thread, when something is posted. Before the engine starts."""
        self._on_post = interrupt

    # --- any thread --------------------------------------------------------------------------

    def post(self, action: Action) -> None:
        """Have the caller's thread run `action` in its next poll."""
        self._actions.append(action)
        self._on_post()
        self.ring()

    def post_step(self, step: Step) -> None:
        """Have the caller's thread run `step` in its polls until it is over.

        One that is interrupted by an exception, Ctrl-C say, is called again.
        """
        self._steps.append(step)
        self.ring()

    def post_error(
        self,
        error: KafkaError,
        acknowledge: Action = _nothing,
        before_raise: Callable[[], bool] = _always,
    ) -> None:
        """Have the caller's next poll raise `error`.

        A core that would only meet the error again waits until `acknowledge` is called, on the
        I/O thread, when the program has the error: so errors do not pile up between polls.

        Args:
            error: what to raise.
            acknowledge: called on the I/O thread, once the error has been taken out.
            before_raise: called on the caller's thread; the error is dropped if it returns False,
                because the program has dealt with it meanwhile (by a seek, say).
        """
        self._errors.append(_PostedError(error, acknowledge, before_raise))
        self._on_post()
        self.ring()

    def ring(self) -> None:
        """End the wait, or the next one if there is none."""
        self._waiter.wake()

    # --- the caller's thread -----------------------------------------------------------------

    @property
    def is_empty(self) -> bool:
        """Whether nothing was posted."""
        return not (self._steps or self._actions or self._errors)

    def run(self) -> None:
        """Run what was posted, in order; one that raises leaves the rest for the next time.

        Raises:
            IllegalStateError: called by what it runs.
        """
        if self._is_in_step:
            raise IllegalStateError(
                "poll() inside a rebalance: a listener or an assignor may not poll; return from "
                "it, and poll afterwards"
            )
        try:
            self._is_in_step = True
            # Removed only when it is over: an interrupt must not lose a part of a rebalance.
            while self._steps and self._steps[0]():
                self._steps.popleft()
        finally:
            self._is_in_step = False
        self.run_actions()
        self.raise_error()

    def run_actions(self) -> None:
        """Run the actions that were posted."""
        while self._actions:
            self._actions.popleft()()

    def raise_error(self) -> None:
        """Raise the first error that was posted, if any, and run nothing else."""
        while self._errors:
            posted = self._errors.popleft()
            is_current = posted.before_raise()
            self._submit(posted.acknowledge)
            if is_current:
                raise posted.error

    def wait(self, timeout_ms: float) -> None:
        """Block until `ring`, at most `timeout_ms`."""
        if self._waiter.wait(timeout_ms):
            # A new latch first, then the look: what comes in between rings the new one.
            self._waiter = self._new_waiter()
