"""One client's engine: wires its I/O thread, network and metadata.

What a producer, consumer or admin client is built on. Any thread may use it, but for `network`,
which belongs to the I/O thread.
"""

from __future__ import annotations

import logging
import math
import os
from collections.abc import Callable, Mapping
from typing import TYPE_CHECKING, Any, Final, TypeVar

from pyclient.config.common import addresses
from pyclient.config.tls import SSL, tls_options_given
from pyclient.errors import (
    IllegalStateError,
    KafkaConfigurationError,
    KafkaError,
    KafkaTimeoutError,
    NoBrokersAvailable,
    RequestTimedOutError,
)
from pyclient.net import lifetime
from pyclient.net.connection import ConnectionSettings
from pyclient.net.environment import Environment, SystemEnvironment
from pyclient.net.failures import address_text
from pyclient.net.io_thread import Command, IoThread
from pyclient.net.metadata_manager import MetadataManager
from pyclient.net.network_client import NetworkClient
from pyclient.net.request_manager import Outcome, RequestManager, UnsentRequest
from pyclient.net.transport import SocketOptions
from pyclient.net.waiting import check_may_wait
from pyclient.protocol.schema import Message
from pyclient.timers import Deadline, ExponentialBackoff

if TYPE_CHECKING:
    from pyclient.net.tls import TlsSettings

log = logging.getLogger(__name__)

Result = TypeVar("Result")

_EXIT_TIMEOUT_MS: Final = 2_000
_LOOP_MARGIN_MS: Final = 1_000


