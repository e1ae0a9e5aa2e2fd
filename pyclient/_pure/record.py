"""A consumed record: kafka-python's thirteen fields, in a named tuple."""

from collections.abc import Callable
from typing import Any, NamedTuple


class ConsumerRecord(NamedTuple):
    """A record read from a partition.

    `headers` is a list of (str, bytes or None). `checksum` is None except for the legacy formats.
    A size is -1 where the record has no key, value or headers.
    """

    topic: str
    partition: int
    leader_epoch: int
    offset: int
    timestamp: int
    timestamp_type: int
    key: Any
    value: Any
    headers: list[tuple[str, bytes | None]]
    checksum: int | None
    serialized_key_size: int
    serialized_value_size: int
    serialized_header_size: int

    def __hash__(self) -> int:
        return hash((*self[:8], tuple(self.headers), *self[9:]))

    def __reduce__(self) -> tuple[Callable[..., Any], tuple[Any, ...]]:
        from pyclient.records.record import restore_record

        return restore_record, tuple(self)


def deserialized(record: ConsumerRecord, key: object, value: object) -> ConsumerRecord:
    """`record` with another `key` and `value`, and the same serialized sizes."""
    return ConsumerRecord._make((*record[:6], key, value, *record[8:]))
