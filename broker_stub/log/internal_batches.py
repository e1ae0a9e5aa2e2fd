"""Builds the batches of internal topics, and reads batches and records of a log. Pure functions."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from typing import TYPE_CHECKING, Final

from pyclient.errors import CorruptRecordError
from pyclient.records.batch import RecordBatch, iter_batches
from pyclient.records.builder import BatchBuilder
from pyclient.records.header import HEADER_SIZE

if TYPE_CHECKING:
    from broker_stub.log.partition_log import PartitionLog
    from pyclient.records.record import ConsumerRecord

# Length, attributes, deltas, key and value length, header count: at their longest.
_RECORD_OVERHEAD: Final = 40
_READ_BYTES: Final = 1 << 20


def build_batch(
    records: Sequence[tuple[bytes | None, bytes | None]],
    timestamp_ms: int,
    producer: tuple[int, int] | None = None,
) -> memoryview:
    """One uncompressed batch of keys and values with one timestamp, ready to append.

    With the id and epoch of a producer, it is part of that producer's transaction.
    """
    content = sum(len(key or b"") + len(value or b"") for key, value in records)
    buffer = bytearray(HEADER_SIZE + content + _RECORD_OVERHEAD * len(records))
    if producer is None:
        builder = BatchBuilder(buffer)
    else:
        producer_id, epoch = producer
        builder = BatchBuilder(
            buffer, transactional=True, producer_id=producer_id, producer_epoch=epoch
        )
    for key, value in records:
        if builder.try_append(timestamp_ms, key, value) < 0:
            raise AssertionError("the buffer is too small")
    (batch,) = builder.close()
    return batch


def read_log(log: PartitionLog) -> Iterator[ConsumerRecord]:
    """Every committed record from a log's start to its present end.

    Records of aborted and of open transactions are left out.

    Raises:
        CorruptRecordError: a batch is damaged.
    """
    uncommitted = log.uncommitted()
    for batch in read_batches(log, log.log_start_offset):
        if not batch.is_control and not uncommitted.covers(batch):
            yield from batch.decode(log.topic, log.partition)


def read_batches(log: PartitionLog, from_offset: int) -> Iterator[RecordBatch]:
    """Every batch from an offset to the log's present end.

    Raises:
        CorruptRecordError: a batch is damaged.
    """
    position, end = from_offset, log.log_end_offset
    while position < end:
        read = log.read(position, _READ_BYTES)
        if read.records is None:
            raise CorruptRecordError(f"{log.folder}: nothing to read at offset {position}")
        for batch in iter_batches(read.records.read()):
            assert isinstance(batch, RecordBatch)  # no other format is in a log
            yield batch
        position = read.next_offset
