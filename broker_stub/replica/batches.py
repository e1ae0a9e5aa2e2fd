"""Batches that the broker itself writes to internal topics, and reads back. Pure functions."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from typing import TYPE_CHECKING, Final

from pyclient.errors import CorruptRecordError
from pyclient.records.batch import HEADER_SIZE, iter_batches
from pyclient.records.builder import BatchBuilder

if TYPE_CHECKING:
    from broker_stub.log.partition_log import PartitionLog
    from pyclient.records.record import ConsumerRecord

# Length, attributes, deltas, key and value length, header count: at their longest.
_RECORD_OVERHEAD: Final = 40
_READ_BYTES: Final = 1 << 20


def build_batch(
    records: Sequence[tuple[bytes | None, bytes | None]], timestamp_ms: int
) -> memoryview:
    """One uncompressed batch of keys and values, all of one time; ready to be appended."""
    content = sum(len(key or b"") + len(value or b"") for key, value in records)
    builder = BatchBuilder(bytearray(HEADER_SIZE + content + _RECORD_OVERHEAD * len(records)))
    for key, value in records:
        if builder.try_append(timestamp_ms, key, value) < 0:
            raise AssertionError("the buffer was counted too small")
    (batch,) = builder.close()
    return batch


def read_log(log: PartitionLog) -> Iterator[ConsumerRecord]:
    """Every record from a log's start to the end it has now; control batches are passed over.

    Raises:
        CorruptRecordError: a batch is damaged.
    """
    position, end = log.log_start_offset, log.log_end_offset
    while position < end:
        read = log.read(position, _READ_BYTES)
        if read.records is None:
            raise CorruptRecordError(f"{log.folder}: nothing to read at offset {position}")
        for batch in iter_batches(read.records.read()):
            if not batch.is_control:
                yield from batch.decode(log.topic, log.partition)
        position = read.next_offset
