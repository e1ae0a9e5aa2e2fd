"""What an engine runs on: clock, entropy, network, waiting, and a thread.

The real ones are here. A simulation or a scripted test brings its own, and nothing above can
tell the difference.
"""

import threading
from collections.abc import Callable
from contextlib import suppress
from typing import Protocol

from pyclient.clock import Clock, SystemClock
from pyclient.entropy import Entropy
from pyclient.net.io_thread import IoThread
from pyclient.net.poller import Poller, new_poller
from pyclient.net.transport import SocketOptions
from pyclient.net.waiting import ThreadWaiting, Waiting


class Environment(Protocol):
    """Everything outside of an engine that it needs."""

    @property
    def clock(self) -> Clock:
        """The clock that everything in this client reads."""

    @property
    def entropy(self) -> Entropy:
        """The source of all randomness in this client."""

    def new_waiting(self) -> Waiting:
        """Where the client's threads wait."""

    def new_poller(self, options: SocketOptions) -> Poller:
        """Create the client's poller, which owns its connections."""

    def run(self, io_thread: IoThread, name: str) -> Callable[[], None]:
        """Start a loop; the returned function waits for its end."""

    def run_beside(self, function: Callable[[], None], name: str) -> None:
        """Run a function that may block on another thread."""


class SystemEnvironment:
    """The machine's clock, randomness, sockets and threads."""

    def __init__(self) -> None:
        self.clock = SystemClock()
        self.entropy = Entropy()

    def new_waiting(self) -> Waiting:
        """Where the client's threads wait."""
        return ThreadWaiting()

    def new_poller(self, options: SocketOptions) -> Poller:
        """Create the client's poller, which owns its connections."""
        return new_poller(options)

    def run(self, io_thread: IoThread, name: str) -> Callable[[], None]:
        """Start a loop on a daemon thread.

        A daemon, because the interpreter joins all others before `atexit` handlers run: a
        client that was not closed would keep the program from ending.
        """
        thread = threading.Thread(target=io_thread.run, name=name, daemon=True)
        thread.start()
        return thread.join

    def run_beside(self, function: Callable[[], None], name: str) -> None:
        """Run a function on a daemon thread."""
        with suppress(RuntimeError):  # no new threads at the end of the interpreter
            threading.Thread(target=function, name=name, daemon=True).start()
