"""Many threads on one open batch: native calls are atomic, the pure twin's are under a lock."""

import threading
from contextlib import AbstractContextManager, nullcontext
from types import ModuleType
from typing import Any

import pytest

from pyclient import _twin
from pyclient.records.batch import RecordBatch

WRITERS = 6
BUFFER = 2048
SEAL_AFTER = 3000


class Sharing:
    """Writers that append to one batch until it is sealed, and grow it when it is full."""

    def __init__(self, twin: ModuleType) -> None:
        self.builder: Any = twin.BatchBuilder(bytearray(BUFFER))
        self.growing = threading.Lock()
        self.busy = threading.Event()
        # In the native twin an append takes no lock at all.
        self.appending: AbstractContextManager[Any] = (
            nullcontext() if _twin.NATIVE else threading.RLock()
        )
        self.taken: list[list[tuple[int, bytes]]] = [[] for _ in range(WRITERS)]

    def write(self, writer: int) -> None:
        number = 0
        while True:
            value = b"%d:%d" % (writer, number)
            with self.appending:
                index = self.builder.try_append(1000 + number, None, value)
            if index == SEAL_AFTER:
                self.busy.set()
            if index >= 0:
                self.taken[writer].append((index, value))
                number += 1
            elif not self.grow(1000 + number, value):
                return

    def grow(self, timestamp_ms: int, value: bytes) -> bool:
        with self.growing, self.appending:
            if self.builder.has_room_for(timestamp_ms, None, value):
                return True  # another writer was faster
            return bool(self.builder.extend([bytearray(BUFFER)]))


@pytest.mark.parametrize("round_", range(5))
def test_no_append_is_lost_or_doubled(round_: int, twin: ModuleType, restless: None) -> None:
    sharing = Sharing(twin)
    threads = [threading.Thread(target=sharing.write, args=(n,)) for n in range(WRITERS)]
    for thread in threads:
        thread.start()
    assert sharing.busy.wait(60)
    with sharing.appending:
        assert sharing.builder.seal()
    count = sharing.builder.record_count
    for thread in threads:
        thread.join()
    assert sharing.builder.record_count == count  # nothing came in after the seal
    batch = RecordBatch(b"".join(sharing.builder.close()))
    batch.check_crc()
    taken = sorted(pair for writer in sharing.taken for pair in writer)
    assert taken == [(record.offset, record.value) for record in batch.decode()]
    assert len(taken) == count
