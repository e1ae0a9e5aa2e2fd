"""Between Kafka's records and Spark's rows, in Arrow columns; the JVM connector's schema."""

from collections.abc import Iterator
from typing import Final

import pyarrow as pa
import pyarrow.compute as pc

_SOURCE_SCHEMA: Final = (
    "key binary, value binary, topic string, partition int, offset bigint, "
    "timestamp timestamp, timestampType int"
)
_HEADERS: Final = "headers array<struct<key: string, value: binary>>"


def source_schema(*, include_headers: bool) -> str:
    """The columns of the source, as DDL."""
    return f"{_SOURCE_SCHEMA}, {_HEADERS}" if include_headers else _SOURCE_SCHEMA


class MalformedTimestampError(ValueError):
    """A record's timestamp does not fit into Spark's microseconds."""


def source_batches(table: pa.Table, *, include_headers: bool) -> Iterator[pa.RecordBatch]:
    """A poll's columns in the source's schema.

    Raises:
        MalformedTimestampError: a timestamp is too large.
    """
    columns = {
        "key": table["key"],
        "value": table["value"],
        "topic": table["topic"].cast(pa.string()),
        "partition": table["partition"],
        "offset": table["offset"],
        "timestamp": _microseconds(table),
        "timestampType": table["timestamp_type"],
    }
    if include_headers:
        headers = table["headers"]
        some = pc.greater(pc.list_value_length(headers), 0)
        columns["headers"] = pc.if_else(some, headers, pa.scalar(None, headers.type))
    yield from pa.table(columns).to_batches()


def _microseconds(table: pa.Table) -> pa.ChunkedArray:
    try:
        return table["timestamp"].cast(pa.timestamp("us", tz="UTC"))
    except pa.ArrowInvalid:
        times = table["timestamp"].cast(pa.int64())
        limit = (2**63 - 1) // 1000
        row = pc.index(pc.greater(pc.abs_checked(times), limit), True).as_py()
        raise MalformedTimestampError(
            f"[KAFKA_MALFORMED_RECORD_TIMESTAMP] record at topic {table['topic'][row]} "
            f"partition {table['partition'][row]} offset {table['offset'][row]} has timestamp "
            f"value {times[row]}, which overflows Spark's microseconds. Kafka's timestamps are "
            "milliseconds: the producer may write microseconds or nanoseconds"
        ) from None
