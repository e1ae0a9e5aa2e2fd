"""Arithmetic on offset ranges: how far a micro-batch may go, and which tasks read it."""

import math
from collections.abc import Iterable, Iterator
from dataclasses import dataclass, replace

from pyclient import TopicPartition
from spark_connector.offsets import PartitionOffsets


@dataclass(frozen=True)
class OffsetRange:
    """Offsets of one partition, from `start` up to but without `end`.

    In a batch query `start` may be -2 and `end` -1: the task then reads from the first offset to
    the last that there are when it starts.
    """

    partition: TopicPartition
    start: int
    end: int

    @property
    def size(self) -> int:
        """How many offsets it spans; compaction may have left fewer records."""
        return max(0, self.end - self.start)


def limit_by_lag(start: PartitionOffsets, end: PartitionOffsets, limit: int) -> PartitionOffsets:
    """The end offsets of a batch of about `limit` offsets, shared out in proportion to lag.

    A partition with any lag moves by one at least, so that none starves behind busy ones. The
    arithmetic is the JVM connector's, floating point included, so batches have the same bounds.
    """
    lags = {one: max(0, offset - start.get(one, offset)) for one, offset in end.items()}
    total = sum(lags.values())
    if not total:
        return end
    limited = {}
    for one, offset in end.items():
        share = limit * (lags[one] / total)
        step = math.ceil(share) if share < 1 else math.floor(share)
        limited[one] = min(offset, start[one] + step) if lags[one] else offset
    return limited


def split_ranges(
    ranges: Iterable[OffsetRange], min_partitions: int | None, max_records: int | None
) -> list[OffsetRange]:
    """Split large ranges, so that there are more tasks; without empty ranges.

    Args:
        ranges: one for each partition, with known ends.
        min_partitions: about how many ranges there should be at least.
        max_records: the most offsets that a range should span.
    """
    parts = [one for one in ranges if one.size]
    if max_records is not None:
        parts = [part for one in parts for part in _divide(one, -(-one.size // max_records))]
    if min_partitions is None or len(parts) >= min_partitions:
        return parts
    total = sum(one.size for one in parts)
    # Small ranges stay whole; the others share the rest by size.
    whole = [one for one in parts if _share(one.size, total, min_partitions) == 1]
    partitions_of_whole = {one.partition for one in whole}
    rest = total - sum(one.size for one in whole)
    wanted = max(min_partitions - len(whole), 1)
    return [
        part
        for one in parts
        for part in _divide(
            one, 1 if one.partition in partitions_of_whole else _share(one.size, rest, wanted)
        )
    ]


def _share(size: int, total: int, count: int) -> int:
    return max(math.floor(size / total * count + 0.5), 1)


def _divide(whole: OffsetRange, count: int) -> Iterator[OffsetRange]:
    start = whole.start
    for part in range(count):
        end = start + (whole.end - start) // (count - part)
        if end > start:
            yield replace(whole, start=start, end=end)
        start = end
