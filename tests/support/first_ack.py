"""From nothing to the first acknowledged record, by a client of a few bytes.

It imports nothing but sockets: what is measured is the broker's start, not the client's. As a
program it starts a broker in its own process, and prints how many seconds that took.
"""

import socket
import struct
import time

TOPIC = b"first"
# One batch of one record, `hello`, checksum included.
BATCH = bytes.fromhex(
    "00000000000000000000003dffffffff025d035a1300000000000000000000000003e80000000000"
    "0003e8ffffffffffffffffffffffffffff0000000116000000010a68656c6c6f00"
)
_METADATA, _PRODUCE = (3, 4), (0, 7)


def _frame(api: tuple[int, int], body: bytes) -> bytes:
    head = struct.pack(">hhih", *api, 1, -1)
    return struct.pack(">i", len(head) + len(body)) + head + body


def _name() -> bytes:
    return struct.pack(">h", len(TOPIC)) + TOPIC


METADATA = _frame(_METADATA, struct.pack(">i", 1) + _name() + b"\x01")
PRODUCE = _frame(
    _PRODUCE,
    struct.pack(">hhii", -1, -1, 10_000, 1)
    + _name()
    + struct.pack(">iii", 1, 0, len(BATCH))
    + BATCH,
)
# Behind correlation id, topic count, name, partition count and index.
_ERROR_CODE_AT = 4 + 4 + 2 + len(TOPIC) + 4 + 4


def wait_for_ack(port: int, timeout_seconds: float = 120) -> None:
    """Create the topic by asking for it, and produce until a record is acknowledged."""
    deadline = time.monotonic() + timeout_seconds
    while time.monotonic() < deadline:
        try:
            with socket.create_connection(("127.0.0.1", port), timeout=10) as connection:
                while True:
                    _ask(connection, METADATA)
                    (error_code,) = struct.unpack_from(
                        ">h", _ask(connection, PRODUCE), _ERROR_CODE_AT
                    )
                    if error_code == 0:
                        return
                    time.sleep(0.001)
        except OSError:
            time.sleep(0.001)
    raise TimeoutError("no record was acknowledged")


def _ask(connection: socket.socket, frame: bytes) -> bytes:
    connection.sendall(frame)
    (length,) = struct.unpack(">i", _read(connection, 4))
    return _read(connection, length)


def _read(connection: socket.socket, count: int) -> bytes:
    data = b""
    while len(data) < count:
        piece = connection.recv(count - len(data))
        if not piece:
            raise ConnectionError("hung up")
        data += piece
    return data


def main() -> None:
    """Start a broker in this process, as a test does that has it imported."""
    from broker_stub import Broker

    started = time.perf_counter()
    with Broker() as broker:
        wait_for_ack(broker.port)
        print(time.perf_counter() - started)


if __name__ == "__main__":
    main()
