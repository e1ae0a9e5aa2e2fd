"""One append: who wrote the batches, which offsets they get, what the caller is told. No state."""

from collections.abc import Sequence
from enum import Enum
from typing import NamedTuple

from broker_stub.log.batch.header import BatchHeader, put_base_offset, put_leader_epoch
from broker_stub.log.log_config import INT64_MAX, LogConfig
from broker_stub.log.producers.producer_state import RememberedBatch


class AppendOrigin(Enum):
    """Who wrote the batches, and so what is checked."""

    CLIENT = "client"
    """A producer: everything is checked, and sequences must follow each other."""

    COORDINATOR = "coordinator"
    """The broker itself, which may write several batches at once, and control records."""


class AppendInfo(NamedTuple):
    """Where batches were written, or were written before."""

    first_offset: int
    last_offset: int
    log_append_time_ms: int
    """-1 where records keep the time of their producer."""
    log_start_offset: int
    duplicate: bool = False
    """A retry: nothing was written now, and the offsets are those of the first time."""
    flush_due: bool = False
    """`flush.messages` is reached: the caller flushes, off the serving thread."""


class BatchPlace(NamedTuple):
    """What the indexes need to know of an appended batch."""

    last_offset: int
    max_timestamp: int
    size: int

    @classmethod
    def of(cls, header: BatchHeader) -> "BatchPlace":
        """That of a batch which has its offsets."""
        return cls(header.last_offset, header.max_timestamp, header.size)


def number_batches(
    view: memoryview, headers: Sequence[BatchHeader], first_offset: int, leader_epoch: int
) -> list[BatchPlace]:
    """Write offsets and leader epoch into the batches; where they will be."""
    places = []
    position, offset = 0, first_offset
    for header in headers:
        put_base_offset(view, position, offset)
        put_leader_epoch(view, position, leader_epoch)
        last_offset = offset + header.last_offset_delta
        places.append(BatchPlace(last_offset, header.max_timestamp, header.size))
        position += header.size
        offset = last_offset + 1
    return places


def duplicate_append(
    batch: RememberedBatch, config: LogConfig, log_start_offset: int, recovery_point: int
) -> AppendInfo:
    """The answer to a retry of a batch that was written before.

    Its flush may not be over; where acks wait for one, the retry's does, too.
    """
    is_unsynced = batch.last_offset >= recovery_point
    return AppendInfo(
        batch.first_offset,
        batch.last_offset,
        batch.timestamp if config.uses_append_time else -1,
        log_start_offset,
        duplicate=True,
        flush_due=is_unsynced and config.flush_messages != INT64_MAX,
    )
