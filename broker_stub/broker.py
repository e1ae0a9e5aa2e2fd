"""A broker: started, stopped, killed and started again in a test's process.

Any thread but the serving one may call these methods. Starting, stopping and preparing hold
`_lifecycle`, which guards `_run`, `_temporary`, `_listeners` and `_faults`; reading one of them
takes no lock. What runs between a start and a stop, on its own threads, is a `RunningBroker`.
"""

from __future__ import annotations

import atexit
import os
from collections.abc import Callable, Iterator, Mapping
from contextlib import contextmanager
from functools import cached_property, partial
from typing import TYPE_CHECKING, NoReturn, Self, TypeAlias, TypeVar

from broker_stub.arguments import (
    given_clock,
    given_config,
    given_listeners,
    given_log_dirs,
    given_topic,
)
from broker_stub.diagnostics import is_tracing
from broker_stub.lifecycle_lock import LifecycleLock
from broker_stub.metadata.topics import PlannedTopic
from broker_stub.node import Node
from broker_stub.running_broker import RunningBroker, tls_contexts
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
    from pyclient.records.record import ConsumerRecord

Result = TypeVar("Result")
Created: TypeAlias = PlannedTopic | BrokerResponseError


class Broker:
    """A one-node Kafka broker in this process.

    Without a `data_dir` it keeps its data in a temporary folder, which `stop` or the exit of the
    process removes; `kill` and `restart` keep it. With a `ManualClock`, time passes when the test
    says so. Several threads may stop, kill and restart it: one at a time does. A forked child
    can't use or stop its parent's broker: there, `stop` and `kill` only forget it.
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
            data_dir: the folder to keep data in; `log.dirs` names several.
            port: the port to serve on; 0 takes a free one, and keeps it over restarts.
            config: options by Kafka's names (`{"num.partitions": 3}`).
            clock: the clock to read; the system's by default.
            host: the address to listen on and to advertise, 127.0.0.1 by default; `listeners`
                and `advertised.listeners` set them apart.
            keep_requests: whether `requests` records what clients send, which costs a little.

        Raises:
            KafkaConfigurationError: an option is unknown, or a value is not allowed.
        """
        self._config = given_config(config)
        self._clock = given_clock(clock)
        self._entropy = Entropy()
        self._log_dirs = given_log_dirs(self._config, data_dir)
        self._temporary: str | None = None
        self._listeners = self._configured = given_listeners(self._config, host, port)
        tls_contexts(self._config, self._listeners)  # read again when it starts
        self._run: RunningBroker | None = None
        self._pid = os.getpid()  # the process that owns it
        self._keep_requests = keep_requests
        self._faults: Faults | None = None
        self._lifecycle = LifecycleLock()

    @property
    def port(self) -> int:
        """The port of the first listener; known from the first start on."""
        return self._listeners[0].port

    @property
    def bootstrap_servers(self) -> str:
        """The advertised address of the first listener, such as `127.0.0.1:9092`."""
        return next(iter(self.listeners.values()))

    @property
    def listeners(self) -> dict[str, str]:
        """The advertised address of every listener, by its name."""
        endpoints = [one.endpoint for one in self._listeners]
        return {one.listener: f"{_bracketed(one.host)}:{one.port}" for one in endpoints}

    @property
    def data_dir(self) -> Path | None:
        """The data folder, the first of several; a temporary one if none was given."""
        from pathlib import Path

        folder = self._log_dirs[0] if self._log_dirs else self._temporary
        return None if folder is None else Path(folder)

    @cached_property
    def requests(self) -> RequestLog:
        """What clients sent; see `broker_stub.testing.request_log`."""
        from broker_stub.testing.request_log import RequestLog

        return RequestLog()

    @property
    def faults(self) -> Faults:
        """Makes requests fail, wait or go unanswered; see `broker_stub.testing.faults`.

        Raises:
            IllegalStateError: this is the serving thread, or a forked child.
        """
        self._check_caller()
        return self._faults or self._add_faults()

    @property
    def running(self) -> bool:
        """Whether this process started it, and it has not ended since."""
        run = self._run
        return run is not None and self._pid == os.getpid() and run.running

    def start(self) -> Self:
        """Recover what is on disk, and serve.

        Raises:
            PortInUseError: another process has the port.
            KafkaStorageError: the folder is locked, damaged, or belongs to another cluster.
            IllegalStateError: it runs already, here or in the process that this one was forked
                from.
        """
        with self._changing():
            self._start()
        return self

    def stop(self) -> None:
        """Stop cleanly, and remove the temporary folder. Does nothing if it does not run.

        A signal handler may call it: if it interrupted another of these calls, that one finishes
        first.

        Raises:
            KafkaStorageError: the disk failed; it is stopped, and the next start recovers.
            IllegalStateError: this is the serving thread.
        """
        if self._pid != os.getpid():
            self._leave_to_parent()
            return
        if self._lifecycle.defer(self.stop):
            return
        with self._changing():
            atexit.unregister(self.stop)
            try:
                self._end(RunningBroker.stop)
            finally:
                self._remove_temporary_folder()

    def kill(self) -> None:
        """Stop as `kill -9` would: nothing is closed or written. `start` recovers the files.

        Raises:
            IllegalStateError: this is the serving thread.
        """
        if self._pid != os.getpid():
            self._leave_to_parent()
            return
        if self._lifecycle.defer(self.kill):
            return
        with self._changing():
            self._end(RunningBroker.kill)
            if self._temporary is None:
                atexit.unregister(self.stop)  # nothing is left to remove

    def restart(self) -> None:
        """Stop cleanly if it runs, then start on the same port with the same data.

        Raises:
            IllegalStateError: this is the serving thread, or a forked child.
        """
        with self._changing():
            self._end(RunningBroker.stop)
            self._start()

    def __reduce__(self) -> NoReturn:
        raise TypeError(
            "a Broker cannot be pickled or copied: its thread, files and sockets belong to this"
            " process. Pass its bootstrap_servers to the child process, or start a Broker there"
        )

    def __enter__(self) -> Self:
        return self if self.running else self.start()

    def __exit__(self, *_: object) -> None:
        self.stop()

    def call(self, function: Callable[[Node], Result]) -> Result:
        """Run `function(node)` on the serving thread, and return what it returns.

        Raises:
            IllegalStateError: the broker does not run, or this is its serving thread or a forked
                child.
        """
        self._check_caller()
        return self._running().call(function)

    def create_topic(
        self, name: str, partitions: int = 1, config: Mapping[str, object] | None = None
    ) -> None:
        """Create a topic, and return when clients see it; -1 partitions means `num.partitions`.

        Raises:
            TopicExistsError, InvalidTopicError, InvalidConfigurationError, PolicyViolationError
                (more than 10,000 partitions), ...: as the broker would answer a client.
            TypeError: an argument is of another type.
            IllegalStateError: as for `call`.
        """
        topic = given_topic(name, partitions, config)
        self._check_caller()

        def create(node: Node, done: Callable[[list[Created]], None]) -> None:
            node.controller.create_topics([topic], done)

        (result,) = self._running().ask(create)
        if isinstance(result, BrokerResponseError):
            raise result

    def delete_topic(self, name: str) -> None:
        """Delete a topic, and return when clients no longer see it.

        Raises:
            UnknownTopicOrPartitionError: there is no such topic.
            IllegalStateError: as for `call`.
        """
        topic_id = self.call(partial(_topic_id, name))

        def delete(node: Node, done: Callable[[list[bytes | BrokerResponseError]], None]) -> None:
            node.controller.delete_topics([topic_id], done)

        (result,) = self._running().ask(delete)
        if isinstance(result, BrokerResponseError):
            raise result

    def records(self, topic: str, partition: int | None = None) -> list[ConsumerRecord]:
        """The records of a topic, or of one partition, as a consumer gets them: bytes and all.

        By partition, then by offset, without records of open and aborted transactions.
        Reading them is no request: `requests` and `faults` do not see it.

        Raises:
            UnknownTopicOrPartitionError: there is no such topic or partition.
            IllegalStateError: as for `call`.
        """

        def read(node: Node) -> list[ConsumerRecord]:
            found = node.replicas.topic(topic)
            indexes = sorted(found.partitions) if partition is None else [partition]
            partitions = [node.replicas.partition(topic, index) for index in indexes]
            return [record for one in partitions for record in node.replicas.read_all(one)]

        return self.call(read)

    def _intercept(self, node: Node) -> None:
        if is_tracing():
            from broker_stub.request_trace import RequestTrace

            node.dispatcher.interceptors.append(RequestTrace())
        if self._keep_requests:
            self.requests.read_names(node)
            node.dispatcher.interceptors.append(self.requests)
        if self._faults is not None:
            _inject(self._faults, node)

    def _add_faults(self) -> Faults:
        # Imported on first use: it would slow down every start.
        from broker_stub.testing.faults import Faults

        with self._changing():
            if self._faults is None:
                made = Faults()
                if self._run is not None and self._run.running:
                    self._run.call(partial(_inject, made))
                self._faults = made  # last: another thread may use it at once
            return self._faults

    @contextmanager
    def _changing(self) -> Iterator[None]:
        """Hold the lifecycle lock."""
        self._check_caller()  # first: the lock's owner may be waiting for the serving thread
        if self._pid != os.getpid():
            # A forked child starts its own broker: the lock may have been held when it forked.
            self._leave_to_parent()
            self._lifecycle = LifecycleLock()
            self._pid = os.getpid()
        with self._lifecycle.held():
            yield

    def _check_caller(self) -> None:
        """Refuse callers that would wait for ever: the serving thread, and a forked child."""
        run = self._run
        if run is None:
            return
        if self._pid != os.getpid():
            raise IllegalStateError(
                f"the broker runs in process {self._pid}, and this is a forked child"
                f" ({os.getpid()}): use it from the process that started it"
            )
        if run.is_on_serving_thread:
            raise IllegalStateError(
                "this is the broker's serving thread, which would wait for itself: call this on"
                " another thread, or use the node"
            )

    def _leave_to_parent(self) -> None:
        """In a forked child: forget the parent's broker."""
        atexit.unregister(self.stop)
        self._run = self._temporary = None
        self._listeners = self._configured  # the bound ports are the parent's

    def _running(self) -> RunningBroker:
        if self._run is None:
            raise IllegalStateError("the broker is not running")
        return self._run

    def _start(self) -> None:
        if self._run is not None:
            if self._run.running:
                raise IllegalStateError("the broker is already running")
            self._end(RunningBroker.kill)  # its serving thread has ended by itself
        is_new = not self._log_dirs and self._temporary is None
        if is_new:
            self._temporary = self._make_temporary_folder()
        folders = self._log_dirs if self._temporary is None else [self._temporary]
        try:
            self._run = RunningBroker(
                self._config, folders, self._clock, self._entropy, self._listeners, self._intercept
            )
        except BaseException:
            if is_new:
                self._remove_temporary_folder()
            raise
        self._listeners = self._run.listeners
        atexit.unregister(self.stop)  # of an earlier start that ended in a kill
        atexit.register(self.stop)

    def _end(self, how: Callable[[RunningBroker], None]) -> None:
        if self._run is None:
            return
        try:
            how(self._run)
        finally:
            self._run = None  # last: `_check_caller` needs it until then

    def _make_temporary_folder(self) -> str:
        # Not by tempfile: importing it takes longer than the rest of the start.
        parent = os.environ.get("TMPDIR") or "/tmp"
        folder = os.path.join(parent, f"broker_stub-{self._entropy.random_bytes(8).hex()}")
        try:
            os.mkdir(folder, mode=0o700)
        except OSError as error:
            raise KafkaStorageError(
                f"cannot create a temporary folder in {parent}: {error.strerror}"
            ) from error
        return folder

    def _remove_temporary_folder(self) -> None:
        folder, self._temporary = self._temporary, None
        if folder is not None:
            import shutil

            shutil.rmtree(folder, ignore_errors=True)


def _inject(faults: Faults, node: Node) -> None:
    from broker_stub.testing.fault_injector import FaultInjector

    node.dispatcher.interceptors.append(FaultInjector(faults, node))


def _topic_id(name: str, node: Node) -> bytes:
    return node.replicas.topic(name).topic_id


def _bracketed(host: str) -> str:
    return f"[{host}]" if ":" in host else host
