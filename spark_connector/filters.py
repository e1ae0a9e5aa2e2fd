"""What a query's filters on topic, partition, offset and timestamp leave to read.

Filters only narrow what is fetched. Spark applies every one of them to the rows again, so a
narrowing that keeps too much is never wrong.
"""

from collections.abc import Iterable
from dataclasses import dataclass, replace
from datetime import UTC, datetime
from typing import Any, Final

from pyspark.sql.datasource import (
    EqualTo,
    Filter,
    GreaterThan,
    GreaterThanOrEqual,
    In,
    LessThan,
    LessThanOrEqual,
)

from pyclient import TopicPartition
from spark_connector.offset_range_calculator import OffsetRange
from spark_connector.offset_reader import OffsetReader
from spark_connector.offsets import LATEST

_END: Final = 2**63 - 1


@dataclass(frozen=True)
class Interval:
    """Whole numbers from `low` up to but without `high`."""

    low: int = 0
    high: int = _END

    def and_(self, kind: type[Filter], value: int) -> "Interval":
        """With one more comparison."""
        low, high = self.low, self.high
        if kind in (EqualTo, GreaterThan, GreaterThanOrEqual):
            low = max(low, value + (kind is GreaterThan))
        if kind in (EqualTo, LessThan, LessThanOrEqual):
            high = min(high, value + (kind is not LessThan))
        return Interval(low, high)


@dataclass(frozen=True)
class Wanted:
    """The records that pass the filters are among these."""

    topics: frozenset[str] | None = None
    partitions: frozenset[int] | None = None
    partition_numbers: Interval = Interval()
    offsets: Interval = Interval()
    times_ms: Interval = Interval()

    def has(self, one: TopicPartition) -> bool:
        """Whether a partition can have such records."""
        return (
            (self.topics is None or one.topic in self.topics)
            and (self.partitions is None or one.partition in self.partitions)
            and self.partition_numbers.low <= one.partition < self.partition_numbers.high
        )


def wanted_by(filters: Iterable[Filter]) -> Wanted:
    """What the filters that are understood leave; the others are ignored."""
    wanted = Wanted()
    for one in filters:
        wanted = _narrowed(wanted, one)
    return wanted


def _narrowed(wanted: Wanted, one: Any) -> Wanted:
    column = ".".join(getattr(one, "attribute", ()))
    value = getattr(one, "value", None)
    if isinstance(one, In) or (type(one) is EqualTo and column == "topic"):
        values = frozenset(one.value if isinstance(one, In) else (value,))
        if column == "topic":
            return replace(wanted, topics=values & (wanted.topics or values))
        if column == "partition":
            return replace(wanted, partitions=values & (wanted.partitions or values))
        return wanted
    if type(one) not in (EqualTo, GreaterThan, GreaterThanOrEqual, LessThan, LessThanOrEqual):
        return wanted
    if column == "partition" and isinstance(value, int):
        numbers = wanted.partition_numbers.and_(type(one), value)
        return replace(wanted, partition_numbers=numbers)
    if column == "offset" and isinstance(value, int):
        return replace(wanted, offsets=wanted.offsets.and_(type(one), value))
    if column == "timestamp" and isinstance(value, datetime):
        # Records have milliseconds, Spark compares microseconds: keep the whole millisecond.
        low_ms, rest = divmod(_microseconds(value), 1000)
        kind = LessThanOrEqual if rest and isinstance(one, LessThan) else type(one)
        kind = GreaterThanOrEqual if kind is GreaterThan and rest else kind
        return replace(wanted, times_ms=wanted.times_ms.and_(kind, low_ms))
    return wanted


def _microseconds(value: datetime) -> int:
    # Spark gives a time with a zone, or a naive one in the machine's own.
    aware = value.astimezone(UTC)
    since = aware - datetime(1970, 1, 1, tzinfo=UTC)
    return (since.days * 86_400 + since.seconds) * 1_000_000 + since.microseconds


def narrow(
    ranges: list[OffsetRange], wanted: Wanted, offsets: OffsetReader, max_disorder_ms: int
) -> list[OffsetRange]:
    """Cut ranges with known bounds down to what is wanted.

    The first offset at or after a time is exact, whatever the order of the timestamps. Records
    before the upper bound may come later still: by `max_disorder_ms` at most, the user says.
    """
    ranges = [one for one in ranges if wanted.has(one.partition)]
    times = wanted.times_ms
    starts = ends = {}
    if times.low > 0:
        starts = offsets.first_at_or_after({one.partition: times.low for one in ranges})
    if times.high < _END:
        upper_ms = times.high + max_disorder_ms
        ends = offsets.first_at_or_after({one.partition: upper_ms for one in ranges})
    narrowed = []
    for one in ranges:
        first, last = starts.get(one.partition, 0), ends.get(one.partition, LATEST)
        start = one.end if first < 0 else max(one.start, first, wanted.offsets.low)
        end = min(one.end, wanted.offsets.high, last if last >= 0 else _END)
        if start < end:
            narrowed.append(replace(one, start=start, end=end))
    return narrowed