class Engine:
    """The part that all clients share.

    Attributes:
        clock, entropy: used by everything above the engine.
        network: the connections; for request managers, on the I/O thread.
        metadata: what is known of the cluster.
    """

    def __init__(
        self,
        config: Mapping[str, Any],
        *,
        client_id: str,
        allow_auto_create_topics: bool = True,
        environment: Environment | None = None,
    ) -> None:
        environment = environment or SystemEnvironment()
        self.clock = environment.clock
        self.entropy = environment.entropy
        self._environment = environment
        self._bootstrap = addresses(config["bootstrap.servers"])
        self._client_id = client_id
        options = _socket_options(config)  # which may find that a file is missing
        self._waiting = environment.new_waiting()
        self._poller = environment.new_poller(options)
        idle_ms = config["connections.max.idle.ms"]
        self.network = NetworkClient(
            self._bootstrap,
            self._connection_settings(config),
            self._poller,
            self.entropy,
            request_timeout_ms=config["request.timeout.ms"],
            connections_max_idle_ms=math.inf if idle_ms < 0 else idle_ms,
            rebootstrap=config["metadata.recovery.strategy"] == "rebootstrap",
        )
        self._io_thread = IoThread(self.network, self._poller, self.clock, self._waiting)
        self.metadata = MetadataManager(
            self.network,
            self._io_thread,
            self.clock,
            self._waiting,
            ExponentialBackoff(
                self.entropy, config["retry.backoff.ms"], config["retry.backoff.max.ms"]
            ),
            max_age_ms=config["metadata.max.age.ms"],
            max_idle_ms=config.get("metadata.max.idle.ms", math.inf),
            allow_auto_create_topics=allow_auto_create_topics,
            rebootstrap_trigger_ms=config["metadata.recovery.rebootstrap.trigger.ms"],
        )
        self.network.on_disconnect = self.metadata.on_disconnect
        self._io_thread.add_manager(self.metadata)
        self._join: Callable[[], None] | None = None
        self._unusable: str | None = None  # why, once it is
        self._forked = False
        self._on_unusable: list[Callable[[], None]] = []
        self._wait_checks: list[Callable[[], None]] = []
        # Looked up as an attribute on every send: no method in between.
        self.wake = self._poller.wake
        self.waiter = self._waiting.waiter
        self.on_io_thread = self._waiting.on_io_thread

    def _connection_settings(self, config: Mapping[str, Any]) -> ConnectionSettings:
        return ConnectionSettings(
            client_id=self._client_id,
            max_in_flight=config["max.in.flight.requests.per.connection"],
            reconnect_backoff=ExponentialBackoff(
                self.entropy, config["reconnect.backoff.ms"], config["reconnect.backoff.max.ms"]
            ),
            setup_timeout=ExponentialBackoff(
                self.entropy,
                config["socket.connection.setup.timeout.ms"],
                config["socket.connection.setup.timeout.max.ms"],
            ),
            tls=config["security.protocol"] == SSL,
        )

    # --- life --------------------------------------------------------------------------------

    def add_manager(self, manager: RequestManager) -> None:
        """Poll a manager on every turn. Before `start`."""
        self._io_thread.add_manager(manager)

    def start(self) -> None:
        """Start the I/O thread."""
        lifetime.watch(self)
        self._join = self._environment.run(self._io_thread, f"pyclient-{self._client_id}")

    def bootstrap(self, timeout_ms: float) -> None:
        """Wait until a broker has described the cluster.

        Raises:
            NoBrokersAvailable: none did in time, or TLS fails with all of them, which is told at
                once; says what is wrong with each address.
        """
        if self.metadata.snapshot.version:
            return
        try:
            self.metadata.wait_for_update(self.metadata.snapshot, timeout_ms)
        except KafkaTimeoutError:
            troubles = self.network.troubles(self.clock.monotonic_ms())
            hosts = ", ".join(address_text(*one) for one in self._bootstrap)
            reasons = "\n  ".join(troubles) or str(self.metadata.failure or "no answer yet")
            in_time = "" if self.network.is_refused_everywhere() else f" within {timeout_ms:.0f} ms"
            raise NoBrokersAvailable(
                f"none of the bootstrap servers ({hosts}) could be used{in_time}:\n  {reasons}"
            ) from None

    def close(self, timeout_ms: float) -> None:
        """End the I/O thread, and fail what is still in flight. Bounded; twice does no harm.

        If a callback holds the I/O thread for longer than `timeout_ms`, it ends after that.
        """
        if self._forked:
            return  # everything is the parent's
        check_may_wait(self._waiting, "close()")
        if self._unusable is None:
            self._become_unusable("it is closed")
            lifetime.unwatch(self)
        if self._join is None:
            self._poller.close()  # never started
            return
        deadline = Deadline(self.clock, timeout_ms)
        self._io_thread.stop()
        if self._io_thread.ended.wait(deadline.remaining_ms()):
            self._join()
        else:
            log.warning(
                "Client %s: the I/O thread did not end within %.0f ms; it ends when its"
                " current callback returns",
                self._client_id,
                timeout_ms,
            )

    def close_at_exit(self) -> None:
        """Close a client that is still open when the interpreter exits."""
        self.close(_EXIT_TIMEOUT_MS)

    def after_fork_in_child(self) -> None:
        """Mark the client as unusable in a forked child, which has no I/O thread."""
        reason = (
            f"it was made in process {os.getppid()}, and this is a forked child ({os.getpid()})"
            " where its connections do not work: make a new client here"
        )
        self._forked = True
        self._become_unusable(reason)
        self._waiting.abandon(IllegalStateError(f"the client cannot be used: {reason}"))

    def on_unusable(self, callback: Callable[[], None]) -> None:
        """Have `callback` run when the client is closed or forked; it may only set flags."""
        self._on_unusable.append(callback)

    def _become_unusable(self, reason: str) -> None:
        self._unusable = reason
        for callback in self._on_unusable:
            callback()

    def check_usable(self, call: str) -> None:
        """Raise if the client is closed, in a forked child, or broken.

        Raises:
            IllegalStateError: it is; says why. `call` names what was attempted.
        """
        if self._unusable is not None:
            raise IllegalStateError(f"{call}: the client cannot be used, {self._unusable}")
        if self._io_thread.failure is not None:
            raise IllegalStateError(
                f"{call}: the client's I/O thread has failed: {self._io_thread.failure!r}"
            ) from self._io_thread.failure

    # --- work for the I/O thread -------------------------------------------------------------

    def check_may_wait(self, call: str) -> None:
        """Raise where `call` would wait for ever: in a callback, on the I/O thread.

        Raises:
            IllegalStateError: it would; or a check that was added says so.
        """
        check_may_wait(self._waiting, call)
        for check in self._wait_checks:
            check()

    def add_wait_check(self, check: Callable[[], None]) -> None:
        """Have `check` called before a caller waits; it raises where that would be for ever."""
        self._wait_checks.append(check)

    def submit(self, command: Callable[[], Any] | Command) -> None:
        """Run a command on the I/O thread."""
        self._io_thread.submit(command)

    def run_beside(self, function: Callable[[], None], name: str) -> None:
        """Run a function that may block on a thread of its own."""
        self._environment.run_beside(function, name)

    def call(self, function: Callable[[], Result], timeout_ms: float) -> Result:
        """Run a function on the I/O thread, and wait for its result or exception."""
        return self._io_thread.call(function, timeout_ms)

    def request(self, message: Message, node: int | None, timeout_ms: float) -> Message:
        """Send one request and wait for its response.

        Raises:
            KafkaError: there is none. Error codes inside the response are the caller's to read.
        """
        self.check_usable(type(message).__name__)
        self.check_may_wait(type(message).__name__)
        exchange = _Exchange(self, message, node, timeout_ms)
        self.submit(exchange)
        return exchange.wait()


