"""Batches for tests, built by the twin in use."""

from collections.abc import Iterable
from typing import Any

from pyclient import _twin
from pyclient.records.compression import Codec

CODECS = list(Codec)
Record = tuple[int, bytes | None, bytes | None, list[tuple[str, bytes | None]]]
"""Timestamp, key, value, headers."""


def numbered_records(count: int) -> list[Record]:
    """Records that differ in everything, nulls and headers among them."""
    return [
        (
            1_700_000_000_000 + 7 * index,
            None if index % 5 == 4 else b"key-%d" % index,
            None if index % 7 == 6 else b"value-%d " % index * (index % 11),
            [("name", b"%d" % index), ("empty", b""), ("nothing", None)] if index % 3 == 0 else [],
        )
        for index in range(count)
    ]


def build_batch(
    records: Iterable[Record] = numbered_records(3), *, buffer: int = 1 << 20, **options: Any
) -> bytes:
    """A closed batch of these records, as one piece, built in a buffer of that many bytes."""
    builder = _twin.BatchBuilder(bytearray(buffer), **options)
    for record in records:
        assert builder.try_append(*record) >= 0
    return b"".join(builder.close())


def facts(records: Iterable[Any]) -> list[Record]:
    """What `build_batch` was given, of records that were read."""
    return [(record.timestamp, record.key, record.value, record.headers) for record in records]
