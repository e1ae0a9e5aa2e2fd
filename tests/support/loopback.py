"""Raw ends of loopback connections: frames, and a peer that reads in the background."""

import socket
import struct
import threading
from collections.abc import Iterator
from contextlib import contextmanager


def framed(payload: bytes) -> bytes:
    return struct.pack(">i", len(payload)) + payload


def read_exactly(peer: socket.socket, count: int) -> bytes:
    received = bytearray()
    while len(received) < count:
        received += peer.recv(1 << 20)
    return bytes(received)


@contextmanager
def receiving(peer: socket.socket, expected: bytes) -> Iterator[None]:
    """Read on a thread during the block, and check that these bytes arrived."""
    received: list[bytes] = []
    reader = threading.Thread(target=lambda: received.append(read_exactly(peer, len(expected))))
    reader.start()
    yield
    reader.join(10)
    assert received == [expected]