class _Exchange:
    """One request whose sender waits for the outcome."""

    __slots__ = ("_engine", "_is_given_up", "_outcome", "_unsent", "_waiter")

    def __init__(
        self, engine: Engine, message: Message, node: int | None, timeout_ms: float
    ) -> None:
        self._engine = engine
        self._waiter = engine.waiter()
        self._unsent = UnsentRequest(message, node, self._on_done, timeout_ms)
        self._outcome: Outcome | None = None
        self._is_given_up = False

    def __call__(self) -> None:
        if self._is_given_up:
            return  # its caller has timed out: it must not run long afterwards
        self._engine.network.send(self._unsent, self._engine.clock.monotonic_ms())

    def fail(self, error: KafkaError) -> None:
        self._outcome = error
        self._waiter.wake()

    def _on_done(self, outcome: Outcome, now_ms: float) -> None:  # noqa: ARG002
        self._outcome = outcome
        self._waiter.wake()

    def wait(self) -> Message:
        # The network keeps the deadline; the margin only covers a loop that is held up.
        timeout_ms = self._unsent.timeout_ms or 0
        self._waiter.wait(timeout_ms + _LOOP_MARGIN_MS)
        if self._outcome is None:
            # The loop is held up, with the request sent or not.
            self._is_given_up = True
            raise RequestTimedOutError(f"no answer to {self._unsent!r} after {timeout_ms:.0f} ms")
        if isinstance(self._outcome, KafkaError):
            raise self._outcome
        return self._outcome


def _socket_options(config: Mapping[str, Any]) -> SocketOptions:
    return SocketOptions(
        send_buffer_bytes=config["send.buffer.bytes"],
        receive_buffer_bytes=config["receive.buffer.bytes"],
        receive_message_max_bytes=config["receive.message.max.bytes"],
        extra=config["socket.options"],
        tls=_tls(config),
    )


def _tls(config: Mapping[str, Any]) -> TlsSettings | None:
    if config["security.protocol"] == SSL:
        from pyclient.net.tls import tls_settings  # loads `ssl`, only where it is needed

        return tls_settings(config)
    idle = tls_options_given(config)
    if idle:
        raise KafkaConfigurationError(
            f"{idle[0].replace('.', '_')} needs security_protocol='SSL', which is"
            f" {config['security.protocol']!r}",
            key=idle[0],
        )
    return None
