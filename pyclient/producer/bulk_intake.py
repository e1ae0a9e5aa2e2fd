"""`send_many` and `send_arrow`: many records in one call, whole runs of them in one append.

Rows are brought in the order of their topics and partitions first; within a partition they keep
their own. What cannot be sent in bulk (serializers, a partitioner or interceptors see records one
by one) goes row by row, with the same result. Any thread may use it.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Sequence
from typing import TYPE_CHECKING, Any, NamedTuple, TypeAlias

from pyclient import _twin
from pyclient.errors import KafkaError, RecordTooLargeError
from pyclient.producer.arrow_columns import ArrowColumns, arrow_columns
from pyclient.producer.delivery import FutureRecordMetadata
from pyclient.producer.sent_records import Rows, Run, SentRecords
from pyclient.records.builder import BatchBuilder

if TYPE_CHECKING:
    from pyclient._twin import ArrowRows, ListRows
    from pyclient.producer.partition_queue import TopicQueues
    from pyclient.producer.record_intake import RecordIntake

    BulkRows: TypeAlias = ArrowRows | ListRows

Send = Callable[..., FutureRecordMetadata]
Order: TypeAlias = "memoryview[int] | None"
"""Numbers of rows, as native 32-bit integers; None for all rows as they are."""


class _Part(NamedTuple):
    """Rows of one partition: those of `order[start:stop]`."""

    topic: str
    queues: TopicQueues | None  # None if the topic was refused: `error` tells why
    partition: int | None  # None for the sticky one
    order: Order
    start: int
    stop: int
    max_block_ms: float
    error: KafkaError | None = None


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
        timestamp_ms = self._intake.timestamp(timestamp_ms)
        if not self._in_bulk:
            if keys is not None and len(keys) != len(values):
                raise ValueError(f"{len(values)} values, but {len(keys)} keys")
            return self._one_by_one(
                (topic, value, None if keys is None else keys[row], None, partition, timestamp_ms)
                for row, value in enumerate(list(values))
            )
        rows = _twin.ListRows(timestamp_ms, values, keys)
        _refuse_empty(rows)
        return self._take(rows, [(topic, None)], partition)

    def send_arrow(
        self,
        topic: str | None,
        data: Any,
        partition: int | None,
        timestamp_ms: int | None,
        allow_null: bool,
    ) -> SentRecords:
        """See `KafkaProducer.send_arrow`."""
        timestamp_ms = self._intake.timestamp(timestamp_ms)
        columns = arrow_columns(data, topic, partition)
        rows = _twin.ArrowRows(
            timestamp_ms,
            columns.values,
            columns.keys,
            columns.headers,
            columns.timestamps,
            columns.partitions,
        )
        if not allow_null:
            _refuse_empty(rows)
        if not self._in_bulk:
            return self._one_by_one(_single_sends(columns, rows, topic, partition))
        topics = [(topic, None)] if topic is not None else columns.rows_by_topic()
        return self._take(rows, topics, partition)

    def _take(
        self, rows: BulkRows, topics: Iterable[tuple[str, Order]], partition: int | None
    ) -> SentRecords:
        """Append rows; `topics` has the rows of each topic."""
        self._intake.check_may_send()
        parts: list[_Part] = []
        if rows.length:
            for topic, order in topics:
                parts += self._plan(rows, topic, order, partition)
        runs: list[Run] = []
        for number, part in enumerate(parts):
            stopped = self._append(rows, part, runs)
            if stopped is not None:  # by what stops all
                runs += [self._failed(rest, stopped) for rest in parts[number + 1 :]]
                break
        return SentRecords(Rows(rows.length, _joined(parts), rows.sizes), runs)

    def _plan(self, rows: BulkRows, topic: str, order: Order, partition: int | None) -> list[_Part]:
        """Choose the partitions of a topic's rows; nothing is appended yet."""
        intake = self._intake
        count = rows.length if order is None else len(order)
        named = partition
        if partition is None and (largest := rows.largest_partition(order)) >= 0:
            named = largest
        try:
            queues, max_block_ms = intake.find_queues(topic, named)
        except KafkaError as error:
            intake.refuse(error, topic, partition)  # which may raise
            return [_Part(topic, None, partition, order, 0, count, 0, error)]
        if partition is not None:
            return [_Part(topic, queues, partition, order, 0, count, max_block_ms)]
        # Among keyed ones, those without a key have one partition for the whole call: if they
        # went where the sticky partitioner is by then, they could overtake neighbours there.
        keyless = queues.sticky_queue.partition
        sorted_order, slices = rows.by_partition(queues.partition_count, keyless, order)
        if sorted_order is not order:
            order = memoryview(sorted_order).cast("i")
        return [
            _Part(topic, queues, None if number < 0 else number, order, start, stop, max_block_ms)
            for number, start, stop in slices
        ]

    def _append(self, rows: BulkRows, part: _Part, runs: list[Run]) -> KafkaError | None:
        """Append a part; returns the error if one stops also what comes after it."""
        if part.queues is None:
            assert part.error is not None
            runs.append(self._failed(part, part.error))
            return None
        accumulator = self._intake.accumulator
        at, stop, order = part.start, part.stop, part.order

        def append(builder: BatchBuilder, start: int) -> range:
            return rows.append_to(builder, order, start, stop)

        while at < stop:
            some = accumulator.append_some(part.queues, part.partition, append, at)
            if some is not None:
                result, indexes = some
                runs.append(Run(result, indexes.start, len(indexes)))
                at += len(indexes)
                continue
            try:
                # Through the ordinary way, which makes room for those behind it.
                result, index = accumulator.append(
                    part.queues,
                    part.partition,
                    *rows.record(at if order is None else order[at]),
                    part.max_block_ms,
                )
                runs.append(Run(result, index, 1))
                at += 1
            except RecordTooLargeError as error:  # which fails alone
                runs.append(self._failed(part, error, 1))
                at += 1
            except KafkaError as error:
                runs.append(self._failed(part, error, stop - at))
                return error
        return None

    def _failed(self, part: _Part, error: KafkaError, count: int | None = None) -> Run:
        """Fail all rows of a part, or as many as `count`."""
        result = self._intake.failed(error, part.topic, part.partition)
        return Run(result, 0, part.stop - part.start if count is None else count)

    def _one_by_one(self, sends: Iterable[tuple[Any, ...]]) -> SentRecords:
        """Send rows, given as the arguments of `send`."""
        runs: list[Run] = []
        sizes: list[tuple[int, int, int, int]] = []
        rows = list(sends)
        for row, arguments in enumerate(rows):
            try:
                future = self._send(*arguments)
                runs.append(Run(future.batch_result, future.batch_index, 1))
                sizes.append(
                    (future.timestamp_ms, future.key_size, future.value_size, future.headers_size)
                )
            except KafkaError as error:
                alone = isinstance(error, RecordTooLargeError)
                if row == 0 and not alone:
                    raise
                # As in bulk: what stops one now stops all.
                count = 1 if alone else len(rows) - row
                topic, *_, partition, timestamp_ms = arguments
                runs.append(Run(self._intake.failed(error, topic, partition), 0, count))
                sizes += [(timestamp_ms, -1, -1, -1)] * count
                if not alone:
                    break
        return SentRecords(Rows(len(rows), None, sizes.__getitem__), runs)


def _refuse_empty(rows: BulkRows) -> None:
    if (row := rows.first_empty()) >= 0:
        raise ValueError(f"record {row} has neither a key nor a value")


def _joined(parts: Sequence[_Part]) -> Sequence[int] | None:
    """The numbers of all rows, in the order of the parts; None if that is their own."""
    pieces = [part.order[part.start : part.stop] for part in parts if part.order is not None]
    return memoryview(b"".join(pieces)).cast("i") if pieces else None


def _single_sends(
    columns: ArrowColumns, rows: ArrowRows, topic: str | None, partition: int | None
) -> Iterable[tuple[Any, ...]]:
    """The arguments of `send` for each row; text stays text, for serializers."""
    values = columns.values.to_pylist()
    keys = None if columns.keys is None else columns.keys.to_pylist()
    topics = None if columns.topics is None else columns.topics.to_pylist()
    partitions = None if columns.partitions is None else columns.partitions.to_pylist()
    for row, value in enumerate(values):
        timestamp_ms, _, _, headers = rows.record(row)
        yield (
            topic if topics is None else topics[row],
            value,
            None if keys is None else keys[row],
            list(headers) or None,
            partition if partitions is None else partitions[row],
            timestamp_ms,
        )
