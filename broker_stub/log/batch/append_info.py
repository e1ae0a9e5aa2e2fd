"""One append: where its batches come from, their offsets, and its result. No state."""

from collections.abc import Sequence
from enum import Enum
from typing import NamedTuple

from broker_stub.log.batch.header import BatchHeader, put_base_offset, put_leader_epoch
from broker_stub.log.log_config import INT64_MAX, LogConfig
from broker_stub.log.producers.producer_state import RememberedBatch


class AppendOrigin(Enum):
    """Where the batches come from, which decides what is checked."""

    CLIENT = "client"
    """A producer: everything is checked, including sequences."""

    COORDINATOR = "coordinator"
    """The broker itself: may write several batches at once, and control records."""


class AppendInfo(NamedTuple):
    """The result of an append."""

    first_offset: int
    last_offset: int
    log_append_time_ms: int
    """-1 if records keep the timestamps of their producer (CreateTime)."""
    log_start_offset: int
    duplicate: bool = False
    """Whether the batch was written before: nothing was written now, the offsets are the old."""
    flush_due: bool = False
    """`flush.messages` is reached: the caller has the log flushed in the background."""


class BatchPlace(NamedTuple):
    """What the indexes need to know about an appended batch."""

    last_offset: int
    max_timestamp: int
    size: int

    @classmethod
    def of(cls, header: BatchHeader) -> "BatchPlace":
        """The place of a batch that has its final offsets."""
        return cls(header.last_offset, header.max_timestamp, header.size)


def number_batches(
    view: memoryview, headers: Sequence[BatchHeader], first_offset: int, leader_epoch: int
) -> list[BatchPlace]:
    """Write offsets and leader epoch into the batches, and return their places."""
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
    """The result of an append whose batch was written before.

    If acks wait for a flush and the first attempt is not flushed yet, the retry waits too.
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
