"""Arithmetic on offset ranges: how far a micro-batch may go, and which tasks read it."""

from dataclasses import dataclass

from pyclient import TopicPartition
from spark_connector.offsets import PartitionOffsets


@dataclass(frozen=True)
class OffsetRange:
    """Offsets of one partition, from `start` up to but without `end`."""

    partition: TopicPartition
    start: int
    end: int

    @property
    def size(self) -> int:
        """How many offsets it spans; compaction may have left fewer records."""
        return max(0, self.end - self.start)


def limit_by_lag(start: PartitionOffsets, end: PartitionOffsets, limit: int) -> PartitionOffsets:
    """The end offsets of a batch of about `limit` offsets, shared out in proportion to lag.

    A partition with any lag moves by one at least, so that none starves behind busy ones.
    """
    lags = {one: max(0, offset - start.get(one, offset)) for one, offset in end.items()}
    total = sum(lags.values())
    if total <= limit:
        return end
    limited = {}
    for one, offset in end.items():
        share = limit * lags[one] // total
        step = max(share, 1) if lags[one] else 0
        limited[one] = min(offset, start.get(one, offset) + step)
    return limited


def non_empty_ranges(start: PartitionOffsets, end: PartitionOffsets) -> list[OffsetRange]:
    """One range per partition that has something to read, in a fixed order."""
    ranges = (OffsetRange(one, start[one], end[one]) for one in sorted(end) if one in start)
    return [one for one in ranges if one.size > 0]
