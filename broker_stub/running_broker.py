"""A broker between a start and a stop or kill: owns its server, its node and its threads.

The caller's thread runs these methods; the serving thread runs the node and everything in it; the
background thread runs fsyncs and deletions. Other threads reach the node by `call`.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from functools import partial
from threading import Event, Thread, current_thread
from typing import TYPE_CHECKING, Final, TypeVar

from broker_stub.blocking_work import run
from broker_stub.config.broker_config import BrokerConfig
from broker_stub.config.listeners import Listener
from broker_stub.log.background_thread import BackgroundThread
from broker_stub.net.server import Server
from broker_stub.node import Node
from pyclient.clock import Clock, ManualClock
from pyclient.entropy import Entropy
from pyclient.errors import IllegalStateError

if TYPE_CHECKING:
    import ssl

# How soon a waiting caller notices that another thread has stopped the broker.
_LOOK_AGAIN_SECONDS: Final = 1.0

Result = TypeVar("Result")


class RunningBroker:
    """A broker that serves from its construction on."""

    def __init__(
        self,
        config: BrokerConfig,
        log_dirs: Sequence[str],
        clock: Clock,
        entropy: Entropy,
        listeners: Sequence[Listener],
        prepare: Callable[[Node], None],
    ) -> None:
        self._clock = clock
        self._is_ending = False
        self._serving: Thread | None = None
        self._server = Server(clock)
        try:
            self.listeners = self._server.listen(listeners, tls_contexts(config, listeners))
            self._node = Node(config, log_dirs, clock=clock, entropy=entropy, background=self)
        except BaseException:
            self._server.stop()
            raise
        self._background = BackgroundThread(self._node.logs)
        try:
            self._node.open([one.endpoint for one in self.listeners])
            prepare(self._node)
            self._background.start()
            self._server.call_soon(self._note_serving_thread)  # before any other call
            self._server.start(self._node)
            if isinstance(clock, ManualClock):
                clock.on_advance(self._on_clock_advanced)
        except BaseException:  # Ctrl-C, too: nothing else would release the folder
            self.kill()
            raise

    @property
    def running(self) -> bool:
        """Whether it serves: it is not stopping, and its thread has not died."""
        return not self._is_ending and self._server.running

    @property
    def is_on_serving_thread(self) -> bool:
        """Whether the caller is on the serving thread, which must not wait for itself."""
        return self._serving is current_thread()

    def submit(self, work: Callable[[], None], done: Callable[[Exception | None], None]) -> None:
        """Run `work` on the background thread, then `done` on the serving thread."""
        self._background.submit(lambda: self._server.call_soon(partial(done, run(work))))

    def call(self, function: Callable[[Node], Result]) -> Result:
        """Run a function on the serving thread. Any thread but that one."""

        def start(node: Node, done: Callable[[Result], None]) -> None:
            done(function(node))

        return self.ask(start)

    def ask(self, start: Callable[[Node, Callable[[Result], None]], object]) -> Result:
        """Start something on the serving thread, and wait until it is done.

        Raises:
            IllegalStateError: the broker is not running, or was stopped meanwhile.
        """
        if not self.running:
            why = "" if self._is_ending else ": its serving thread has died; the log says why"
            raise IllegalStateError(f"the broker is not running{why}")
        finished = Event()
        results: list[Result] = []
        failures: list[BaseException] = []

        def done(result: Result) -> None:
            results.append(result)
            finished.set()

        def begin() -> None:
            try:
                start(self._node, done)
            # BaseException, as pytest's failures are: they belong to the caller, not to the loop.
            except BaseException as error:  # noqa: BLE001  raised again on the caller's thread
                failures.append(error)
                finished.set()

        self._server.call_soon(begin)
        while not finished.wait(_LOOK_AGAIN_SECONDS):
            if not self._server.running and not finished.is_set():
                raise IllegalStateError("the broker was stopped meanwhile")
        if failures:
            raise failures[0]
        return results[0]

    def stop(self) -> None:
        """End the threads, then close the logs: the next start has nothing to recover."""
        try:
            self._end_threads()
            self._node.close()
        except BaseException:
            self._node.abandon()
            raise

    def kill(self) -> None:
        """End the threads, and write nothing."""
        self._end_threads()
        self._node.abandon()

    def _end_threads(self) -> None:
        self._is_ending = True
        if isinstance(self._clock, ManualClock):
            self._clock.forget(self._on_clock_advanced)
        self._server.stop()
        self._background.stop()

    def _note_serving_thread(self) -> None:
        self._serving = current_thread()

    def _on_clock_advanced(self) -> None:
        self._server.wake()
        self._background.wake()


def tls_contexts(config: BrokerConfig, listeners: Sequence[Listener]) -> dict[str, ssl.SSLContext]:
    """The TLS contexts of the listeners that speak it, by name."""
    names = [one.name for one in listeners if one.has_tls]
    if not names:
        return {}
    from broker_stub.net.tls import server_context  # loads `ssl`

    return {name: server_context(config.tls_options(name)) for name in names}
