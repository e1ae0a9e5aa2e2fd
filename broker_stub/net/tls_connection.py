"""One client's connection over TLS. Imported only if a listener speaks it.

The handshake never blocks, and has a deadline. File ranges are read and encrypted, as sendfile
would send them in the clear. OpenSSL may hold decrypted bytes that the selector does not know of,
so `pending` is checked after each turn. Serving thread only.
"""

from __future__ import annotations

import os
import selectors
import socket
import ssl
from collections.abc import Sequence
from contextlib import suppress
from typing import TYPE_CHECKING, Final

from broker_stub import diagnostics
from broker_stub.log.files.file_slice import FileSlice
from broker_stub.net.connection import Buffer, Connection
from broker_stub.request import ConnectionContext

if TYPE_CHECKING:
    from broker_stub.net.server import Server

HANDSHAKE_MAX_MS: Final = 10_000
_RECORD_BYTES: Final = 16_384
_READ_BYTES: Final = 4 * _RECORD_BYTES  # of a file, at once
_RECORDS_PER_TURN: Final = 64
_NOTHING: Final = memoryview(b"")


class TlsConnection(Connection):
    """One client's socket, encrypted."""

    sock: ssl.SSLSocket

    def __init__(
        self,
        server: Server,
        sock: socket.socket,
        context: ConnectionContext,
        tls: ssl.SSLContext,
    ) -> None:
        """Wrap a socket; the handshake follows as bytes arrive.

        Raises:
            OSError: the client is gone already.
        """
        wrapped = tls.wrap_socket(sock, server_side=True, do_handshake_on_connect=False)
        super().__init__(server, wrapped, context)
        self._is_secured = False
        self._end_came = False
        self._deadline = server.after(HANDSHAKE_MAX_MS, self._on_deadline)
        # The next bytes to write. OpenSSL requires the same buffer again after a failed write.
        self._chunk = _NOTHING

    def on_readable(self) -> None:
        """Continue the handshake, or receive and handle complete requests."""
        if self._is_secured or self._shake_hands():
            super().on_readable()
            self._look_for_end()

    def advance(self) -> None:
        """Continue the handshake, or handle requests and write responses."""
        if not self._is_secured and not self._shake_hands():
            return
        if self.sock.pending() and self._input.has_room:
            self._receive()
        if not self.closed:
            super().advance()
        self._look_for_end()

    def _look_for_end(self) -> None:
        if self._end_came and not self.closed:
            self._end_came = False
            self._on_end()

    def _shake_hands(self) -> bool:
        """Continue the handshake; whether it is done."""
        try:
            self.sock.do_handshake()
        except ssl.SSLWantReadError:
            self._server.watch(self, selectors.EVENT_READ)
        except ssl.SSLWantWriteError:
            self._server.watch(self, selectors.EVENT_WRITE)
        except ssl.SSLError as error:
            self._refuse(error)
        else:
            self._is_secured = True
            self._deadline.cancel()
        return self._is_secured

    def _on_deadline(self) -> None:
        diagnostics.warn("%s did not finish the TLS handshake in time", self._context.client_host)
        self.close()

    def _refuse(self, error: ssl.SSLError) -> None:
        if not isinstance(error, ssl.SSLEOFError):  # an EOF is a client that left, or a port scan
            reason = getattr(error, "verify_message", None) or error.reason or str(error)
            diagnostics.warn("TLS with %s failed: %s", self._context.client_host, reason)
        self.close()

    def _receive(self) -> bool:
        came = False
        records = 0
        try:
            while records < _RECORDS_PER_TURN or self.sock.pending():
                room = self._input.room()
                if not room:
                    break  # continue when earlier requests are done
                count = self.sock.recv_into(room)
                if count == 0:
                    self._end_came = True
                    break  # requests before it are handled first
                self._input.received(count)
                records += 1
                came = True
        except (ssl.SSLWantReadError, ssl.SSLWantWriteError):
            self._input.release()
        except ssl.SSLError as error:  # with TLS 1.3, a client's refusal arrives here
            self._refuse(error)
            return False
        return came

    def _send_some(self, buffers: Sequence[Buffer], more: int) -> int:  # noqa: ARG002
        if not self._chunk:
            # Join small buffers: every TLS record costs a header, a tag and a system call.
            together: list[Buffer] = []
            room = _RECORD_BYTES
            for buffer in buffers:
                if together and len(buffer) > room:
                    break
                together.append(buffer)
                room -= len(buffer)
            self._chunk = memoryview(together[0] if len(together) == 1 else b"".join(together))
        return self._send_chunk()

    def _send_range(self, piece: FileSlice, position: int, count: int) -> int:
        if not self._chunk:
            self._chunk = memoryview(os.pread(piece.fd, min(count, _READ_BYTES), position))
        return self._send_chunk() if self._chunk else 0

    def _send_chunk(self) -> int:
        if not self._chunk:
            return 0  # an empty buffer
        try:
            sent = self.sock.send(self._chunk)
        except (ssl.SSLWantWriteError, ssl.SSLWantReadError):
            raise BlockingIOError from None
        self._chunk = self._chunk[sent:] or _NOTHING
        return sent

    def _show_interest(self) -> None:
        super()._show_interest()
        if self.sock.pending() and self._input.has_room:
            self._server.advance_later(self)

    def close(self) -> None:
        """Send close_notify if that does not block, and close."""
        if self.closed:
            return
        self._deadline.cancel()
        self._chunk = _NOTHING
        if self._is_secured:
            with suppress(OSError, ValueError):  # sent; the peer's reply is not awaited
                self.sock.unwrap()
        super().close()
