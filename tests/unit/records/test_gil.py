"""What takes long lets other threads run meanwhile."""

import sys
import threading
from collections.abc import Callable, Iterator

import pytest

from pyclient import _twin
from pyclient.records.batch import RecordBatch
from pyclient.records.compression import Codec

NATIVE = _twin.load("native")["batch"]
SIZE = 8 << 20
ATTEMPTS = 200


@pytest.fixture
def no_forced_switches() -> Iterator[None]:
    """A thread keeps the GIL until it lets go of it by itself."""
    interval = sys.getswitchinterval()
    sys.setswitchinterval(1000)
    yield
    sys.setswitchinterval(interval)


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


def test_filling_columns(no_forced_switches: None) -> None:
    builder = NATIVE.BatchBuilder(bytearray(SIZE))
    builder.append_many(0, [b"x" * 1000] * (SIZE // 1010))
    batch = RecordBatch(b"".join(builder.close()))
    records, count = batch.records(), batch.record_count
    assert lets_others_run(lambda: NATIVE.ColumnBuffers().add(records, count, 0, 0))
