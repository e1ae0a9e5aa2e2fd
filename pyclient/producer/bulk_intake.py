"""`send_many` and `send_arrow`: many records in one call, whole runs of them in one append.

Rows with keys are brought in the order of their partitions first; within a partition they keep
their own. What cannot be sent in bulk (serializers, a partitioner or interceptors see records one
by one) goes row by row, with the same result. Any thread may use it.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from itertools import groupby
from typing import TYPE_CHECKING, Any, NamedTuple

from pyclient import _twin
from pyclient.errors import KafkaError, RecordTooLargeError
from pyclient.producer.delivery import FutureRecordMetadata
from pyclient.producer.sent_records import Rows, Run, SentRecords
from pyclient.records.builder import BatchBuilder
from pyclient.serialization import Bytes

if TYPE_CHECKING:
    import pyarrow

    from pyclient.producer.partition_queue import TopicQueues
    from pyclient.producer.record_intake import RecordIntake

Send = Callable[..., FutureRecordMetadata]


class _Slice(NamedTuple):
    """Rows of one partition, in the order in which they are sent."""

    partition: int | None  # None for the sticky one
    length: int
    append: Callable[[BatchBuilder, int], range]
    row: Callable[[int], tuple[Bytes | None, Bytes | None]]  # a key and a value


class BulkIntake:
    """Takes many records in at once, for one producer."""

    def __init__(self, intake: RecordIntake, send: Send, in_bulk: bool) -> None:
        """Take nothing yet.

        Args:
            intake: the way of a single record.
            send: what `KafkaProducer.send` is.
            in_bulk: whether records may be appended without being seen one by one.
        """
        self._intake = intake
        self._send = send
        self._in_bulk = in_bulk

    def send_many(
        self,
        topic: str,
        values: Sequence[Any],
        keys: Sequence[Any] | None,
        partition: int | None,
        timestamp_ms: int | None,
    ) -> SentRecords:
        """See `KafkaProducer.send_many`."""
        if keys is not None and len(keys) != len(values):
            raise ValueError(f"{len(values)} values, but {len(keys)} keys")
        if not self._in_bulk:
            return self._one_by_one(topic, list(values), keys, partition, timestamp_ms)
        value_list = [_checked("value", value) for value in values]
        key_list = None if keys is None else [_checked("key", key) for key in keys]
        for row, value in enumerate(value_list):
            if value is None and (key_list is None or key_list[row] is None):
                raise ValueError(f"record {row} has neither a key nor a value")
        timestamp_ms = self._intake.timestamp(timestamp_ms)

        def sizes(row: int) -> tuple[int, int]:
            return _size(None if key_list is None else key_list[row]), _size(value_list[row])

        def slices(queues: TopicQueues) -> tuple[list[_Slice], list[int] | None]:
            if partition is not None or key_list is None or not _any_key(key_list):
                return [_list_slice(partition, timestamp_ms, value_list, key_list)], None
            count = queues.partition_count
            # Among keyed ones, those without a key have one partition for the whole call: if they
            # went where the sticky partitioner is by then, they could overtake neighbours there.
            sticky = queues.sticky_queue.partition
            partition_of = _twin.partition_for_key
            of_row = [sticky if key is None else partition_of(key, count) for key in key_list]
            order = sorted(range(len(of_row)), key=of_row.__getitem__)  # which is stable
            parts = [
                _list_slice(
                    number,
                    timestamp_ms,
                    [value_list[row] for row in rows],
                    [key_list[row] for row in rows],
                )
                for number, group in groupby(order, key=of_row.__getitem__)
                for rows in (list(group),)
            ]
            return parts, order

        return self._take(topic, partition, len(value_list), timestamp_ms, slices, sizes)

    def send_arrow(
        self, topic: str, data: Any, partition: int | None, timestamp_ms: int | None
    ) -> SentRecords:
        """See `KafkaProducer.send_arrow`."""
        values, keys = _columns(data)
        if not self._in_bulk:
            key_list = None if keys is None else keys.to_pylist()
            return self._one_by_one(topic, values.to_pylist(), key_list, partition, timestamp_ms)
        timestamp_ms = self._intake.timestamp(timestamp_ms)
        empty = values.is_null() if keys is None else _both_null(values, keys)
        if (row := empty.index(True).as_py()) >= 0:
            raise ValueError(f"record {row} has neither a key nor a value")

        def sizes(row: int) -> tuple[int, int]:
            key = None if keys is None else keys[row].as_buffer()
            return _size(key), _size(values[row].as_buffer())

        def slices(queues: TopicQueues) -> tuple[list[_Slice], Sequence[int] | None]:
            if partition is not None or keys is None or keys.null_count == len(keys):
                return [_arrow_slice(partition, timestamp_ms, values, keys)], None
            return _by_partition(values, keys, queues, timestamp_ms)

        return self._take(topic, partition, len(values), timestamp_ms, slices, sizes)

    def _take(
        self,
        topic: str,
        partition: int | None,
        count: int,
        timestamp_ms: int,
        slices: Callable[[TopicQueues], tuple[list[_Slice], Sequence[int] | None]],
        sizes: Callable[[int], tuple[int, int]],
    ) -> SentRecords:
        intake = self._intake
        runs: list[Run] = []
        order: Sequence[int] | None = None
        if count:
            try:
                queues, max_block_ms = intake.find_queues(topic, partition)
            except KafkaError as error:
                runs.append(Run(intake.refuse(error, topic, partition), 0, count))
            else:
                parts, order = slices(queues)
                for part in parts:
                    self._append(queues, part, timestamp_ms, max_block_ms, runs)
        return SentRecords(Rows(count, timestamp_ms, order, sizes), runs)

    def _append(
        self,
        queues: TopicQueues,
        part: _Slice,
        timestamp_ms: int,
        max_block_ms: float,
        runs: list[Run],
    ) -> None:
        intake = self._intake
        accumulator = intake.accumulator
        row = 0
        while row < part.length:
            some = accumulator.append_some(queues, part.partition, part.append, row)
            if some is not None:
                result, indexes = some
                runs.append(Run(result, indexes.start, len(indexes)))
                row += len(indexes)
                continue
            try:
                # Through the ordinary way, which makes room for those behind it.
                result, index = accumulator.append(
                    queues, part.partition, timestamp_ms, *part.row(row), (), max_block_ms
                )
                runs.append(Run(result, index, 1))
                row += 1
            except KafkaError as error:
                # A record that is too large fails alone; what stops one now stops all.
                count = 1 if isinstance(error, RecordTooLargeError) else part.length - row
                runs.append(Run(intake.failed(error, queues.name, part.partition), 0, count))
                row += count

    def _one_by_one(
        self,
        topic: str,
        values: Sequence[Any],
        keys: Sequence[Any] | None,
        partition: int | None,
        timestamp_ms: int | None,
    ) -> SentRecords:
        timestamp_ms = self._intake.timestamp(timestamp_ms)
        runs: list[Run] = []
        lengths: list[tuple[int, int]] = []
        for row, value in enumerate(values):
            key = None if keys is None else keys[row]
            try:
                future = self._send(topic, value, key, None, partition, timestamp_ms)
                runs.append(Run(future.batch_result, future.batch_index, 1))
                lengths.append((future.key_size, future.value_size))
            except KafkaError as error:
                alone = isinstance(error, RecordTooLargeError)
                if row == 0 and not alone:
                    raise
                # As in bulk: what stops one now stops all.
                count = 1 if alone else len(values) - row
                runs.append(Run(self._intake.failed(error, topic, partition), 0, count))
                lengths += [(-1, -1)] * count
                if not alone:
                    break
        return SentRecords(Rows(len(values), timestamp_ms, None, lengths.__getitem__), runs)


def _checked(name: str, content: Any) -> bytes | None:
    if content is None or type(content) is bytes:
        return content
    if isinstance(content, bytes | bytearray | memoryview):
        return bytes(content)  # nothing may run between two appends of a run
    raise TypeError(
        f"a {name} is a {type(content).__name__}, not bytes: encode it, or set {name}_serializer"
    )


def _size(content: Any) -> int:
    return -1 if content is None else len(content)


def _list_slice(
    partition: int | None,
    timestamp_ms: int,
    values: list[bytes | None],
    keys: list[bytes | None] | None,
) -> _Slice:
    return _Slice(
        partition,
        len(values),
        lambda builder, start: builder.append_many(timestamp_ms, values, keys, start),
        lambda row: (None if keys is None else keys[row], values[row]),
    )


def _arrow_slice(
    partition: int | None, timestamp_ms: int, values: pyarrow.Array, keys: pyarrow.Array | None
) -> _Slice:
    return _Slice(
        partition,
        len(values),
        lambda builder, start: builder.append_arrow(timestamp_ms, values, keys, start),
        lambda row: (None if keys is None else _item(keys, row), _item(values, row)),
    )


def _item(column: pyarrow.Array, row: int) -> bytes | None:
    buffer = column[row].as_buffer()
    return None if buffer is None else buffer.to_pybytes()


def _any_key(keys: list[bytes | None]) -> bool:
    return any(key is not None for key in keys)


def _by_partition(
    values: pyarrow.Array, keys: pyarrow.Array, queues: TopicQueues, timestamp_ms: int
) -> tuple[list[_Slice], Sequence[int]]:
    import pyarrow
    import pyarrow.compute

    raw = _twin.partitions_of_keys(keys, queues.partition_count)
    buffers = [None, pyarrow.py_buffer(raw)]
    of_row = pyarrow.Array.from_buffers(pyarrow.int32(), len(keys), buffers)
    if keys.null_count:
        sticky = pyarrow.scalar(queues.sticky_queue.partition, pyarrow.int32())
        of_row = pyarrow.compute.if_else(keys.is_null(), sticky, of_row)
    order = pyarrow.compute.sort_indices(of_row)  # which is stable
    values, keys = values.take(order), keys.take(order)
    counts = pyarrow.compute.value_counts(of_row.take(order))
    parts = []
    start = 0
    for entry in counts.to_pylist():
        number, count = entry["values"], entry["counts"]
        parts.append(
            _arrow_slice(
                number,
                timestamp_ms,
                values.slice(start, count),
                keys.slice(start, count),
            )
        )
        start += count
    return parts, memoryview(order.buffers()[1]).cast("B").cast("Q")[: len(order)]


def _columns(data: Any) -> tuple[pyarrow.Array, pyarrow.Array | None]:
    """The values and keys of a table, a record batch, or an array of values.

    Raises:
        TypeError: it is none of these, or a column is not of bytes or text.
        ValueError: a column is missing, or its name is unknown.
    """
    import pyarrow

    if isinstance(data, pyarrow.Array | pyarrow.ChunkedArray):
        return _whole(data, "value"), None
    if not isinstance(data, pyarrow.Table | pyarrow.RecordBatch):
        raise TypeError(
            "send_arrow() takes a pyarrow Table or RecordBatch with the columns 'value' and 'key',"
            f" or an array of values, not {type(data).__name__}"
        )
    names = data.schema.names
    unknown = sorted(set(names) - {"key", "value"})
    if unknown or "value" not in names or len(set(names)) != len(names):
        raise ValueError(
            f"send_arrow() takes the columns 'value' and, if there are keys, 'key'; not {names}"
        )
    keys = _whole(data.column("key"), "key") if "key" in names else None
    return _whole(data.column("value"), "value"), keys


def _whole(column: Any, name: str) -> pyarrow.Array:
    """A column in one piece, of a type that can be appended as it is."""
    import pyarrow

    if isinstance(column, pyarrow.ChunkedArray):
        column = column.combine_chunks()
    if pyarrow.types.is_dictionary(column.type):
        column = column.dictionary_decode()
    kind = column.type
    if any(check(kind) for check in _appendable()):
        return column
    if pyarrow.types.is_fixed_size_binary(kind) or pyarrow.types.is_binary_view(kind):
        return column.cast(pyarrow.binary())
    if pyarrow.types.is_string_view(kind):
        return column.cast(pyarrow.string())
    raise TypeError(f"column {name!r} is of {kind}: cast it to binary or string")


def _appendable() -> tuple[Callable[[pyarrow.DataType], bool], ...]:
    from pyarrow import types

    return types.is_binary, types.is_string, types.is_large_binary, types.is_large_string


def _both_null(values: pyarrow.Array, keys: pyarrow.Array) -> pyarrow.Array:
    import pyarrow.compute

    return pyarrow.compute.and_(values.is_null(), keys.is_null())
