"""A broker: started, stopped, killed and started again in a test's process.

Any thread but the serving one may call these methods. What starts, ends and prepares a run happens
in turns (`_turns`), which guard `_run`, `_temporary`, `_listeners` and `_faults`; who only reads
one of them does without. What runs between a start and its end, on threads of its own, is a
`BrokerRun`.
"""

from __future__ import annotations

import atexit
import os
from collections.abc import Callable, Iterator, Mapping
from contextlib import contextmanager
from functools import cached_property, partial
from types import TracebackType
from typing import TYPE_CHECKING, NoReturn, Self, TypeAlias, TypeVar

from broker_stub.config.arguments import (
    given_clock,
    given_config,
    given_listeners,
    given_log_dirs,
    given_topic,
)
from broker_stub.lifecycle_lock import Turns
from broker_stub.metadata.topics import PlannedTopic
from broker_stub.node import Node
from broker_stub.running_broker import BrokerRun, tls_contexts
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
    says so. Threads may stop, kill and restart it at once: they take turns. A forked child can't
    use or end what its parent runs: there, `stop` and `kill` only forget it.
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
        self._listeners = self._configured = given_listeners(self._config, host, port)
        tls_contexts(self._config, self._listeners)  # read again when it starts
        self._run: BrokerRun | None = None
        self._pid = os.getpid()  # of the process that it belongs to
        self._keep_requests = keep_requests
        self._faults: Faults | None = None
        self._turns = Turns()

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

        Raises:
            IllegalStateError: this is the serving thread, or a forked child.
        """
        self._check_caller()
        return self._faults or self._add_faults()

    @property
    def running(self) -> bool:
        """Whether it serves: it was started by this process, and has not ended since."""
        run = self._run
        return run is not None and self._pid == os.getpid() and run.running

    def start(self) -> Self:
        """Recover what is on disk, and serve.

        Raises:
            PortInUseError: another process has the port.
            KafkaStorageError: the folder can't be used: locked, of another cluster, damaged.
            IllegalStateError: it runs already, be it in the process that this one was forked from.
        """
        with self._turn():
            self._start()
        return self

    def stop(self) -> None:
        """Stop cleanly, and remove the temporary folder. Does nothing if it does not run.

        So may a signal handler: if it has interrupted another of these calls, that comes first.

        Raises:
            KafkaStorageError: the disk refused; it is stopped, and the next start recovers.
            IllegalStateError: this is the serving thread.
        """
        if self._pid != os.getpid():
            self._leave_to_parent()
            return
        if self._turns.put_off(self.stop):
            return
        with self._turn():
            atexit.unregister(self.stop)
            try:
                self._end(BrokerRun.stop)
            finally:
                self._remove_temporary_folder()

    def kill(self) -> None:
        """Stop as `kill -9` would: no goodbye, files as they are. `start` recovers them.

        Raises:
            IllegalStateError: this is the serving thread.
        """
        if self._pid != os.getpid():
            self._leave_to_parent()
            return
        if self._turns.put_off(self.kill):
            return
        with self._turn():
            self._end(BrokerRun.kill)
            if self._temporary is None:
                atexit.unregister(self.stop)  # nothing is left to be done

    def restart(self) -> None:
        """Stop cleanly if it runs, then start on the same port with the same data.

        Raises:
            IllegalStateError: this is the serving thread, or a forked child.
        """
        with self._turn():
            self._end(BrokerRun.stop)
            self._start()

    def __reduce__(self) -> NoReturn:
        raise TypeError(
            "a Broker cannot be pickled or copied: its thread, files and sockets belong to this"
            " process. Pass its bootstrap_servers to the child process, or start a Broker there"
        )

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
            IllegalStateError: the broker does not run, or this is its serving thread already, or
                a forked child.
        """
        self._check_caller()
        return self._running().call(function)

    def create_topic(
        self, name: str, partitions: int = 1, config: Mapping[str, object] | None = None
    ) -> None:
        """Create a topic, and return when clients see it; -1 partitions are `num.partitions`.

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

    def _intercept(self, node: Node) -> None:
        if self._keep_requests:
            node.dispatcher.interceptors.append(self.requests)
        if self._faults is not None:
            _inject(self._faults, node)

    def _add_faults(self) -> Faults:
        # Imported by the first who wants some: the start of a broker should not wait.
        from broker_stub.testing.faults import Faults

        with self._turn():
            if self._faults is None:
                made = Faults()
                if self._run is not None and self._run.running:
                    self._run.call(partial(_inject, made))
                self._faults = made  # not before: who gets them may order some at once
            return self._faults

    @contextmanager
    def _turn(self) -> Iterator[None]:
        """Start or end something while nobody else does."""
        self._check_caller()  # first: whoever has the turn may be waiting for the serving thread
        if self._pid != os.getpid():
            # A child that begins anew: the turn may have been taken where it was forked.
            self._leave_to_parent()
            self._turns = Turns()
            self._pid = os.getpid()
        with self._turns.taken():
            yield

    def _check_caller(self) -> None:
        """Refuse at once what would wait for ever, or in vain."""
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
                "this is the broker's serving thread, which would wait for itself: do this on"
                " another one, or use the node"
            )

    def _leave_to_parent(self) -> None:
        """In a forked child: forget what is not its own."""
        atexit.unregister(self.stop)
        self._run = self._temporary = None
        self._listeners = self._configured  # the ports that were found are the parent's

    def _running(self) -> BrokerRun:
        if self._run is None:
            raise IllegalStateError("the broker does not run")
        return self._run

    def _start(self) -> None:
        if self._run is not None:
            if self._run.running:
                raise IllegalStateError("the broker runs already")
            self._end(BrokerRun.kill)  # its serving thread has ended by itself
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
        self._listeners = self._run.listeners
        atexit.unregister(self.stop)  # of an earlier start that ended in a kill
        atexit.register(self.stop)

    def _end(self, how: Callable[[BrokerRun], None]) -> None:
        if self._run is None:
            return
        try:
            how(self._run)
        finally:
            self._run = None  # not before: until then its serving thread has to be told

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
        if folder is not None:
            import shutil

            shutil.rmtree(folder, ignore_errors=True)


def _inject(faults: Faults, node: Node) -> None:
    from broker_stub.testing.fault_injector import FaultInjector

    node.dispatcher.interceptors.append(FaultInjector(faults, node))


def _bracketed(host: str) -> str:
    return f"[{host}]" if ":" in host else host
