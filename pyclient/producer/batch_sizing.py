"""How large batches become: when one is ready, and how far it grows while it waits.

Memory comes in buffers of `batch.size`. A batch that has `batch.size` bytes on the wire, as far as
its topic's compression ratio tells, is ready. But it stays open, and takes more buffers, for as
long as its partition has to wait for its broker: so one request carries more, and latency does not
change. `batch.max.size` bounds it. The accumulator calls in, under its lock.
"""

from typing import Final, NamedTuple, TypeAlias

from pyclient import _twin
from pyclient.errors import RecordTooLargeError
from pyclient.producer.buffer_pool import BufferPool
from pyclient.producer.producer_batch import ProducerBatch
from pyclient.serialization import Bytes, Headers

Record: TypeAlias = tuple[int, Bytes | None, Bytes | None, Headers]
"""The arguments of a builder's `try_append`."""


class Limits(NamedTuple):
    """What the configuration says about sizes and times."""

    batch_size: int
    batch_max_size: int
    max_request_size: int
    linger_ms: float
    delivery_timeout_ms: float


_BUFFERS_AT_ONCE: Final = 8


class BatchSizing:
    """The rules of sizes, for one producer."""

    def __init__(self, limits: Limits, pool: BufferPool) -> None:
        self._limits = limits
        self._pool = pool

    def buffer_size(self, record: Record) -> int:
        """What a batch that begins with this record needs.

        Raises:
            RecordTooLargeError: no batch could hold the record.
        """
        _, key, value, headers = record
        size = _twin.batch_size_of(key, value, headers)
        if size <= self._limits.batch_size:
            return self._limits.batch_size
        for option, limit in (
            ("max.request.size", self._limits.max_request_size),
            ("buffer.memory", self._pool.total),
        ):
            if size > limit:
                raise RecordTooLargeError(
                    f"the record needs a batch of {size} bytes, more than the {limit} of {option}",
                    size=size,
                    limit=limit,
                )
        return size

    def is_ready(self, batch: ProducerBatch, record: Record) -> bool:
        """Whether a batch is as large as `batch.size` asks, now that its buffer is full."""
        raw_size = batch.builder.raw_size + batch.builder.size_of(*record)
        return raw_size * batch.queue.topic.compression_ratio > self._limits.batch_size

    def grow(self, batch: ProducerBatch, record: Record, now_ms: float) -> bool:
        """Give a batch whose buffers are full more for this record, if it may have them.

        Takes memory only if no caller waits for it, and does not grow a batch that has used up
        half of its delivery time.
        """
        if (
            now_ms - batch.created_ms > self._limits.delivery_timeout_ms / 2
            or _twin.batch_size_of(*record[1:]) > self._pool.pooled_size
        ):
            return False
        # Several at a time, because each time costs as much as a hundred records; unused ones go
        # back when the batch is drained.
        wanted = min(2 * batch.buffer_count, _BUFFERS_AT_ONCE, self._buffers_until_limit(batch))
        lent = self._pool.lend(batch, wanted) if wanted > 0 else 0
        if lent:
            batch.builder.extend(batch.spare)
            batch.queue.grown(batch, lent)
        return lent > 0

    def _buffers_until_limit(self, batch: ProducerBatch) -> int:
        topic = batch.queue.topic
        limit = min(topic.batch_max_size / topic.compression_ratio, self._limits.max_request_size)
        return int((limit - batch.builder.raw_size) / self._pool.pooled_size)
