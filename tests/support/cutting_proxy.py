"""A proxy that cuts its connections at random, also in the middle of a response.

For brokers without fault injection: they advertise the proxy's address as their own.
"""

import contextlib
import random
import socket
import threading
from typing import Self

PIECE_BYTES = 65_536


class CuttingProxy:
    """Listens on a free port; each connection lives for a random number of response bytes.

    Attributes:
        cuts: connections cut so far.
        is_cutting: whether it goes on doing so.
    """

    def __init__(self, target_port: int, answer_bytes: tuple[int, int], seed: int) -> None:
        self._target_port = target_port
        self._answer_bytes = answer_bytes
        self._random = random.Random(seed)
        self._listener = socket.create_server(("127.0.0.1", 0))
        self.port: int = self._listener.getsockname()[1]
        self.cuts = 0
        self.is_cutting = True

    def __enter__(self) -> Self:
        threading.Thread(target=self._accept, daemon=True).start()
        return self

    def __exit__(self, *_: object) -> None:
        # Closing alone would not end an `accept` that waits already.
        self._listener.shutdown(socket.SHUT_RDWR)
        self._listener.close()

    def _accept(self) -> None:
        with contextlib.suppress(OSError):
            while True:
                client, _ = self._listener.accept()
                server = socket.create_connection(("127.0.0.1", self._target_port))
                budget = self._random.randint(*self._answer_bytes)
                for pair in ((client, server, None), (server, client, budget)):
                    threading.Thread(target=self._pass_on, args=pair, daemon=True).start()

    def _pass_on(self, source: socket.socket, sink: socket.socket, budget: int | None) -> None:
        """Copy one direction until it ends, or its bytes are used up."""
        with contextlib.suppress(OSError):
            while data := source.recv(PIECE_BYTES):
                if budget is not None and self.is_cutting:
                    if len(data) > budget:
                        sink.sendall(data[:budget])
                        self.cuts += 1
                        break
                    budget -= len(data)
                sink.sendall(data)
        for end in (source, sink):
            with contextlib.suppress(OSError):
                end.shutdown(socket.SHUT_RDWR)
