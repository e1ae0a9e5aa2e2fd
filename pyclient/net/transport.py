"""A non-blocking TCP connection that writes parts as they are and reads frames.

Parts are never joined: `sendmsg` takes them as they lie in memory. Touched by the I/O thread
only.
"""

from __future__ import annotations

import errno
import os
import socket
from collections import deque
from collections.abc import Callable, Iterable, Sequence
from itertools import islice
from typing import TYPE_CHECKING, Any, Final, NamedTuple

from pyclient.errors import InvalidReceiveError
from pyclient.net.frame_reader import FrameReader
from pyclient.net.resolver import Address
from pyclient.protocol.primitives import Part

if TYPE_CHECKING:
    from pyclient.net.connection import Connection
    from pyclient.net.poller import SelectorPoller
    from pyclient.net.tls import TlsSettings

# The most buffers that one system call takes.
_PARTS_PER_CALL_MAX: Final = min(os.sysconf("SC_IOV_MAX"), 1024) if hasattr(os, "sysconf") else 1024
# Without `sendmsg`, parts are joined up to this many bytes: a packet each would be worse.
_JOINED_BYTES_MAX: Final = 1 << 16
# After this many reads a busy connection lets the others have their turn.
KEEP_ALIVE: Final = (socket.SOL_SOCKET, socket.SO_KEEPALIVE, 1)
"""For `socket.options`: let the system notice peers that are gone."""

READS_PER_TURN_MAX: Final = 16
_IN_PROGRESS: Final = frozenset({0, errno.EINPROGRESS, errno.EWOULDBLOCK, errno.EINTR})


class SocketOptions(NamedTuple):
    """How sockets are set up; sizes of None or -1 are left to the system, no `tls` is none."""

    send_buffer_bytes: int | None = None
    receive_buffer_bytes: int | None = None
    receive_message_max_bytes: int = 100_000_000
    extra: Sequence[tuple[int, int, int | bytes]] = ()
    tls: TlsSettings | None = None

    def apply(self, sock: socket.socket) -> None:
        """Set the options of a new socket."""
        sock.setblocking(False)
        sock.setsockopt(socket.IPPROTO_TCP, socket.TCP_NODELAY, 1)
        sock.setsockopt(socket.SOL_SOCKET, socket.SO_KEEPALIVE, 1)
        for option, size in (
            (socket.SO_SNDBUF, self.send_buffer_bytes),
            (socket.SO_RCVBUF, self.receive_buffer_bytes),
        ):
            if size is not None and size >= 0:
                sock.setsockopt(socket.SOL_SOCKET, option, size)
        for level, option, value in self.extra:
            sock.setsockopt(level, option, value)


class TcpTransport:
    """See `Transport` for what the engine may use."""

    __slots__ = (
        "_is_open",
        "_out",
        "_parts_queued",
        "_poller",
        "_reader",
        "connected",
        "error",
        "owner",
        "parts_sent",
        "socket",
    )

    secured: bool = True  # without TLS there is nothing to secure

    def __init__(
        self,
        address: Address,
        options: SocketOptions,
        owner: Connection,
        poller: SelectorPoller,
    ) -> None:
        self.connected = False
        self.error: Exception | None = None
        self.parts_sent = 0
        self.owner = owner
        self._out: deque[Any] = deque()
        self._parts_queued = 0
        self._poller = poller
        self._reader = FrameReader(options.receive_message_max_bytes)
        self._is_open = False
        try:
            self.socket = connecting_socket(address, options)
            self._is_open = True
        except OSError as error:
            self.error = error

    def send(self, parts: Sequence[Part]) -> int:
        """Queue parts for the next poll, and tell how many were ever queued."""
        self._out.extend(parts)
        self._parts_queued += len(parts)
        self._poller.unflushed(self)
        return self._parts_queued

    def take_frames(self) -> list[memoryview]:
        """The frames that have arrived since the last call."""
        frames = self._reader.frames
        self._reader.frames = []
        return frames

    def close(self) -> None:
        """Let go of the socket and of all queued parts."""
        self._out.clear()
        if self._is_open:
            self._is_open = False
            self._poller.forget(self)
            self.socket.close()

    # --- what follows is the poller's --------------------------------------------------------

    def finish_connecting(self) -> None:
        """The socket became writable for the first time: it is connected, or has failed."""
        code = self.socket.getsockopt(socket.SOL_SOCKET, socket.SO_ERROR)
        if code:
            self.error = OSError(code, os.strerror(code))
        else:
            self.connected = True

    def flush(self) -> bool:
        """Write what is queued; False if the system takes no more for now."""
        out = self._out
        while out and self.error is None:
            batch = (
                out if len(out) <= _PARTS_PER_CALL_MAX else list(islice(out, _PARTS_PER_CALL_MAX))
            )
            try:
                sent = _send(self.socket, batch)
            except (BlockingIOError, InterruptedError):
                return False
            except OSError as error:
                self.error = error
                break
            while out and len(out[0]) <= sent:
                sent -= len(out.popleft())
                self.parts_sent += 1
            if sent:
                out[0] = memoryview(out[0])[sent:]
        return True

    def receive(self, scratch: memoryview) -> None:
        """Read what has arrived, in at most `READS_PER_TURN_MAX` reads."""
        reader = self._reader
        try:
            for _ in range(READS_PER_TURN_MAX):
                target = reader.target(scratch)
                count = self.socket.recv_into(target)
                if count == 0:
                    self.error = EOFError("the other side closed the connection")
                    return
                reader.received(scratch, count)
                if count < len(target):
                    return
        except (BlockingIOError, InterruptedError):
            return
        except (OSError, InvalidReceiveError) as error:
            self.error = error


def _send_joined(sock: socket.socket, parts: Iterable[Any]) -> int:
    """What `sendmsg` does, for Windows: a large part goes out as it is, small ones together."""
    joined: list[Any] = []
    size = 0
    for part in parts:
        if joined and size + len(part) > _JOINED_BYTES_MAX:
            break
        joined.append(part)
        size += len(part)
    return sock.send(joined[0] if len(joined) == 1 else b"".join(joined))


_send: Callable[[socket.socket, Iterable[Any]], int] = getattr(
    socket.socket, "sendmsg", _send_joined
)


def connecting_socket(address: Address, options: SocketOptions) -> socket.socket:
    """A socket on its way to an address.

    Raises:
        OSError: it failed already; the family is not supported, say, or files are out.
    """
    sock = socket.socket(address.family, socket.SOCK_STREAM)
    try:
        options.apply(sock)
        code = sock.connect_ex(address.target)
        if code not in _IN_PROGRESS:
            raise OSError(code, os.strerror(code))
    except BaseException:
        sock.close()
        raise
    return sock
