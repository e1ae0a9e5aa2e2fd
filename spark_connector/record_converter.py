"""Between Kafka's records and Spark's rows, in Arrow columns; the JVM connector's schema."""

from collections.abc import Iterator
from typing import Any, Final

import pyarrow as pa
import pyarrow.compute as pc
from pyspark.sql.types import (
    ArrayType,
    BinaryType,
    DataType,
    IntegerType,
    StringType,
    StructField,
    StructType,
)

_SOURCE_SCHEMA: Final = (
    "key binary, value binary, topic string, partition int, offset bigint, "
    "timestamp timestamp, timestampType int"
)
_HEADERS: Final = "headers array<struct<key: string, value: binary>>"
_HEADERS_TYPE: Final = ArrayType(
    StructType([StructField("key", StringType()), StructField("value", BinaryType())])
)
_SINK_TYPES: Final[dict[str, tuple[DataType, ...]]] = {
    "topic": (StringType(),),
    "key": (StringType(), BinaryType()),
    "value": (StringType(), BinaryType()),
    "headers": (_HEADERS_TYPE,),
    "partition": (IntegerType(),),
}


def source_schema(*, include_headers: bool) -> str:
    """The columns of the source, as DDL."""
    return f"{_SOURCE_SCHEMA}, {_HEADERS}" if include_headers else _SOURCE_SCHEMA


def check_sink_schema(schema: StructType, topic: str | None) -> None:
    """Refuse rows that can't become records, before any task starts.

    Raises:
        ValueError: a column is missing, or has a type that Kafka has no place for.
    """
    names = schema.fieldNames()
    if topic is None and "topic" not in names:
        raise ValueError(
            "topic option required when no 'topic' attribute is present. "
            "Use the topic option for setting a topic."
        )
    if "value" not in names:
        raise ValueError("Required attribute 'value' not found.")
    for column in schema.fields:
        allowed = _SINK_TYPES.get(column.name)
        if allowed is None:
            continue  # the JVM connector ignores further columns too
        if not any(_same_shape(column.dataType, one) for one in allowed):
            wanted = " or ".join(one.simpleString() for one in allowed)
            raise ValueError(
                f"{column.name} attribute unsupported type {column.dataType.simpleString()}. "
                f"{column.name} must be a {wanted}"
            )


def _same_shape(given: DataType, wanted: DataType) -> bool:
    # By their names: nullability, which differs from query to query, does not matter.
    return given.simpleString() == wanted.simpleString()


def source_batches(
    table: pa.Table | None, end: int, *, include_headers: bool
) -> Iterator[pa.RecordBatch]:
    """A poll's columns in the source's schema, without the rows at or behind offset `end`."""
    if table is None or not table.num_rows:
        return
    if table["offset"][-1].as_py() >= end:
        table = table.filter(pc.less(table["offset"], end))
    columns = {
        "key": table["key"],
        "value": table["value"],
        "topic": table["topic"].cast(pa.string()),
        "partition": table["partition"],
        "offset": table["offset"],
        "timestamp": table["timestamp"].cast(pa.timestamp("us", tz="UTC")),
        "timestampType": table["timestamp_type"],
    }
    if include_headers:
        headers = table["headers"]
        some = pc.greater(pc.list_value_length(headers), 0)
        columns["headers"] = pc.if_else(some, headers, pa.scalar(None, headers.type))
    yield from pa.table(columns).to_batches()


class SinkColumns:
    """One Arrow batch of rows to write."""

    def __init__(self, batch: pa.RecordBatch, topic: str | None) -> None:
        self._columns = {
            name: batch.column(name).to_pylist()
            for name in _SINK_TYPES
            if name in batch.schema.names
        }
        self._topic = topic
        self._count = batch.num_rows

    def rows(self) -> Iterator[tuple[str, dict[str, Any]]]:
        """Each row's topic, and the rest as the keyword arguments of `KafkaProducer.send`."""
        absent = [None] * self._count
        columns = self._columns
        topics = (
            columns.get("topic", absent) if self._topic is None else [self._topic] * self._count
        )
        for topic, key, value, headers, partition in zip(
            topics,
            columns.get("key", absent),
            columns["value"],
            columns.get("headers", absent),
            columns.get("partition", absent),
            strict=True,
        ):
            if topic is None:
                raise ValueError(
                    "null topic present in the data. Use the topic option for setting a topic."
                )
            row = {"key": _bytes(key), "value": _bytes(value), "partition": partition}
            if headers:
                row["headers"] = [(header["key"], header["value"]) for header in headers]
            yield topic, row


def _bytes(value: str | bytes | None) -> bytes | None:
    return value.encode() if isinstance(value, str) else value
