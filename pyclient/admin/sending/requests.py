"""Sends an admin call's requests: the right node, retries, one deadline.

Used by the caller's thread; everything that waits does so in the engine.
"""

from collections.abc import Callable, Mapping, Sequence
from copy import copy
from typing import Any, Final, TypeVar, cast

from pyclient.admin.sending.results import AnyResult, Outcome, Result, error_of
from pyclient.admin.sending.work import Item, Key, Routed, Settling, Work, is_passing
from pyclient.errors import (
    KafkaConnectionError,
    KafkaError,
    KafkaTimeoutError,
    RequestTimedOutError,
)
from pyclient.net.engine import Engine
from pyclient.protocol.schema import Message
from pyclient.timers import Deadline, ExponentialBackoff

Answer = TypeVar("Answer")
AnyMessage = TypeVar("AnyMessage", bound=Message)

# After these errors, the request may have been carried out, or may still be.
_IN_DOUBT: Final = (KafkaConnectionError, RequestTimedOutError)


class AdminRequests:
    """Sends the requests of admin calls."""

    def __init__(self, engine: Engine, config: Mapping[str, Any]) -> None:
        self._engine = engine
        self._default_timeout_ms: float = config["default.api.timeout.ms"]
        self._request_timeout_ms: int = config["request.timeout.ms"]
        self._retries_max: int = config["retries"]
        self._backoff = ExponentialBackoff(
            engine.entropy, config["retry.backoff.ms"], config["retry.backoff.max.ms"]
        )

    def deadline(self, timeout_ms: float | None = None) -> Deadline:
        """The deadline of a call with this timeout."""
        wanted_ms = self._default_timeout_ms if timeout_ms is None else timeout_ms
        return Deadline(self._engine.clock, wanted_ms)

    def within(self, seconds: float) -> "AdminRequests":
        """The same, for calls that end by this timeout unless they have one of their own."""
        bounded = copy(self)
        bounded._default_timeout_ms = seconds * 1000
        return bounded

    def now_ms(self) -> int:
        """The time, as in timestamps of records."""
        return self._engine.clock.now_ms()

    def brokers(self) -> list[int]:
        """The ids of all brokers in the metadata."""
        return sorted(self._engine.metadata.snapshot.brokers)

    def ask(
        self,
        request: Message,
        answer: type[AnyMessage],
        deadline: Deadline,
        *,
        node: int | None = None,
        name: str = "",
    ) -> AnyMessage:
        """Send a request without side effects, with retries; errors of the response are raised.

        Args:
            request: what to send.
            answer: the class of the response.
            deadline: when the call must end.
            node: the broker to ask; None for any.
            name: what the request is about, for errors.

        Raises:
            KafkaTimeoutError: there was no response by the deadline; says why.
            KafkaError: an error that cannot be retried.
        """
        return self.repeat(lambda: self.ask_once(request, answer, deadline, node, name), deadline)

    def ask_once(
        self,
        request: Message,
        answer: type[AnyMessage],
        deadline: Deadline,
        node: int | None,
        name: str = "",
    ) -> AnyMessage:
        """Send a request once; for routes, which are evaluated again with every attempt."""
        response = self.send_once(request, deadline, node)
        assert isinstance(response, answer)
        if getattr(response, "error_code", 0):
            error = error_of(name, cast(Result, response))
            assert error is not None
            raise error
        return response

    def send_once(self, request: Message, deadline: Deadline, node: int | None) -> Message:
        """Send a request once, and leave all errors of the response to the caller."""
        self._engine.check_usable(type(request).__name__)
        timeout_ms = min(deadline.remaining_ms(), self._request_timeout_ms)
        return self._engine.request(request, node, timeout_ms)

    def settle(self, work: Work[Key, Item, AnyResult]) -> dict[Key, Outcome[AnyResult]]:
        """Have brokers process named things, and return the outcome of each.

        Things that were not attempted are sent again. After an attempt without a response, a
        change is retried, too, and the retry's result is final: whether an existing topic was
        created by the first attempt or by another client cannot be known.

        Raises:
            KafkaTimeoutError: some were not processed by the deadline; says why.
            KafkaError: an error that cannot be retried.
        """
        settling = Settling(work)

        def send_pending() -> None:
            routed = work.route(list(settling.pending), work.deadline)
            trouble = settling.take_in_unrouted(routed.failed)
            for node, keys in routed.nodes.items():
                try:
                    response = self.send_once(settling.request(keys), work.deadline, node)
                except KafkaError as error:
                    if not error.retriable:
                        raise
                    trouble = error
                    if isinstance(error, _IN_DOUBT):
                        settling.in_doubt.update(keys)
                else:
                    trouble = settling.take_in(keys, response) or trouble
            if trouble is not None:
                raise trouble

        try:
            self.repeat(send_pending, work.deadline)
        except KafkaTimeoutError as error:
            unknown = ", ".join(settling.unknown())
            if not unknown:
                raise
            raise KafkaTimeoutError(f"{error}; it may have happened all the same: {unknown}") from (
                error.__cause__
            )
        return {key: settling.outcomes[key] for key in work.items}

    def repeat(self, attempt: Callable[[], Answer], deadline: Deadline) -> Answer:
        """Repeat an attempt until it succeeds, fails with a final error, or the time is over."""
        attempts = 0
        while True:
            try:
                return attempt()
            except KafkaError as error:
                if not is_passing(error) or attempts >= self._retries_max:
                    raise
                self._engine.metadata.request_update()
                self.pause(error, attempts, deadline)
            attempts += 1

    def pause(self, error: KafkaError, attempts: int, deadline: Deadline) -> None:
        """Wait before the next attempt.

        Raises:
            KafkaTimeoutError: there is no time for another attempt; `error` is the cause.
        """
        pause_ms = min(self._backoff.backoff_ms(attempts), deadline.remaining_ms())
        self._engine.waiter().wait(pause_ms)
        if deadline.expired:
            raise KafkaTimeoutError(
                f"the call did not succeed within {deadline.timeout_ms:.0f} ms: {error}"
            ) from error

    def to_controller(self, keys: Sequence[Key], deadline: Deadline) -> Routed[Key]:  # noqa: ARG002
        """A route to the controller; if it is unknown, any broker forwards the request."""
        return Routed({self.controller(): keys})

    def to_any(self, keys: Sequence[Key], deadline: Deadline) -> Routed[Key]:  # noqa: ARG002
        """A route to any broker."""
        return Routed({None: keys})

    def controller(self) -> int | None:
        """The controller's id; None while it is unknown."""
        snapshot = self._engine.metadata.snapshot
        return snapshot.controller_id if snapshot.controller_id in snapshot.brokers else None
