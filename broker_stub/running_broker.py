"""One life of a broker: its sockets, its node and its threads, from a start to a stop or a kill.

Three threads touch it: the caller's (these methods), the serving one (the node and all in it),
and the background one (fsync, deletion). Another thread's work reaches the node by `call`.
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

# How soon a caller notices that the broker it waits for was stopped by another thread.
_LOOK_AGAIN_SECONDS: Final = 1.0

Result = TypeVar("Result")


class BrokerRun:
    """A broker that runs, from its construction on."""

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
        except BaseException:  # Ctrl-C, too: nobody else could let go of the folder any more
            self.kill()
            raise

    @property
    def running(self) -> bool:
        """Whether it serves: nobody ends it, and its thread has not ended by itself."""
        return not self._is_ending and self._server.running

    @property
    def is_on_serving_thread(self) -> bool:
        """Whether the caller is on the serving thread: to wait for that one there is for ever."""
        return self._serving is current_thread()

    def submit(self, work: Callable[[], None], done: Callable[[Exception | None], None]) -> None:
        """The node's background: work goes to its thread, and its outcome comes back."""
        self._background.submit(lambda: self._server.call_soon(partial(done, run(work))))

    def call(self, function: Callable[[Node], Result]) -> Result:
        """Run a function on the serving thread. Any thread but that one."""

        def start(node: Node, done: Callable[[Result], None]) -> None:
            done(function(node))

        return self.ask(start)

    def ask(self, start: Callable[[Node, Callable[[Result], None]], object]) -> Result:
        """Start something on the serving thread, and wait until it is done.

        Raises:
            IllegalStateError: the broker does not run, or not any more.
        """
        if not self.running:
            why = "" if self._is_ending else ": its serving thread has ended by itself"
            raise IllegalStateError(f"the broker does not run{why}")
        finished = Event()
        results: list[Result] = []
        failures: list[BaseException] = []

        def done(result: Result) -> None:
            results.append(result)
            finished.set()

        def begin() -> None:
            try:
                start(self._node, done)
            # Also what is no Exception, as pytest's own failures: the caller's, not the loop's end.
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
        """End the threads, then leave the disk as a clean start wants it."""
        try:
            self._end_threads()
            self._node.close()
        except BaseException:
            self._node.abandon()
            raise

    def kill(self) -> None:
        """End the threads, and write nothing more."""
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
    """What the listeners with TLS go by, by their names."""
    names = [one.name for one in listeners if one.has_tls]
    if not names:
        return {}
    from broker_stub.net.tls import server_context  # loads `ssl`: who needs it pays

    return {name: server_context(config.tls_options(name)) for name in names}
