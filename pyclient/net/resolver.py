"""Resolves host names without blocking the I/O thread.

The system's look-up blocks, for many seconds if a name server is down. So names are looked up on a
short-lived daemon thread; numeric addresses are parsed at once.
"""

import errno
import socket
import threading
from collections.abc import Callable
from typing import Any, NamedTuple


class Address(NamedTuple):
    """Where a socket can connect to: an address family and what `connect` takes."""

    family: int
    target: tuple[Any, ...]

    def __str__(self) -> str:
        host, port = self.target[:2]
        return f"[{host}]:{port}" if ":" in host else f"{host}:{port}"


class Resolution:
    """The outcome of a look-up: pending, then addresses or an error.

    The look-up's thread writes `addresses` and `error` before `done`; the I/O thread reads them
    after it.
    """

    __slots__ = ("addresses", "done", "error")

    def __init__(self) -> None:
        self.done = False
        self.addresses: list[Address] = []
        self.error: OSError | None = None

    def look_up(self, host: str, port: int, flags: int = 0) -> None:
        """Ask the system, and wait for its answer."""
        try:
            found = socket.getaddrinfo(host, port, type=socket.SOCK_STREAM, flags=flags)
        except UnicodeError as error:  # a label that is too long or empty, as in "a..b"
            self.error = socket.gaierror(socket.EAI_NONAME, f"not a host name ({error})")
        except OSError as error:
            self.error = error
        else:
            self.addresses = [Address(int(row[0]), tuple(row[4])) for row in found]
        self.done = True


def resolve(host: str, port: int, when_done: Callable[[], None]) -> Resolution:
    """Begin a look-up. `when_done` runs on another thread, unless it is done on return."""
    numeric = Resolution()
    numeric.look_up(host, port, flags=socket.AI_NUMERICHOST)
    if numeric.error is None:
        return numeric
    resolution = Resolution()

    def run() -> None:
        resolution.look_up(host, port)
        when_done()

    try:
        threading.Thread(target=run, name=f"pyclient-resolve-{host}", daemon=True).start()
    except RuntimeError as error:  # there are too many threads already
        resolution.error = OSError(errno.EAGAIN, str(error))
        resolution.done = True
    return resolution
