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

from broker_stub.broker_run import BrokerRun, tls_contexts
from broker_stub.config import BrokerConfig
from broker_stub.listeners import (
    DEFAULT_HOST,
    LISTENERS,
    PORT_MAX,
    Listener,
    configured_listeners,
)
from broker_stub.metadata.topics import NewTopic, PlannedTopic
from broker_stub.node import Node
from pyclient.clock import Clock, SystemClock
from pyclient.entropy import Entropy
from pyclient.errors import (
    BrokerResponseError,
    IllegalStateError,
    KafkaConfigurationError,
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
            KafkaConfigurationError: an option is unknown, or has a value that is not allowed.
        """
        self._config = BrokerConfig(config)
        self._clock = clock or SystemClock()
        self._entropy = Entropy()
        self._log_dirs = _log_dirs(self._config, data_dir)
        self._temporary: str | None = None
        self._listeners = _listeners(self._config, host, port)
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
        """Create a topic, and return when clients see it.

        Raises:
            TopicExistsError, InvalidTopicError, InvalidConfigurationError, ...: as the broker
                would answer a client.
        """
        configs = {key: _text(value) for key, value in (config or {}).items()}
        topic = NewTopic(name, partitions=partitions, configs=configs)

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


def _listeners(config: BrokerConfig, host: str | None, port: int) -> list[Listener]:
    if config[LISTENERS] is not None and (host is not None or port):
        raise KafkaConfigurationError(
            f"give either a host and a port, or {LISTENERS}: the latter has both", key=LISTENERS
        )
    if not isinstance(port, int) or not 0 <= port <= PORT_MAX:
        raise KafkaConfigurationError(f"{port!r} is no port: 0 to {PORT_MAX} are", key="port")
    return configured_listeners(config, DEFAULT_HOST if host is None else host, port)


def _log_dirs(config: BrokerConfig, data_dir: str | os.PathLike[str] | None) -> list[str]:
    """The folders that the data is in; none for a temporary one."""
    for option in ("log.dirs", "log.dir"):
        folders: list[str] | None = config[option]
        if folders is None:
            continue
        if data_dir is not None:
            raise KafkaConfigurationError(
                f"give either a data folder or {option}: they are the same", key=option
            )
        if len(set(folders)) < len(folders):
            raise KafkaConfigurationError(f"{option} has a folder twice", key=option, value=folders)
        return [os.path.abspath(folder) for folder in folders]
    if data_dir is None:
        return []
    folder = os.fspath(data_dir)
    if not folder:  # an unset variable, say: not the folder that the process happens to be in
        raise KafkaConfigurationError("the data folder has no name", key="data_dir")
    return [os.path.abspath(folder)]


def _bracketed(host: str) -> str:
    return f"[{host}]" if ":" in host else host


def _text(value: object) -> str | None:
    if value is None:
        return None
    if isinstance(value, list | tuple):
        return ",".join(map(str, value))
    return str(value).lower() if isinstance(value, bool) else str(value)
