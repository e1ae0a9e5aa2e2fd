"""Checks the arguments of `KafkaConsumer`'s methods."""

import re
from collections.abc import Iterable, Mapping

from pyclient.types import OffsetAndMetadata, TopicPartition

_TOPIC_NAME = re.compile(r"(?!\.{1,2}$)[a-zA-Z0-9._-]{1,249}")


def checked_topics(topics: Iterable[str]) -> list[str]:
    """Topics, by names that Kafka allows."""
    if isinstance(topics, str):
        raise TypeError(f"topics are given as a list of names, not as {topics!r}")
    names = list(topics)
    for name in names:
        if not isinstance(name, str) or not _TOPIC_NAME.fullmatch(name):
            raise ValueError(f"{name!r} is not a topic's name")
    return names


def check_partitions(partitions: Iterable[TopicPartition]) -> None:
    """Raise for partitions that are not `TopicPartition`."""
    for partition in partitions:
        if not isinstance(partition, TopicPartition):
            raise TypeError(f"partitions are given as TopicPartition, not {partition!r}")


def check_committable(offsets: Mapping[TopicPartition, OffsetAndMetadata]) -> None:
    """Raise for offsets that are not `OffsetAndMetadata`."""
    check_partitions(offsets)
    for offset in offsets.values():
        if not isinstance(offset, OffsetAndMetadata):
            raise TypeError(f"offsets are committed as OffsetAndMetadata, not {offset!r}")


def checked_seek(offset: int | OffsetAndMetadata) -> tuple[int, int]:
    """An offset to seek to, and its leader epoch or -1; raises ValueError if it is none."""
    leader_epoch = -1
    if isinstance(offset, OffsetAndMetadata):
        offset, _, leader_epoch = offset
    if not isinstance(offset, int) or offset < 0:
        raise ValueError(f"an offset must be a non-negative integer, not {offset!r}")
    return offset, leader_epoch


def checked_times(timestamps: Mapping[TopicPartition, int]) -> dict[TopicPartition, int]:
    """Timestamps to look up; raises ValueError for negative ones."""
    times = {partition: int(time_ms) for partition, time_ms in timestamps.items()}
    if any(time_ms < 0 for time_ms in times.values()):
        raise ValueError("a timestamp must not be negative: it is in milliseconds since 1970")
    return times


def checked_record_count(count: int | None, default: int) -> int:
    """How many records a poll may return."""
    if count is None:
        return default
    if not isinstance(count, int):
        raise TypeError(f"max_records is an integer, not {count!r}")
    if count <= 0:
        raise ValueError(f"max_records must be positive, not {count}")
    return count
