"""Splitting ranges into tasks, and a limit among partitions."""

from itertools import pairwise

from hypothesis import given
from hypothesis import strategies as st

from pyclient import TopicPartition
from spark_connector.offset_range_calculator import OffsetRange, limit_by_lag, split_ranges


def ranges(*sizes: int) -> list[OffsetRange]:
    return [OffsetRange(TopicPartition("t", n), 100, 100 + size) for n, size in enumerate(sizes)]


def bounds(split: list[OffsetRange]) -> list[tuple[int, int, int]]:
    return [(one.partition.partition, one.start - 100, one.end - 100) for one in split]


def test_without_limits_only_empty_ranges_go() -> None:
    assert bounds(split_ranges(ranges(5, 0, 3), None, None)) == [(0, 0, 5), (2, 0, 3)]


def test_more_tasks_are_made_of_the_large_ranges() -> None:
    # As the JVM connector splits them: 1 task of the small range, 3 of the large one.
    assert bounds(split_ranges(ranges(1, 100), 4, None)) == [
        (0, 0, 1), (1, 0, 33), (1, 33, 66), (1, 66, 100),
    ]  # fmt: skip


def test_a_range_has_no_more_than_the_maximum() -> None:
    assert bounds(split_ranges(ranges(10), None, 4)) == [(0, 0, 3), (0, 3, 6), (0, 6, 10)]


sizes = st.lists(st.integers(0, 10_000), min_size=1, max_size=8)


@given(sizes, st.none() | st.integers(1, 50), st.none() | st.integers(1, 5000))
def test_parts_make_up_the_whole(
    given_sizes: list[int], least: int | None, most: int | None
) -> None:
    whole = ranges(*given_sizes)
    split = split_ranges(whole, least, most)
    for one in whole:
        parts = [part for part in split if part.partition == one.partition]
        assert sum(part.size for part in parts) == one.size
        assert all(a.end == b.start for a, b in pairwise(parts))
        assert all(part.size > 0 for part in parts)
        assert most is None or all(part.size <= most for part in parts)


@given(sizes, st.integers(1, 20_000))
def test_a_limit_starves_no_partition_and_never_goes_too_far(
    given_sizes: list[int], limit: int
) -> None:
    start = {one.partition: one.start for one in ranges(*given_sizes)}
    end = {one.partition: one.end for one in ranges(*given_sizes)}
    limited = limit_by_lag(start, end, limit)
    for one, offset in limited.items():
        assert start[one] <= offset <= end[one]
        assert offset > start[one] or end[one] == start[one]
    assert sum(limited.values()) - sum(start.values()) <= limit + len(start)
    if sum(given_sizes) <= limit:
        assert limited == end
