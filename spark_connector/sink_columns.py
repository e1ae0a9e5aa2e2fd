"""From Spark's rows to Kafka's records: the sink's columns, and one Arrow batch of them.

Columns stay in Arrow's memory from Spark to the wire; there is no Python object per row.
"""

from typing import Final

import pyarrow as pa
from pyspark.sql.types import (
    ArrayType,
    BinaryType,
    DataType,
    IntegerType,
    StringType,
    StructField,
    StructType,
    TimestampType,
)

_HEADERS: Final = ArrayType(
    StructType([StructField("key", StringType()), StructField("value", BinaryType())])
)
_TYPES: Final[dict[str, tuple[DataType, ...]]] = {
    "topic": (StringType(),),
    "key": (StringType(), BinaryType()),
    "value": (StringType(), BinaryType()),
    "headers": (_HEADERS,),
    "partition": (IntegerType(),),
    "timestamp": (TimestampType(),),
}


def check_sink_schema(schema: StructType, topic: str | None, *, include_timestamp: bool) -> None:
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
    if include_timestamp and "timestamp" not in names:
        raise ValueError("Option 'includeTimestamp' is true, and there is no column 'timestamp'")
    for column in schema.fields:
        allowed = _TYPES.get(column.name)
        if allowed is None or (column.name == "timestamp" and not include_timestamp):
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


def sink_columns(
    batch: pa.RecordBatch, topic: str | None, *, include_timestamp: bool
) -> pa.RecordBatch:
    """The columns of a batch that `KafkaProducer.send_arrow` takes.

    Raises:
        ValueError: a row has no topic.
    """
    columns = {}
    for name in _TYPES:
        if name not in batch.schema.names:
            continue
        column = batch.column(name)
        if name == "topic":
            if topic is not None:
                continue  # the option beats the column
            if column.null_count:
                raise ValueError(
                    "null topic present in the data. Use the topic option for setting a topic."
                )
        if name == "timestamp" and not include_timestamp:
            continue
        columns[name] = _with_legible_names(column) if name == "headers" else column
    return pa.record_batch(columns)


def _with_legible_names(headers: pa.ListArray) -> pa.ListArray:
    """Replace what is not UTF-8 in the names of headers, as Java does; values stay bytes."""
    items = headers.values
    names = items.field(0)
    try:
        names.validate(full=True)
    except pa.ArrowInvalid:
        decoded = [
            None if name is None else name.decode(errors="replace")
            for name in names.cast(pa.binary()).to_pylist()
        ]
        fields = [pa.array(decoded, pa.string()), items.field(1)]
        items = pa.StructArray.from_arrays(fields, ["key", "value"], mask=items.is_null())
        # The slice has its own offsets; from_arrays() takes no mask for those of a slice.
        kept = pa.ListArray.from_arrays(headers.offsets, items)
        return pa.compute.if_else(headers.is_valid(), kept, pa.scalar(None, kept.type))
    return headers
