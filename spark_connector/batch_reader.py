"""`spark.read`: one plan on the driver, then a task per partition."""

import logging
from collections.abc import Iterable, Iterator, Sequence

import pyarrow as pa
from pyspark.sql.datasource import DataSourceReader, Filter, InputPartition

from spark_connector.data_loss import report_data_loss
from spark_connector.filters import Wanted, narrow, wanted_by
from spark_connector.offset_range_calculator import OffsetRange, split_ranges
from spark_connector.offset_reader import OffsetReader
from spark_connector.offsets import EARLIEST, LATEST, PartitionOffsets, names
from spark_connector.partition_reader import KafkaInputPartition, read_partition
from spark_connector.source_options import SourceOptions

log = logging.getLogger(__name__)


class KafkaBatchReader(DataSourceReader):
    """Reads from the starting to the ending offsets.

    `earliest` and `latest` are looked up by the tasks, as in the JVM connector: Spark plans a
    DataFrame of a Python source once, and its second action would not see newer records.
    """

    def __init__(self, options: SourceOptions) -> None:
        self._options = options

    def partitions(self) -> Sequence[InputPartition]:
        """The tasks: runs on the driver."""
        offsets = OffsetReader(self._options)
        try:
            ranges = self._ranges(offsets)
            return [KafkaInputPartition(one, self._options) for one in ranges]
        finally:
            offsets.close()

    def _ranges(self, offsets: OffsetReader) -> list[OffsetRange]:
        topics = offsets.topics()
        start = offsets.resolve(self._options.starting, topics, "starting")
        end = offsets.resolve(self._options.ending, topics, "ending")
        start, end = self._check(offsets, start, end)
        ranges = [OffsetRange(one, start[one], end[one]) for one in sorted(start)]
        return self._split(offsets, self._narrowed(offsets, ranges))

    def _narrowed(self, _: OffsetReader, ranges: list[OffsetRange]) -> list[OffsetRange]:
        """Without what filters exclude; see `FilteringBatchReader`."""
        return ranges

    @staticmethod
    def _bound(offsets: OffsetReader, ranges: list[OffsetRange]) -> list[OffsetRange]:
        start = offsets.bind({one.partition: one.start for one in ranges})
        end = offsets.bind({one.partition: one.end for one in ranges})
        return [OffsetRange(one, start[one], end[one]) for one in start]

    def _check(
        self, offsets: OffsetReader, start: PartitionOffsets, end: PartitionOffsets
    ) -> tuple[PartitionOffsets, PartitionOffsets]:
        """Check numbers that the user gave against what the log has; cut them off if allowed."""
        numbers = [one for one in start if start[one] >= 0 or end[one] >= 0]
        earliest, known = offsets.earliest(numbers), {one: end[one] for one in numbers}
        latest = offsets.latest(numbers, known)
        fail = self._options.fail_on_data_loss
        for one in numbers:
            until = latest[one] if end[one] == LATEST else end[one]
            if start[one] > until:
                raise ValueError(
                    "[RESOLVED_START_OFFSET_GREATER_THAN_END_OFFSET] the start offset "
                    f"{start[one]} is greater than the end offset {until} for topic {one.topic} "
                    f"partition {one.partition}, which has offsets {earliest[one]} to "
                    f"{latest[one]}. Check the starting and the ending option, and whether the "
                    "topic was deleted and created again"
                )
            first = earliest[one] if start[one] == EARLIEST else start[one]
            if first < min(earliest[one], until) or until > latest[one]:
                report_data_loss(
                    "COULD_NOT_READ_OFFSET_RANGE",
                    f"Could not read records in offset [{first}, {until}) for topic partition "
                    f"{names([one])}, which has [{earliest[one]}, {latest[one]})",
                    fail=fail,
                )
                end = {**end, one: min(until, latest[one])}
                start = {**start, one: min(max(first, earliest[one]), end[one])}
        return start, end

    def _split(self, offsets: OffsetReader, ranges: list[OffsetRange]) -> list[OffsetRange]:
        least, most = self._options.min_partitions, self._options.max_records_per_partition
        if (least is None or len(ranges) >= least) and most is None:
            return [one for one in ranges if one.start < 0 or one.end < 0 or one.size]
        return split_ranges(self._bound(offsets, ranges), least, most)

    def read(self, partition: InputPartition) -> Iterator[pa.RecordBatch]:
        """The records of one task: runs on an executor."""
        return read_partition(partition)


class FilteringBatchReader(KafkaBatchReader):
    """Fetches only what the query's filters may keep.

    A class of its own: Spark refuses a reader with `pushFilters` unless its setting
    `spark.sql.python.filterPushdown.enabled` is on. Spark keeps one plan for a loaded DataFrame,
    so another query on the same one would read what the first one's filters left.
    """

    def __init__(self, options: SourceOptions) -> None:
        super().__init__(options)
        self._wanted = Wanted()

    def pushFilters(self, filters: list[Filter]) -> Iterable[Filter]:  # noqa: N802
        """Take note of the filters; Spark applies all of them again."""
        self._wanted = wanted_by(filters)
        if self._wanted != Wanted():
            log.warning(
                "filters narrowed what is read; load the DataFrame again for another query, "
                "Spark keeps the plan of this one"
            )
        return filters

    def _narrowed(self, offsets: OffsetReader, ranges: list[OffsetRange]) -> list[OffsetRange]:
        if self._wanted == Wanted():
            return ranges
        bound = self._bound(offsets, ranges)
        return narrow(bound, self._wanted, offsets, self._options.max_disorder_ms)
