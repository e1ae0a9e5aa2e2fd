"""Record batches against aiokafka's (Cython) and kafka-python's.

Records of 100 bytes with keys of 16, in batches of 16 KB, the timestamps a millisecond apart.
aiokafka finishes its batch as we do. kafka-python does not: its checksum is as slow as the library
it finds, and would hide what an append costs; nor do we where we race it.
"""

from __future__ import annotations

import sys
from collections import deque
from collections.abc import Callable
from itertools import repeat
from types import ModuleType
from typing import Any

from aiokafka.record import default_records as aiokafka_records
from kafka.record import default_records as kafka_python_records

from pyclient import _twin
from tests.benchmarks.harness import Race, report

BATCH = 16384
KEY = b"k" * 16
VALUE = b"v" * 100
COUNT = 120
OFFSETS = range(COUNT)
TIMESTAMPS = [1_700_000_000_000 + index for index in OFFSETS]
NO_HEADERS: repeat[list[Any]] = repeat([])

# Runs an iterator to its end in C, so that both sides are measured and not the loop around them.
exhaust = deque[object](maxlen=0).extend


def append_ours(twin: ModuleType) -> Callable[[], object]:
    """Fill a pooled buffer, as the producer does."""
    buffer = bytearray(BATCH)

    def fill() -> object:
        builder = twin.BatchBuilder(buffer)
        exhaust(map(builder.try_append, TIMESTAMPS, repeat(KEY), repeat(VALUE)))
        assert builder.record_count == COUNT
        return builder.close()

    return fill


def append_aiokafka() -> object:
    """Fill aiokafka's compiled builder."""
    builder: Any = aiokafka_records.DefaultRecordBatchBuilder(2, 0, 0, -1, -1, -1, BATCH)
    exhaust(map(builder.append, OFFSETS, TIMESTAMPS, repeat(KEY), repeat(VALUE), NO_HEADERS))
    return builder.build()


def append_kafka_python() -> object:
    """Fill kafka-python's builder."""
    builder = kafka_python_records.DefaultRecordBatchBuilder(2, 0, False, -1, -1, -1, BATCH)
    exhaust(map(builder.append, OFFSETS, TIMESTAMPS, repeat(KEY), repeat(VALUE), NO_HEADERS))
    return builder.build()


def decode_ours(twin: ModuleType, batch: bytes) -> Callable[[], object]:
    """Read a batch as the consumer does, but with this twin."""
    count = int.from_bytes(batch[57:61], "big")
    base_timestamp = int.from_bytes(batch[27:35], "big")

    def decode() -> object:
        records = memoryview(batch)[61:]
        return twin.RecordDecoder(records, count, 0, base_timestamp, None, "topic", 0, 0).read()

    return decode


def decode_aiokafka(batch: bytes) -> Callable[[], object]:
    """Read a batch with aiokafka's compiled reader."""
    return lambda: list(aiokafka_records.DefaultRecordBatch(batch))


def decode_kafka_python(batch: bytes) -> Callable[[], object]:
    """Read a batch with kafka-python's reader."""
    return lambda: list(kafka_python_records.DefaultRecordBatch(batch))


def races() -> list[Race]:
    """Every race of this module, with its bar."""
    native, pure = (_twin.load(name)["batch"] for name in ("native", "python"))
    batch = bytes(append_kafka_python())  # type: ignore[call-overload]
    return [
        Race("append, native : aiokafka", append_ours(native), append_aiokafka, COUNT, 3),
        Race("append, native : kafka-python", append_ours(native), append_kafka_python, COUNT, 20),
        Race("append, pure : kafka-python", append_ours(pure), append_kafka_python, COUNT, 2),
        Race(
            "decode, native : aiokafka",
            decode_ours(native, batch),
            decode_aiokafka(batch),
            COUNT,
            1.5,
        ),
        Race(
            "decode, native : kafka-python",
            decode_ours(native, batch),
            decode_kafka_python(batch),
            COUNT,
            20,
        ),
        Race(
            "decode, pure : kafka-python",
            decode_ours(pure, batch),
            decode_kafka_python(batch),
            COUNT,
            2,
        ),
    ]


if __name__ == "__main__":
    sys.exit(not report("Record batches, 100 B values, 16 B keys", races()))
