"""Reads one offset range on an executor: a consumer without a group, Arrow columns throughout."""

import logging
from collections.abc import Iterator
from dataclasses import dataclass
from typing import Any, Final

import pyarrow as pa
from pyspark.sql.datasource import InputPartition

from pyclient import KafkaConsumer
from pyclient.errors import KafkaTimeoutError, OffsetOutOfRangeError
from spark_connector.data_loss import report_data_loss
from spark_connector.offset_range_calculator import OffsetRange
from spark_connector.offsets import names
from spark_connector.record_converter import source_batches
from spark_connector.source_options import SourceOptions

log = logging.getLogger(__name__)

# Large fetches and large Arrow batches cost Spark the least per row; far larger ones cost again.
# A short range takes smaller fetches: what lies behind its end would be fetched for nothing.
_FETCH_BYTES_MAX: Final = 8 * 1024 * 1024
_FETCH_BYTES_MIN: Final = 16 * 1024
_FETCH_BYTES_PER_OFFSET: Final = 256
_BATCH_ROWS_MAX: Final = 64 * 1024
_BATCH_BYTES_MAX: Final = 16 * 1024 * 1024


@dataclass
class KafkaInputPartition(InputPartition):
    """One task, with everything it needs; sent by pickle."""

    offsets: OffsetRange
    options: SourceOptions


def read_partition(partition: InputPartition) -> Iterator[pa.RecordBatch]:
    """The records of one task.

    Raises:
        DataLossError: retention was faster than the task.
        KafkaTimeoutError: nothing came for `kafkaConsumer.pollTimeoutMs`.
    """
    if not isinstance(partition, KafkaInputPartition):
        return  # Spark's stand-in for a plan without partitions
    with KafkaConsumer(**_client(partition)) as consumer:
        yield from _RangeReader(consumer, partition).batches()


class _RangeReader:
    def __init__(self, consumer: KafkaConsumer, task: KafkaInputPartition) -> None:
        self._consumer = consumer
        self._range = task.offsets
        self._at = task.offsets.partition
        self._options = task.options

    def batches(self) -> Iterator[pa.RecordBatch]:
        consumer, at, headers = self._consumer, self._at, self._options.include_headers
        consumer.assign([at])
        position, end = self._bound_range()
        if position < end:
            consumer.seek(at, position)
        while position < end:
            table = self._poll(end)
            if table is not None and table.num_rows:
                yield from source_batches(table, include_headers=headers)
            before, position = position, consumer.position(at)
            if position == before:
                position = self._first_offset_after(position, end)
                consumer.seek(at, position)

    def _bound_range(self) -> tuple[int, int]:
        start, end = self._range.start, self._range.end
        if start < 0:
            start = self._consumer.beginning_offsets([self._at])[self._at]
        if end < 0:
            end = self._consumer.end_offsets([self._at])[self._at]
        return start, end

    def _poll(self, end: int) -> pa.Table:
        try:
            return self._consumer.poll_arrow(
                timeout_ms=self._options.poll_timeout_ms,
                max_records=_BATCH_ROWS_MAX,
                max_bytes=_BATCH_BYTES_MAX,
                end_offsets={self._at: end},
                headers=self._options.include_headers,
            )
        except OffsetOutOfRangeError:
            return None

    def _first_offset_after(self, position: int, end: int) -> int:
        """Where to go on when nothing came: at the next offset that exists, or at the end.

        Raises:
            DataLossError: offsets are gone, and the query must fail then.
            KafkaTimeoutError: nothing is gone.
        """
        first = self._consumer.beginning_offsets([self._at])[self._at]
        last = self._consumer.end_offsets([self._at])[self._at]
        if first <= position < last:
            raise KafkaTimeoutError(
                f"{names([self._at])}: nothing at offset {position} for "
                f"{self._options.poll_timeout_ms} ms (kafkaConsumer.pollTimeoutMs), "
                f"though the task has to read up to {end}"
            )
        report_data_loss(
            "COULD_NOT_READ_OFFSET_RANGE",
            f"Could not read records in offset [{position}, {end}) for topic partition "
            f"{names([self._at])}, which has [{first}, {last})",
            fail=self._options.fail_on_data_loss,
        )
        return min(first, end) if first > position else end


def _client(task: KafkaInputPartition) -> dict[str, Any]:
    fetch_bytes = _FETCH_BYTES_MAX
    if task.offsets.start >= 0 and task.offsets.end >= 0:
        wanted = task.offsets.size * _FETCH_BYTES_PER_OFFSET
        fetch_bytes = min(max(wanted, _FETCH_BYTES_MIN), _FETCH_BYTES_MAX)
    return {
        "max.partition.fetch.bytes": fetch_bytes,
        "client.id": f"{task.options.group_name}-executor",
        **task.options.client,
        "allow.auto.create.topics": False,
        "enable.auto.commit": False,
        "auto.offset.reset": "none",
    }
