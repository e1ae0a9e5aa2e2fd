"""A broker: started, stopped, killed and started again in a test's process.

These methods are for the caller's thread; what runs between a start and its end, on threads of its
own, is a `BrokerRun`. Another thread's work reaches the node by `call`.
"""

from __future__ import annotations

import atexit
import os
from collections.abc import Callable, Mapping
from functools import cached_property
from threading import Lock
from types import TracebackType
from typing import TYPE_CHECKING, Self, TypeAlias, TypeVar

from broker_stub.broker_arguments import (
    given_clock,
    given_config,
    given_listeners,
    given_log_dirs,
    given_topic,
)
from broker_stub.broker_run import BrokerRun, tls_contexts
from broker_stub.metadata.topics import PlannedTopic
from broker_stub.node import Node
from pyclient.clock import Clock
from pyclient.entropy import Entropy
from pyclient.errors import (
    BrokerResponseError,
    IllegalStateError,
    KafkaStorageError,
)

if TYPE_CHECKING:
    from pathlib import Path

    from broker_stub.testing.faults import Faults
    from broker_stub.testing.request_log import RequestLog

Result = TypeVar("Result")
Created: TypeAlias = PlannedTopic | BrokerResponseError


class Broker:
    """A one-node Kafka broker in this process.

    Without a `data_dir` it keeps its data in a temporary folder, which `stop` removes, or the end
    of the process; `kill` and `restart` leave it. With a `ManualClock`, time passes when the test
    says so. A forked child can't end what its parent runs: there, `stop` and `kill` only forget it.
    """

    def __init__(
        self,
        data_dir: str | os.PathLike[str] | None = None,
        port: int = 0,
        config: Mapping[str, object] | None = None,
        clock: Clock | None = None,
        *,
        host: str | None = None,
        keep_requests: bool = True,
    ) -> None:
        """Prepare a broker; `start` or a `with` block runs it.

        Args:
            data_dir: where the data is, and stays; or name folders by `log.dirs`.
            port: the port to serve on; 0 takes a free one, and keeps it over restarts.
            config: options by Kafka's names (`{"num.partitions": 3}`).
            clock: the time; the machine's own by default.
            host: the address to listen on and to give to clients, 127.0.0.1 by default; for more
                than that there are `listeners` and `advertised.listeners`.
            keep_requests: whether `requests` looks at what comes in, which costs a little.

        Raises:
            KafkaConfigurationError: an option is unknown, or it or an argument has a value that
                is not allowed.
        """
        self._config = given_config(config)
        self._clock = given_clock(clock)
        self._entropy = Entropy()
        self._log_dirs = given_log_dirs(self._config, data_dir)
        self._temporary: str | None = None
        self._listeners = given_listeners(self._config, host, port)
        tls_contexts(self._config, self._listeners)  # read again when it starts
        self._run: BrokerRun | None = None
        self._pid = os.getpid()  # of the process that has started it
        self._keep_requests = keep_requests
        self._faults: Faults | None = None
        self._faults_lock = Lock()  # guards the first use of `faults`

    @property
    def port(self) -> int:
        """The port it serves on, of the first listener; known from the first start on."""
        return self._listeners[0].port

    @property
    def bootstrap_servers(self) -> str:
        """The address for clients, of the first listener, as in `127.0.0.1:9092`."""
        return next(iter(self.listeners.values()))

    @property
    def listeners(self) -> dict[str, str]:
        """The address for clients of every listener, by its name."""
        endpoints = [one.endpoint for one in self._listeners]
        return {one.listener: f"{_bracketed(one.host)}:{one.port}" for one in endpoints}

    @property
    def data_dir(self) -> Path | None:
        """Where the data is, the first folder of several; a temporary one if none was given."""
        from pathlib import Path

        folder = self._log_dirs[0] if self._log_dirs else self._temporary
        return None if folder is None else Path(folder)

    @cached_property
    def requests(self) -> RequestLog:
        """What clients asked for; see `broker_stub.testing.request_log`."""
        from broker_stub.testing.request_log import RequestLog

        return RequestLog()

    @property
    def faults(self) -> Faults:
        """Makes requests fail, late or unanswered; see `broker_stub.testing.faults`.

        Not for the serving thread.
        """
        with self._faults_lock:
            if self._faults is None:
                # Imported by the first who wants some: the start of a broker should not wait.
                from broker_stub.testing.faults import Faults

                self._faults = Faults()
                if self._run is not None:
                    self._run.call(self._inject_faults)
            return self._faults

    @property
    def running(self) -> bool:
        """Whether it has been started, and not stopped or killed since."""
        return self._run is not None

    def start(self) -> Self:
        """Recover what is on disk, and serve.

        Raises:
            PortInUseError: another process has the port.
            KafkaStorageError: the folder can't be used: locked, of another cluster, damaged.
            IllegalStateError: it runs already.
        """
        if self._run is not None:
            raise IllegalStateError("the broker runs already")
        is_new = not self._log_dirs and self._temporary is None
        if is_new:
            self._temporary = self._make_temporary_folder()
        folders = self._log_dirs if self._temporary is None else [self._temporary]
        try:
            self._run = BrokerRun(
                self._config, folders, self._clock, self._entropy, self._listeners, self._intercept
            )
        except BaseException:
            if is_new:
                self._remove_temporary_folder()
            raise
        self._pid = os.getpid()
        self._listeners = self._run.listeners
        atexit.unregister(self.stop)  # of an earlier start that ended in a kill
        atexit.register(self.stop)
        return self

    def stop(self) -> None:
        """Stop cleanly, and remove the temporary folder. Does nothing if it does not run.

        Raises:
            KafkaStorageError: the disk refused; it is stopped, and the next start recovers.
        """
        atexit.unregister(self.stop)
        try:
            self._end(BrokerRun.stop)
        finally:
            self._remove_temporary_folder()

    def kill(self) -> None:
        """Stop as `kill -9` would: no goodbye, files as they are. `start` recovers them."""
        self._end(BrokerRun.kill)
        if self._temporary is None:
            atexit.unregister(self.stop)  # nothing is left to be done

    def restart(self) -> None:
        """Stop cleanly if it runs, then start on the same port with the same data."""
        self._end(BrokerRun.stop)
        self.start()

    def __enter__(self) -> Self:
        return self if self.running else self.start()

    def __exit__(
        self,
        kind: type[BaseException] | None,
        error: BaseException | None,
        traceback: TracebackType | None,
    ) -> None:
        self.stop()

    def call(self, function: Callable[[Node], Result]) -> Result:
        """Run `function(node)` on the serving thread, and return what it returns.

        Raises:
            IllegalStateError: the broker does not run.
        """
        return self._running().call(function)

    def create_topic(
        self, name: str, partitions: int = 1, config: Mapping[str, object] | None = None
    ) -> None:
        """Create a topic, and return when clients see it; -1 partitions are `num.partitions`.

        Raises:
            TopicExistsError, InvalidTopicError, InvalidConfigurationError, PolicyViolationError
                (more than 10,000 partitions), ...: as the broker would answer a client.
            TypeError: an argument is of another type.
        """
        topic = given_topic(name, partitions, config)

        def create(node: Node, done: Callable[[list[Created]], None]) -> None:
            node.controller.create_topics([topic], done)

        (result,) = self._running().ask(create)
        if isinstance(result, BrokerResponseError):
            raise result

    def _intercept(self, node: Node) -> None:
        if self._keep_requests:
            node.dispatcher.interceptors.append(self.requests)
        if self._faults is not None:
            self._inject_faults(node)

    def _inject_faults(self, node: Node) -> None:
        from broker_stub.testing.fault_injector import FaultInjector

        assert self._faults is not None
        node.dispatcher.interceptors.append(FaultInjector(self._faults, node))

    def _running(self) -> BrokerRun:
        if self._run is None:
            raise IllegalStateError("the broker does not run")
        return self._run

    def _end(self, how: Callable[[BrokerRun], None]) -> None:
        run, self._run = self._run, None
        if run is not None and self._pid == os.getpid():
            how(run)

    def _make_temporary_folder(self) -> str:
        # By hand: importing tempfile (or pathlib) takes longer than the rest of the start.
        parent = os.environ.get("TMPDIR") or "/tmp"
        folder = os.path.join(parent, f"broker_stub-{self._entropy.random_bytes(8).hex()}")
        try:
            os.mkdir(folder, mode=0o700)
        except OSError as error:
            raise KafkaStorageError(
                f"cannot make a temporary folder in {parent}: {error.strerror}"
            ) from error
        return folder

    def _remove_temporary_folder(self) -> None:
        folder, self._temporary = self._temporary, None
        if folder is not None and self._pid == os.getpid():
            import shutil

            shutil.rmtree(folder, ignore_errors=True)


def _bracketed(host: str) -> str:
    return f"[{host}]" if ":" in host else host
