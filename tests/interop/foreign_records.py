"""Records as they go into any client and come out of it again."""

from collections.abc import Iterable
from typing import NamedTuple

TIMEOUT_SECONDS = 30


class Record(NamedTuple):
    """What goes in and comes out again."""

    partition: int
    key: bytes | None
    value: bytes | None
    headers: tuple[tuple[str, bytes], ...]
    timestamp_ms: int


def by_partition(records: Iterable[Record], partitions: int) -> dict[int, list[Record]]:
    """The records of each partition, in their order."""
    found: dict[int, list[Record]] = {index: [] for index in range(partitions)}
    for one in records:
        found[one.partition].append(one)
    return found
