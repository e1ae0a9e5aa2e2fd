"""Long calls release the GIL."""

import socket
import threading
from collections.abc import Callable, Iterator

import pytest

from pyclient import _twin
from pyclient.net.connection import Connection
from pyclient.net.poller import ExchangePoller
from pyclient.net.resolver import Address
from pyclient.net.transport import SocketOptions
from pyclient.records.batch import RecordBatch
from pyclient.records.compression import Codec
from tests.support.threads import switching

NATIVE = _twin.load("native")["batch"]
SIZE = 8 << 20
ATTEMPTS = 200


@pytest.fixture
def no_forced_switches() -> Iterator[None]:
    """A thread keeps the GIL until it releases it voluntarily."""
    with switching(1000):
        yield


def lets_others_run(call: Callable[[], object]) -> bool:
    """Whether a waiting thread ever got to run during `call`; it may be slow to wake up."""
    for _ in range(ATTEMPTS):
        go, ran = threading.Lock(), []
        go.acquire()

        def wait(go: threading.Lock = go, ran: list[bool] = ran) -> None:
            go.acquire()
            ran.append(True)

        thread = threading.Thread(target=wait)
        thread.start()
        go.release()
        call()
        happened = bool(ran)
        thread.join()
        if happened:
            return True
    return False


def test_the_measure_tells_a_call_that_keeps_the_gil(no_forced_switches: None) -> None:
    assert not lets_others_run(lambda: sum(range(1000)))


@pytest.mark.parametrize("codec", [Codec.NONE, Codec.LZ4])
def test_closing_a_batch(codec: Codec, no_forced_switches: None) -> None:
    buffer = bytearray(SIZE + 100)

    def close() -> None:
        builder = NATIVE.BatchBuilder(buffer, codec=codec)
        builder.try_append(0, None, bytes(SIZE))
        builder.close()

    assert lets_others_run(close)


def test_checking_a_checksum(no_forced_switches: None) -> None:
    data = bytes(SIZE)
    assert lets_others_run(lambda: NATIVE.crc32c(data))


def large_batch() -> RecordBatch:
    builder = NATIVE.BatchBuilder(bytearray(SIZE))
    rows = NATIVE.ListRows(0, [b"x" * 1000] * (SIZE // 1010))
    rows.append_to(builder, None, 0, len(rows))
    return RecordBatch(b"".join(builder.close()))


def test_filling_columns(no_forced_switches: None) -> None:
    batch = large_batch()
    records, count = batch.records(), batch.record_count
    assert lets_others_run(lambda: NATIVE.ColumnBuffers().add(records, count, 0, 0))


def test_decoding_hands_the_gil_to_an_io_thread_that_waits_for_it(no_forced_switches: None) -> None:
    batch = large_batch()
    with socket.create_server(("127.0.0.1", 0)) as listener:
        poller = ExchangePoller(SocketOptions())
        address = Address(int(socket.AF_INET), listener.getsockname())
        transport = poller.open(address, Connection.__new__(Connection))
        peer, _ = listener.accept()
    poller.poll(10_000)
    ran_meanwhile = False
    for _ in range(ATTEMPTS):
        turns: list[int] = []

        def turn(turns: list[int] = turns) -> None:
            poller.poll(10_000)
            turns.append(1)

        transport.send([b"x"])
        thread = threading.Thread(target=turn)
        thread.start()
        assert peer.recv(1) == b"x"  # so the thread is in its turn, without the GIL
        poller.wake()
        decoded = batch.decode()
        ran_meanwhile = ran_meanwhile or bool(turns)
        thread.join()
        assert len(decoded) == batch.record_count
        if ran_meanwhile:
            break
    transport.close()
    peer.close()
    poller.close()
    assert ran_meanwhile
