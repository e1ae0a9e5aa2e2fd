"""How an admin call reaches its broker: the right node, repeated attempts, one deadline.

Used by the caller's thread; everything that waits does so in the engine.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping
from typing import Any, Final, TypeVar

from pyclient.admin.results import Result
from pyclient.errors import (
    KafkaError,
    KafkaTimeoutError,
    NotControllerError,
    ThrottlingQuotaExceededError,
    for_code,
)
from pyclient.net.engine import Engine
from pyclient.protocol.schema import Message
from pyclient.timers import Deadline, ExponentialBackoff

Answer = TypeVar("Answer")
Item = TypeVar("Item")
AnyResult = TypeVar("AnyResult", bound=Result)

# Of the errors that a result can tell, these and no others say that nothing was tried: the same
# request may work soon. An unknown topic, say, is retriable too, but an answer to the caller.
_NOT_TRIED: Final = (NotControllerError, ThrottlingQuotaExceededError)


class AdminRequests:
    """Sends the requests of admin calls and sees them through."""

    def __init__(self, engine: Engine, config: Mapping[str, Any]) -> None:
        self._engine = engine
        self._default_timeout_ms: int = config["default.api.timeout.ms"]
        self._request_timeout_ms: int = config["request.timeout.ms"]
        self._retries_max: int = config["retries"]
        self._backoff = ExponentialBackoff(
            engine.entropy, config["retry.backoff.ms"], config["retry.backoff.max.ms"]
        )

    def deadline(self, timeout_ms: float | None) -> Deadline:
        """When a call that was given this timeout has to end."""
        wanted_ms = self._default_timeout_ms if timeout_ms is None else timeout_ms
        return Deadline(self._engine.clock, wanted_ms)

    def ask(self, request: Message, deadline: Deadline, *, node: int | None = None) -> Message:
        """Send a request until it is answered.

        Raises:
            KafkaTimeoutError: there was no answer by the deadline; says why.
            KafkaError: there never will be one.
        """
        return self._repeat(lambda: self._ask_once(request, deadline, node), deadline)

    def settle(
        self,
        items: Mapping[str, Item],
        make_request: Callable[[list[Item]], Message],
        results_of: Callable[[Any], Iterable[tuple[str, AnyResult]]],
        deadline: Deadline,
    ) -> dict[str, AnyResult]:
        """Have the controller deal with named items, and return what became of each.

        Items that it did not try are sent again, the others are not.
        """
        results: dict[str, AnyResult] = {}
        pending = dict(items)

        def send_pending() -> None:
            request = make_request(list(pending.values()))
            response = self._ask_once(request, deadline, self._controller())
            not_tried: KafkaError | None = None
            for name, result in results_of(response):
                results[name] = result
                error = for_code(result.error_code)
                if issubclass(error, _NOT_TRIED):
                    not_tried = error(result.error_message or name)
                else:
                    pending.pop(name, None)
            if not_tried is not None:
                raise not_tried

        self._repeat(send_pending, deadline)
        return results

    def _repeat(self, attempt: Callable[[], Answer], deadline: Deadline) -> Answer:
        attempts = 0
        while True:
            try:
                return attempt()
            except KafkaError as error:
                if not error.retriable or attempts >= self._retries_max:
                    raise
                self._engine.metadata.request_update()
                self._pause(error, attempts, deadline)
            attempts += 1

    def _ask_once(self, request: Message, deadline: Deadline, node: int | None) -> Message:
        self._engine.check_usable(type(request).__name__)
        timeout_ms = min(deadline.remaining_ms(), self._request_timeout_ms)
        return self._engine.request(request, node, timeout_ms)

    def _pause(self, error: KafkaError, attempts: int, deadline: Deadline) -> None:
        pause_ms = min(self._backoff.backoff_ms(attempts), deadline.remaining_ms())
        self._engine.waiter().wait(pause_ms)
        if deadline.expired:
            raise KafkaTimeoutError(
                f"the call did not succeed within {deadline.timeout_ms:.0f} ms: {error}"
            ) from error

    def _controller(self) -> int | None:
        """The controller as the metadata tells it; without one any broker will pass it on."""
        snapshot = self._engine.metadata.snapshot
        return snapshot.controller_id if snapshot.controller_id in snapshot.brokers else None
