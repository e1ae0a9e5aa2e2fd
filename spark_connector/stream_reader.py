"""`spark.readStream`: plans micro-batches on the driver.

The offset dict that Spark keeps in the checkpoint has the JVM connector's shape. The first
batch's dict also says where the query started (under `#initial`, which can't be a topic):
Spark asks for the initial offsets again when the first batch is tried again, and does not
keep the first answer, so that `startingOffsets=latest` would skip what came in between.
"""

from collections.abc import Iterator, Sequence
from typing import Any, Final

import pyarrow as pa
from pyspark.sql.datasource import DataSourceStreamReader, InputPartition
from pyspark.sql.streaming.datasource import (
    ReadAllAvailable,
    ReadLimit,
    ReadMaxRows,
    SupportsTriggerAvailableNow,
)

from spark_connector.offset_range_calculator import limit_by_lag, non_empty_ranges
from spark_connector.offset_reader import OffsetReader
from spark_connector.offsets import PartitionOffsets, from_json, to_json
from spark_connector.options import SourceOptions
from spark_connector.partition_reader import (
    KafkaInputPartition,
    check_ranges,
    read_partition,
    report_data_loss,
)

_INITIAL: Final = "#initial"


class KafkaStreamReader(DataSourceStreamReader, SupportsTriggerAvailableNow):
    """Runs on the driver for the whole query, except for `read`."""

    def __init__(self, options: SourceOptions) -> None:
        self._options = options
        self._offsets = OffsetReader(options)
        self._initial: PartitionOffsets | None = None
        self._available_now: PartitionOffsets | None = None

    def initialOffset(self) -> dict[str, Any]:  # noqa: N802
        """Where a new query starts. Not asked after a restart with a checkpoint."""
        if self._initial is None:
            options = self._options
            self._initial = self._offsets.resolve(
                options.starting_offsets, self._offsets.partitions(), "startingOffsets"
            )
        return {**to_json(self._initial), _INITIAL: to_json(self._initial)}

    def prepareForTriggerAvailableNow(self) -> None:  # noqa: N802
        """Fix the end of the query at what is there now."""
        self._available_now = self._offsets.latest(self._offsets.partitions())

    def getDefaultReadLimit(self) -> ReadLimit:  # noqa: N802
        """How much a micro-batch takes if the trigger does not say."""
        limit = self._options.max_offsets_per_trigger
        return ReadAllAvailable() if limit is None else ReadMaxRows(limit)

    def latestOffset(self, start: dict[str, Any], limit: ReadLimit) -> dict[str, Any]:  # noqa: N802
        """The end of the next micro-batch."""
        begin = _partition_offsets(start)
        end = self._available_now
        if end is None:
            end = self._offsets.latest(self._offsets.partitions())
        # A partition that is gone keeps its place, for `partitions` to report.
        end = {**begin, **{one: max(offset, begin.get(one, 0)) for one, offset in end.items()}}
        new = [one for one in end if one not in begin]
        begin_of_all = {**begin, **(self._offsets.earliest(new) if new else {})}
        if isinstance(limit, ReadMaxRows):
            end = limit_by_lag(begin_of_all, end, limit.max_rows)
        first_batch = start.get(_INITIAL) == to_json(begin)
        return {**to_json(end), **({_INITIAL: to_json(begin)} if first_batch else {})}

    def reportLatestOffset(self) -> dict[str, Any] | None:  # noqa: N802
        """What the cluster has now: for the query's progress report."""
        return to_json(self._offsets.latest(self._offsets.partitions()))

    def partitions(self, start: dict[str, Any], end: dict[str, Any]) -> Sequence[InputPartition]:
        """The tasks of one micro-batch."""
        begin = from_json(end[_INITIAL]) if _INITIAL in end else _partition_offsets(start)
        stop = _partition_offsets(end)
        new = [one for one in stop if one not in begin]
        if new:
            begin = {**begin, **self._offsets.earliest(new)}
        known = set(self._offsets.partitions())
        gone = sorted(one for one in stop if one not in known)
        if gone:
            names = ", ".join(f"{one.topic}-{one.partition}" for one in gone)
            report_data_loss(f"partitions {names} are gone", fail=self._options.fail_on_data_loss)
        ranges = [one for one in non_empty_ranges(begin, stop) if one.partition in known]
        earliest = self._offsets.earliest([one.partition for one in ranges]) if ranges else {}
        checked = check_ranges(ranges, earliest, fail_on_data_loss=self._options.fail_on_data_loss)
        return [KafkaInputPartition(one, self._options) for one in checked]

    def read(self, partition: InputPartition) -> Iterator[pa.RecordBatch]:
        """The records of one task: runs on an executor, in another instance."""
        return read_partition(partition)

    def commit(self, end: dict[str, Any]) -> None:
        """Nothing: the checkpoint keeps the offsets."""

    def stop(self) -> None:
        """The query has ended."""
        self._offsets.close()

    def __getstate__(self) -> dict[str, Any]:
        # Tasks only call `read`; a consumer could not be pickled, nor would it be of use.
        return {**self.__dict__, "_offsets": OffsetReader(self._options)}


def _partition_offsets(offset: dict[str, Any]) -> PartitionOffsets:
    return from_json({topic: value for topic, value in offset.items() if topic != _INITIAL})
