"""Splits a batch that the broker finds too large. The I/O thread only."""

from pyclient import _twin
from pyclient.producer.buffer_pool import BufferPool
from pyclient.producer.producer_batch import DUE_NOW, BuilderFactory, ProducerBatch
from pyclient.records.batch import RecordBatch
from pyclient.records.builder import BatchBuilder


def split(
    batch: ProducerBatch, limit: int, pool: BufferPool, new_builder: BuilderFactory
) -> list[ProducerBatch]:
    """Spread a refused batch's records over batches of at most `limit` bytes, or one record.

    The parts take over the parent's result, sequence numbers and deadline, but not its memory.
    """
    builders: list[BatchBuilder] = []
    for record in RecordBatch(b"".join(batch.builder.close())).decode():
        fields = (record.timestamp, record.key, record.value, record.headers)
        if not builders or builders[-1].try_append(*fields) < 0:
            size = max(limit, _twin.batch_size_of(*fields[1:]))
            builders.append(new_builder(pool.allocate_beyond(size)))
            builders[-1].try_append(*fields)
    results = batch.result.split([builder.record_count for builder in builders])
    parts = []
    start = 0
    for builder, result in zip(builders, results, strict=True):
        part = ProducerBatch(batch.queue, builder, result, batch.created_ms, DUE_NOW)
        part.seal()
        part.position = batch.position + start
        part.number = None if batch.number is None else batch.number + start
        part.maybe_written = batch.maybe_written
        start += part.record_count
        parts.append(part)
    return parts
