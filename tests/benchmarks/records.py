"""Record batches against aiokafka's (Cython) and kafka-python's.

Records of 100 bytes with keys of 16, in batches of 16 KB, the timestamps a millisecond apart.
aiokafka finishes its batch as we do. kafka-python does not: its checksum is as slow as the library
it finds, and would hide what an append costs; nor do we where we race it.
"""

import sys
from collections import deque
from collections.abc import Callable, Iterator
from itertools import repeat
from types import ModuleType
from typing import Any

import pyarrow as pa
from aiokafka.record import default_records as aiokafka_records
from kafka.record import default_records as kafka_python_records

from pyclient import _twin
from pyclient.records.batch import iter_batches
from pyclient.records.columns import ColumnsBuilder
from tests.benchmarks.harness import Race, report
from tests.support.twins import names_of, use

BATCH = 16384
KEY = b"k" * 16
VALUE = b"v" * 100
COUNT = 120
OFFSETS = range(COUNT)
TIMESTAMPS = [1_700_000_000_000 + index for index in OFFSETS]
NO_HEADERS: Iterator[list[Any]] = repeat([])
FETCHED_BATCHES = 84  # ten thousand records

# Runs an iterator to its end in C, so that both sides are measured and not the loop around them.
exhaust = deque[object](maxlen=0).extend


def append_ours(twin: ModuleType, *, close: bool) -> Callable[[], object]:
    """Fill a pooled buffer, as the producer does."""
    buffer = bytearray(BATCH)

    def fill() -> object:
        builder = twin.BatchBuilder(buffer)
        exhaust(map(builder.try_append, TIMESTAMPS, repeat(KEY), repeat(VALUE)))
        assert builder.record_count == COUNT
        return builder.close() if close else None

    return fill


def append_aiokafka() -> object:
    """Fill aiokafka's compiled builder and finish the batch."""
    builder: Any = aiokafka_records.DefaultRecordBatchBuilder(2, 0, 0, -1, -1, -1, BATCH)
    exhaust(map(builder.append, OFFSETS, TIMESTAMPS, repeat(KEY), repeat(VALUE), NO_HEADERS))
    return builder.build()


def append_kafka_python() -> Any:
    builder = kafka_python_records.DefaultRecordBatchBuilder(2, 0, False, -1, -1, -1, BATCH)
    exhaust(map(builder.append, OFFSETS, TIMESTAMPS, repeat(KEY), repeat(VALUE), NO_HEADERS))
    return builder


def decode_ours(twin: ModuleType, batch: bytes) -> Callable[[], object]:
    """Read a batch's records with this twin."""
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


def columns_directly(fetched: bytes) -> pa.Table:
    """Arrow columns without an object per record."""
    builder = ColumnsBuilder()
    for batch in iter_batches(fetched):
        builder.add(batch, "topic", 0)
    return builder.finish()


def columns_from_records(fetched: bytes) -> pa.Table:
    """The same columns out of record objects."""
    records = [record for batch in iter_batches(fetched) for record in batch.decode("topic", 0)]
    return pa.table(
        {
            "key": pa.array([record.key for record in records], pa.binary()),
            "value": pa.array([record.value for record in records], pa.binary()),
            "topic": pa.array([record.topic for record in records]).dictionary_encode(),
            "partition": pa.array([record.partition for record in records], pa.int32()),
            "offset": pa.array([record.offset for record in records], pa.int64()),
            "timestamp": pa.array(
                [record.timestamp for record in records], pa.timestamp("ms", "UTC")
            ),
            "timestamp_type": pa.array([record.timestamp_type for record in records], pa.int32()),
        }
    )


def races() -> list[Race]:
    """Every race of this module, with its bar."""
    native, pure = (_twin.load(name)["batch"] for name in ("native", "python"))
    use(names_of("native"))
    batch = bytes(append_kafka_python().build())
    fetched = batch * FETCHED_BATCHES
    rows = COUNT * FETCHED_BATCHES
    assert columns_directly(fetched) == columns_from_records(fetched)
    closed, filled = append_ours(native, close=True), append_ours(native, close=False)
    decoded = decode_ours(native, batch)
    theirs = decode_kafka_python(batch)
    return [
        Race("append, native : aiokafka", closed, append_aiokafka, COUNT, 3),
        Race("append, native : kafka-python", filled, append_kafka_python, COUNT, 20),
        Race(
            "append, pure : kafka-python",
            append_ours(pure, close=False),
            append_kafka_python,
            COUNT,
            2,
        ),
        Race("decode, native : aiokafka", decoded, decode_aiokafka(batch), COUNT, 1.5),
        Race("decode, native : kafka-python", decoded, theirs, COUNT, 20),
        Race("decode, pure : kafka-python", decode_ours(pure, batch), theirs, COUNT, 2),
        Race(
            "Arrow columns : from our records",
            lambda: columns_directly(fetched),
            lambda: columns_from_records(fetched),
            rows,
            4,
        ),
    ]


def main() -> bool:
    """Print the table; whether every bar was reached."""
    return report("Record batches, 100 B values, 16 B keys", races())


if __name__ == "__main__":
    sys.exit(not main())
