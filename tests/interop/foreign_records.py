"""Records as they go into any client and come out of it again."""

from collections.abc import Iterable
from typing import Any, NamedTuple

TIMEOUT_SECONDS = 30


class Record(NamedTuple):
    """A record before it is sent, and as it is read."""

    partition: int
    key: bytes | None
    value: bytes | None
    headers: tuple[tuple[str, bytes], ...]
    timestamp_ms: int

    def send_arguments(self) -> dict[str, Any]:
        """The arguments of `send` in kafka-python and aiokafka."""
        return {**self._asdict(), "headers": list(self.headers)}


def by_partition(records: Iterable[Record], partitions: int) -> dict[int, list[Record]]:
    """The records of each partition, in their order."""
    found: dict[int, list[Record]] = {index: [] for index in range(partitions)}
    for one in records:
        found[one.partition].append(one)
    return found
