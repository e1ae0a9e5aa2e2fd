"""The loop of a client: run commands, poll the managers, do the network, call back, repeat.

All of a client's cores run here, on one daemon thread, or one turn at a time when a simulation
or a test calls `run_once` itself. Other threads only queue commands and wake it.
"""

import logging
import math
from collections import deque
from collections.abc import Callable
from typing import Any, Generic, Protocol, TypeVar, cast

from pyclient.clock import Clock
from pyclient.errors import Cancelled, IllegalStateError, KafkaError, KafkaTimeoutError
from pyclient.net.network_client import NetworkClient
from pyclient.net.poller import Poller
from pyclient.net.request_manager import RequestManager
from pyclient.net.waiting import Waiter, Waiting, check_may_wait

log = logging.getLogger(__name__)

Result = TypeVar("Result")


class Command(Protocol):
    """A call for the loop that is told if the loop ends before it runs."""

    def __call__(self) -> None:
        """Run the command. On the I/O thread."""

    def fail(self, error: KafkaError) -> None:
        """The loop ended before the command ran. On any thread."""


class _Call(Generic[Result]):
    """A command whose caller waits for its result."""

    __slots__ = ("_function", "_waiter", "error", "result")

    def __init__(self, function: Callable[[], Result], waiter: Waiter) -> None:
        self._function = function
        self._waiter = waiter
        self.result: Result | None = None
        self.error: BaseException | None = None

    def __call__(self) -> None:
        try:
            self.result = self._function()
        except Exception as error:  # noqa: BLE001  it is raised again, where the call was made
            self.error = error
        self._waiter.wake()

    def fail(self, error: KafkaError) -> None:
        self.error = error
        self._waiter.wake()


class IoThread:
    """The loop of one client.

    Attributes:
        failure: what ended the loop, if not `close`.
        ended: wakes when the loop is over and everything is let go of.
    """

    def __init__(
        self, network: NetworkClient, poller: Poller, clock: Clock, waiting: Waiting
    ) -> None:
        self.failure: BaseException | None = None
        self.ended = waiting.waiter()
        self._network = network
        self._poller = poller
        self._clock = clock
        self._waiting = waiting
        self._managers: list[RequestManager] = []
        self._commands: deque[Callable[[], Any]] = deque()
        self._closing = False
        self._is_over = False

    def add_manager(self, manager: RequestManager) -> None:
        """Drive a manager. Before the loop starts."""
        self._managers.append(manager)

    # --- from any thread ---------------------------------------------------------------------

    def wake(self) -> None:
        """Have the managers polled soon. Costs next to nothing while the loop is awake."""
        self._poller.wake()

    def submit(self, command: Callable[[], Any] | Command) -> None:
        """Run a command on the loop. What it raises is logged.

        A `Command` is told if the loop has ended; a plain function is dropped then.
        """
        self._commands.append(command)
        self._poller.wake()
        if self._is_over:
            self._fail_commands()

    def call(self, function: Callable[[], Result], timeout_ms: float) -> Result:
        """Run a function on the loop, and wait for its result or exception.

        Raises:
            KafkaTimeoutError: the loop did not get to it in time; it may still run.
            Cancelled: the loop ended first.
        """
        check_may_wait(self._waiting, "call")
        waiter = self._waiting.waiter()
        call = _Call(function, waiter)
        self.submit(call)
        if not waiter.wait(timeout_ms):
            raise KafkaTimeoutError(f"the I/O thread did not answer within {timeout_ms:.0f} ms")
        if call.error is not None:
            raise call.error
        return cast(Result, call.result)

    def stop(self) -> None:
        """End the loop after its current turn; `ended` wakes when it has."""
        self._closing = True
        self._poller.wake()

    # --- on the I/O thread -------------------------------------------------------------------

    def run(self) -> None:
        """Run turns until `stop`, then fail what is left and close everything."""
        self._waiting.claim_io_thread()
        try:
            while not self._closing:
                self.run_once()
        except BaseException as error:
            log.exception("The I/O thread has failed; the client is unusable")
            self.failure = error
        self.finish()

    @property
    def is_closing(self) -> bool:
        """Whether `stop` was called: the next thing to do is `finish`."""
        return self._closing

    def run_once(self) -> None:
        """One turn. Waits for the network, at most until something is due."""
        now_ms = self._clock.monotonic_ms()
        while self._commands:
            self._run_command(self._commands.popleft())
        network = self._network
        wake_at_ms = math.inf
        for manager in self._managers:
            requests, next_poll_ms = manager.poll(now_ms)
            for request in requests:
                network.send(request, now_ms)
            if next_poll_ms < wake_at_ms:
                wake_at_ms = next_poll_ms
        news = self._poller.poll(min(wake_at_ms, network.next_deadline_ms) - now_ms)
        network.on_events(news, self._clock.monotonic_ms())

    def _run_command(self, command: Callable[[], Any]) -> None:
        try:
            command()
        except Exception:
            log.exception("A command failed on the I/O thread")

    def finish(self) -> None:
        """Fail every request, manager and caller that still waits, and close the poller."""
        error: KafkaError = Cancelled("the client was closed")
        if self.failure is not None:
            error = IllegalStateError(f"the client's I/O thread has failed: {self.failure!r}")
        self._closing = True
        self._network.close(error, self._clock.monotonic_ms())
        for manager in self._managers:
            try:
                manager.close(error)
            except Exception:
                log.exception("A manager could not be closed")
        self._poller.close()
        self._is_over = True
        self._fail_commands()
        self.ended.wake()

    def _fail_commands(self) -> None:
        while self._commands:
            try:
                command = self._commands.popleft()
            except IndexError:
                return  # another thread took the last one
            fail = getattr(command, "fail", None)
            if fail is not None:
                fail(Cancelled("the client was closed"))
