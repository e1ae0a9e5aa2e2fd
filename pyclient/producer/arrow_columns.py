"""The columns of `send_arrow`, checked and brought into layouts that rows are read from.

A table, a record batch or an array of values comes in; Arrow's own functions convert what is not
appendable as it is, a column at a time.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import TYPE_CHECKING, Any, Final, NamedTuple

if TYPE_CHECKING:
    import pyarrow

_NAMES: Final = ("value", "key", "topic", "partition", "headers", "timestamp")


class ArrowColumns(NamedTuple):
    """Arrays of one length, as `ArrowRows` takes them."""

    values: pyarrow.Array
    keys: pyarrow.Array | None = None
    headers: tuple[pyarrow.Array, pyarrow.Array, pyarrow.Array] | None = None
    timestamps: pyarrow.Array | None = None
    partitions: pyarrow.Array | None = None
    topics: pyarrow.Array | None = None

    def rows_by_topic(self) -> list[tuple[str, memoryview[int] | None]]:
        """Each topic of the column `topic`, with the numbers of its rows; None for all rows."""
        import pyarrow
        import pyarrow.compute

        assert self.topics is not None
        encoded = self.topics.dictionary_encode()
        names: list[str] = encoded.dictionary.to_pylist()
        if len(names) < 2:
            return [(name, None) for name in names]
        order = pyarrow.compute.sort_indices(encoded.indices)  # which is stable
        counts = pyarrow.compute.value_counts(encoded.indices.take(order))
        numbers = memoryview(order.cast(pyarrow.int32()).buffers()[1]).cast("B").cast("i")
        topics: list[tuple[str, memoryview[int] | None]] = []
        start = 0
        for entry in counts.to_pylist():
            stop = start + entry["counts"]
            topics.append((names[entry["values"]], numbers[start:stop]))
            start = stop
        return topics


def arrow_columns(data: Any, topic: str | None, partition: int | None) -> ArrowColumns:
    """Take the columns out of a table, a record batch, or an array of values.

    Raises:
        TypeError: it is none of these, or a column is of another type.
        ValueError: a column is missing, its name is unknown, or it says what an argument says.
    """
    import pyarrow

    if isinstance(data, pyarrow.Array | pyarrow.ChunkedArray):
        _refuse_missing_topic(topic)
        return ArrowColumns(_bytes(data, "value"))
    if not isinstance(data, pyarrow.Table | pyarrow.RecordBatch):
        raise TypeError(
            "send_arrow() takes a pyarrow Table or RecordBatch, or an array of values, not"
            f" {type(data).__name__}"
        )
    names = data.schema.names
    if set(names) - set(_NAMES) or "value" not in names or len(set(names)) != len(names):
        raise ValueError(
            "send_arrow() takes the column 'value' and, if wanted, 'key', 'topic', 'partition',"
            f" 'headers' and 'timestamp'; not {names}"
        )
    for name, argument in (("topic", topic), ("partition", partition)):
        if name in names and argument is not None:
            raise ValueError(f"{name} is {argument!r}, and there is a column {name!r}: drop one")
    if "topic" not in names:
        _refuse_missing_topic(topic)

    def column(name: str, convert: Callable[[Any, str], Any]) -> Any:
        return convert(_whole(data.column(name)), name) if name in names else None

    return ArrowColumns(
        column("value", _bytes),
        column("key", _bytes),
        column("headers", _headers),
        column("timestamp", _timestamps),
        column("partition", _partitions),
        column("topic", _topics),
    )


def _refuse_missing_topic(topic: str | None) -> None:
    if topic is None:
        raise ValueError("send_arrow() needs a topic, or a column 'topic'")


def _whole(column: Any) -> pyarrow.Array:
    """A column in one piece, and not as a dictionary."""
    import pyarrow

    if isinstance(column, pyarrow.ChunkedArray):
        column = column.combine_chunks()
        if isinstance(column, pyarrow.ChunkedArray):  # beyond 2 GiB
            raise ValueError("a column is larger than Arrow's 2 GiB: send the table in parts")
    return column.dictionary_decode() if pyarrow.types.is_dictionary(column.type) else column


def _bytes(column: Any, name: str) -> pyarrow.Array:
    import pyarrow
    from pyarrow import types

    column = _whole(column)
    kind = column.type
    if any(
        check(kind)
        for check in (
            types.is_binary,
            types.is_string,
            types.is_large_binary,
            types.is_large_string,
        )
    ):
        return column
    if types.is_fixed_size_binary(kind) or types.is_binary_view(kind):
        return column.cast(pyarrow.binary())
    if types.is_string_view(kind):
        return column.cast(pyarrow.string())
    raise TypeError(f"column {name!r} is of {kind}: cast it to binary or string")


def _headers(column: Any, name: str) -> tuple[pyarrow.Array, pyarrow.Array, pyarrow.Array]:
    """The lists, and the names and values that they refer to."""
    import pyarrow
    from pyarrow import types

    if types.is_large_list(column.type):
        column = column.cast(pyarrow.list_(column.type.value_type))
    kind = column.type
    if not (
        types.is_list(kind) and types.is_struct(kind.value_type) and kind.value_type.num_fields == 2
    ):
        raise TypeError(f"column {name!r} is of {kind}, not of list<struct<key, value>>")
    # A header that is null is one without a name, which is refused.
    names, values = (_bytes(_whole(one), name) for one in column.values.flatten())
    if not types.is_string(names.type):
        names = names.cast(pyarrow.string())
    names.validate(full=True)  # which checks UTF-8
    return column, names, values


def _timestamps(column: Any, name: str) -> pyarrow.Array:
    """Milliseconds since 1970; finer ones are cut off."""
    import pyarrow
    from pyarrow import types

    if types.is_timestamp(column.type):
        milliseconds = pyarrow.timestamp("ms", column.type.tz)
        return column.cast(milliseconds, safe=False).cast(pyarrow.int64())
    if types.is_integer(column.type):
        return column.cast(pyarrow.int64())
    raise TypeError(f"column {name!r} is of {column.type}, not of timestamp or int64")


def _partitions(column: Any, name: str) -> pyarrow.Array:
    import pyarrow

    if pyarrow.types.is_integer(column.type):
        return column.cast(pyarrow.int32())
    raise TypeError(f"column {name!r} is of {column.type}, not of int32")


def _topics(column: Any, name: str) -> pyarrow.Array:
    from pyarrow import types

    kind = column.type
    if not (types.is_string(kind) or types.is_large_string(kind) or types.is_string_view(kind)):
        raise TypeError(f"column {name!r} is of {kind}, not of string")
    if column.null_count:
        raise ValueError(f"record {column.is_null().index(True).as_py()} has no topic")
    return column
