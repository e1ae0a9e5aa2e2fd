"""One batch: its records, its result, and the state of its attempts.

A batch belongs to one partition's queue. While it is open, callers' threads append to it under
the accumulator's lock; once sealed, it is the I/O thread's alone. `result` is shared for good.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Sequence
from typing import TYPE_CHECKING, Final, TypeAlias, cast

from pyclient.errors import KafkaError
from pyclient.producer.batch_result import BatchResult
from pyclient.records.builder import BatchBuilder

if TYPE_CHECKING:
    from pyclient.producer.buffer_pool import Buffer, BufferPool
    from pyclient.producer.partition_queue import PartitionQueue

BuilderFactory: TypeAlias = Callable[[bytearray], BatchBuilder]
"""Makes a builder over a buffer, with the producer's codec and level."""

DUE_NOW: Final = -math.inf
_NOT_YET: Final = math.inf


class ProducerBatch:
    """Records of one partition that are sent, retried and acknowledged together.

    Attributes:
        created_ms: when its first record came; linger and delivery time run from here.
        due_ms: not to be sent before: the end of linger, or of a retry's back-off.
        buffer_count: how many buffers it has got.
        kept: what it holds in place of its buffers.
        position: the count of records before it in its queue, which orders batches.
        attempts: how many sends have failed.
        number: the count of records before it in this partition and epoch; None until it is
            drained for the first time, and always without idempotence. What goes over the wire
            is this number modulo 2^31.
        maybe_written: an attempt ended in such a way that the broker may have the records.
        is_on_wire: a request that holds it is under way: its buffers are not to be touched.
        is_compressing: the thread that filled it up compresses it: likewise.
        is_abandoned: it failed while that thread was at work, which is to give the buffers back.
        last_error: why the last attempt failed, for the message if time runs out.
    """

    __slots__ = (
        "attempts",
        "buffer_count",
        "builder",
        "created_ms",
        "drained_ms",
        "due_ms",
        "is_abandoned",
        "is_compressing",
        "is_on_wire",
        "kept",
        "last_error",
        "maybe_written",
        "number",
        "position",
        "queue",
        "record_count",
        "result",
        "spare",
    )

    def __init__(
        self,
        queue: PartitionQueue,
        builder: BatchBuilder,
        result: BatchResult,
        created_ms: float,
        due_ms: float,
    ) -> None:
        self.queue = queue
        self.builder = builder
        self.result = result
        self.created_ms = created_ms
        self.due_ms = due_ms
        self.drained_ms = created_ms
        self.buffer_count = 1
        self.kept: memoryview | None = None
        self.spare: list[bytearray] = []
        self.position = 0  # set by the queue
        self.attempts = 0
        self.record_count = 0  # known once sealed
        self.number: int | None = None
        self.maybe_written = False
        self.is_on_wire = False
        self.is_compressing = False
        self.is_abandoned = False
        self.last_error: KafkaError | None = None

    @property
    def is_done(self) -> bool:
        """Whether the outcome is known."""
        return self.result.is_done

    @property
    def size_in_bytes(self) -> int:
        """On the wire; before it is closed, what it would be without compression."""
        return self.builder.size_in_bytes if self.builder.is_closed else self.builder.raw_size

    @property
    def next_number(self) -> int:
        """The number of the batch that follows."""
        assert self.number is not None
        return self.number + self.record_count

    def seal(self) -> None:
        """Accept no more records, and end the linger."""
        self.builder.seal()
        self.record_count = self.builder.record_count
        self.due_ms = DUE_NOW

    def begin_compressing(self) -> None:
        """Keep the sealed batch from being sent meanwhile. Under the accumulator's lock."""
        self.due_ms = _NOT_YET
        self.is_compressing = True

    def compress(self, pool: BufferPool) -> None:
        """Compress on the thread that filled the batch, so that `close` is quick.

        It gives its buffers back at once: it may have to wait for long.
        """
        parts: Sequence[memoryview] = self.builder.close()
        pool.exchange(self, parts[1])

    def take_unused(self) -> list[bytearray]:
        """Take out buffers that were lent for growth and not used."""
        unused = cast(list[bytearray], self.builder.release_unused())
        self.buffer_count -= len(unused)
        return unused

    def close(self, pool: BufferPool) -> Sequence[memoryview]:
        """The batch as it goes over the wire.

        While memory is short, a batch that leaves most of its buffer empty, or is compressed,
        gives the buffer back and keeps what it needs. Otherwise a thousand partitions with a few
        records each would hold all memory while their batches are on the wire, so that the next
        ones got even fewer records.
        """
        is_short = pool.is_short
        is_sparse = is_short and 2 * self.builder.raw_size <= pool.pooled_size
        parts: Sequence[memoryview] = self.builder.close(detach=is_sparse)
        if is_short and self.kept is None and self.builder.is_detached:
            pool.exchange(self, parts[1])
        return parts

    def release_to(self, buffers: list[Buffer]) -> None:
        """Add the batch's buffers to the list, each once."""
        self.builder.release_to(buffers)

    def take_buffers(self) -> list[Buffer]:
        """Take out the buffers for the pool, each once; the batch is not read after this."""
        buffers: list[Buffer] = self.builder.release()
        buffers += self.spare
        self.spare = []
        if self.kept is not None:
            buffers.append(self.kept)
            self.kept = None
        return buffers

    def __repr__(self) -> str:
        return (
            f"<ProducerBatch {self.queue.topic_partition} records={self.builder.record_count}"
            f" number={self.number} attempts={self.attempts}>"
        )
