"""A TLS connection: writes parts and reads frames, like `transport`.

OpenSSL writes and reads one record of up to 16 KiB at a time, and buffers the rest of a record that
was not read in full. The selector does not see that buffer, so a read goes on until it is empty.
Imported only if TLS is used. Used by the I/O thread only.
"""

from __future__ import annotations

import ssl
from contextlib import suppress
from typing import TYPE_CHECKING, Final

from pyclient.errors import InvalidReceiveError, SslAuthenticationError
from pyclient.net.resolver import Address
from pyclient.net.tls_failures import explain
from pyclient.net.transport import READS_PER_TURN_MAX, SocketOptions, TcpTransport

if TYPE_CHECKING:
    from pyclient.net.connection import Connection
    from pyclient.net.poller import SelectorPoller
    from pyclient.net.tls import TlsSettings

_RECORD_BYTES: Final = 16_384
_NOTHING: Final = memoryview(b"")


class TlsTransport(TcpTransport):
    """See `Transport` for what the engine may use."""

    __slots__ = ("_chunk", "_chunk_parts", "_tls", "secured")

    def __init__(
        self,
        address: Address,
        options: SocketOptions,
        owner: Connection,
        poller: SelectorPoller,
    ) -> None:
        assert options.tls is not None
        self.secured = False
        self._tls: TlsSettings = options.tls
        # What OpenSSL was given last. It wants the same bytes again if it could not write them.
        self._chunk = _NOTHING
        self._chunk_parts = 0
        super().__init__(address, options, owner, poller)

    def close(self) -> None:
        """Send close_notify if that does not block, and close the socket."""
        self._chunk = _NOTHING
        if self._is_open and self.secured and self.error is None:
            assert isinstance(self.socket, ssl.SSLSocket)
            with suppress(OSError, ValueError):  # sent without waiting for the answer
                self.socket.unwrap()
        super().close()

    # --- what follows is the poller's --------------------------------------------------------

    def finish_connecting(self) -> None:
        """The socket is connected, or has failed; if it is, the handshake begins."""
        super().finish_connecting()
        if not self.connected:
            return
        try:
            self.socket = self._tls.context.wrap_socket(
                self.socket,
                do_handshake_on_connect=False,
                server_hostname=self.owner.broker.host.rstrip("."),
            )
        except (OSError, ValueError) as error:
            self.error = error

    def flush(self) -> bool:
        """Continue the handshake, then write what is queued; False if it has to wait."""
        if not self.secured:
            return self.error is not None or self._shake_hands()
        while self.error is None and self._take_chunk():
            try:
                sent = self.socket.send(self._chunk)
            except (ssl.SSLWantWriteError, ssl.SSLWantReadError, InterruptedError):
                return False  # to read first is wanted by contexts that renegotiate, not by ours
            except OSError as error:
                # A broker that rejects our certificate sends an alert first: report that.
                self.receive(memoryview(bytearray(_RECORD_BYTES)))
                self.error = self.error or error
                break
            self._chunk = self._chunk[sent:]
            if not self._chunk:
                self._chunk = _NOTHING  # even an empty view would hold on to the buffer
                self.parts_sent += self._chunk_parts
        return True

    def _shake_hands(self) -> bool:
        """Whether nothing is left to write for now."""
        assert isinstance(self.socket, ssl.SSLSocket)
        try:
            self.socket.do_handshake()
        except ssl.SSLWantReadError:
            return True
        except ssl.SSLWantWriteError:
            return False
        except (OSError, ValueError) as error:
            self.error = self._explained(error)
            return True
        self.secured = True
        return self.flush()

    def _take_chunk(self) -> bool:
        """Fill `_chunk`, unless there is nothing to write."""
        out = self._out
        while out and not self._chunk:
            # Small parts go together: a record has a head, a checksum and a system call.
            parts = [out.popleft()]
            room = _RECORD_BYTES - len(parts[0])
            while out and len(out[0]) <= room:
                room -= len(out[0])
                parts.append(out.popleft())
            self._chunk = memoryview(parts[0] if len(parts) == 1 else b"".join(parts))
            self._chunk_parts = len(parts)
            if not self._chunk:
                self.parts_sent += len(parts)
        return len(self._chunk) > 0

    def receive(self, scratch: memoryview) -> None:
        """Continue the handshake, or read what has arrived."""
        if self.error is not None:
            return  # found while writing in this turn: keep the first error
        if not self.secured:
            if not self.flush():
                self._poller.unflushed(self)  # which waits until it can write
            return
        assert isinstance(self.socket, ssl.SSLSocket)
        reader = self._reader
        reads = 0
        try:
            while reads < READS_PER_TURN_MAX or self.socket.pending():
                count = self.socket.recv_into(reader.target(scratch))
                if count == 0:
                    self.error = EOFError("the other side closed the connection")
                    return
                reader.received(scratch, count)
                reads += 1
        except (ssl.SSLWantReadError, ssl.SSLWantWriteError, InterruptedError):
            return
        except (OSError, InvalidReceiveError) as error:
            self.error = self._explained(error)

    def _explained(self, error: Exception) -> Exception:
        """The error in our words, if it is the peer's or OpenSSL's; else the system's own."""
        if isinstance(error, ssl.SSLEOFError):
            return EOFError("the other side closed the connection")
        if isinstance(error, ssl.SSLError):
            return SslAuthenticationError(explain(error, self._tls))
        return error
