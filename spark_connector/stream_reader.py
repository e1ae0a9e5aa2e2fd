"""`spark.readStream`: plans micro-batches on the driver."""

import logging
from collections.abc import Iterator, Sequence
from typing import Any

import pyarrow as pa
from pyspark.sql.datasource import DataSourceStreamReader, InputPartition
from pyspark.sql.streaming.datasource import (
    ReadAllAvailable,
    ReadLimit,
    ReadMaxRows,
    ReadMinRows,
    SupportsTriggerAvailableNow,
)

from pyclient.clock import Clock, SystemClock
from spark_connector.data_loss import DataLossError, report_data_loss
from spark_connector.offset_range_calculator import OffsetRange, limit_by_lag, split_ranges
from spark_connector.offset_reader import OffsetReader, Topics
from spark_connector.offsets import PartitionOffsets, StreamOffset, names, to_json
from spark_connector.partition_reader import KafkaInputPartition, read_partition
from spark_connector.source_options import SourceOptions

log = logging.getLogger(__name__)


class KafkaStreamReader(DataSourceStreamReader, SupportsTriggerAvailableNow):
    """Runs on the driver for the whole query, except for `read`."""

    def __init__(self, options: SourceOptions, clock: Clock | None = None) -> None:
        self._options = options
        self._clock = clock or SystemClock()
        self._offsets = OffsetReader(options, self._clock)
        self._initial: StreamOffset | None = None
        self._latest: PartitionOffsets | None = None
        self._is_available_now = False
        self._available_now: tuple[Topics, PartitionOffsets] | None = None
        self._triggered_at_ms: float | None = None
        self._committed: PartitionOffsets | None = None

    # --- offsets -----------------------------------------------------------------------------

    def initialOffset(self) -> dict[str, Any]:  # noqa: N802
        """Where a new query starts. Not asked after a restart with a checkpoint."""
        if self._initial is None:
            topics = self._offsets.topics()
            wanted = self._offsets.resolve(self._options.starting, topics, "starting")
            offsets = self._offsets.bind(wanted)
            self._initial = StreamOffset(offsets, topics.ids, initial=offsets)
        return self._initial.to_json()

    def prepareForTriggerAvailableNow(self) -> None:  # noqa: N802
        """Read up to what is there when the first batch is planned, and stop."""
        self._is_available_now = True

    def getDefaultReadLimit(self) -> ReadLimit:  # noqa: N802
        """How much a micro-batch takes. Trigger once overrides it by ReadAllAvailable."""
        options = self._options
        if options.max_offsets_per_trigger is not None:
            return ReadMaxRows(options.max_offsets_per_trigger)
        if options.min_offsets_per_trigger is not None:
            return ReadMinRows(options.min_offsets_per_trigger)
        return ReadAllAvailable()

    def latestOffset(self, start: dict[str, Any], limit: ReadLimit) -> dict[str, Any]:  # noqa: N802
        """The end of the next micro-batch; `start` itself if there is nothing to do."""
        begin = StreamOffset.from_json(start)
        self._commit_to_group(begin.offsets)  # Spark asks when the batch before is done
        topics, latest = self._ends(begin)
        self._latest = latest
        end = latest
        if not isinstance(limit, ReadAllAvailable):
            if self._is_to_wait(begin.offsets, latest):
                return start
            end = self._limited(begin.offsets, latest)
        is_recreated = any(
            topics.ids.get(topic, topic_id) != topic_id
            for topic, topic_id in begin.topic_ids.items()
        )
        if end == begin.offsets and not is_recreated:
            return start  # any other dict makes a micro-batch, also an empty one
        is_first = begin.initial == begin.offsets
        return StreamOffset(end, topics.ids, begin.offsets if is_first else None).to_json()

    def _ends(self, begin: StreamOffset) -> tuple[Topics, PartitionOffsets]:
        if self._available_now is not None:
            return self._available_now
        topics = self._offsets.topics()
        latest = self._offsets.latest(topics.partitions, begin.offsets)
        if self._is_available_now:
            self._available_now = topics, latest
        return topics, latest

    def _is_to_wait(self, begin: PartitionOffsets, latest: PartitionOffsets) -> bool:
        """Whether there is less than `minOffsetsPerTrigger`, and `maxTriggerDelay` not over."""
        least = self._options.min_offsets_per_trigger
        if least is None or self._is_available_now:  # which must reach its end
            return False
        now_ms = self._clock.monotonic_ms()
        is_due = (
            self._triggered_at_ms is None
            or now_ms - self._triggered_at_ms >= self._options.max_trigger_delay_ms
        )
        if not is_due and sum(at - begin.get(one, 0) for one, at in latest.items()) < least:
            return True
        self._triggered_at_ms = now_ms
        return False

    def _limited(self, begin: PartitionOffsets, latest: PartitionOffsets) -> PartitionOffsets:
        most = self._options.max_offsets_per_trigger
        if most is None:
            return latest
        new = [one for one in latest if one not in begin]
        return limit_by_lag({**begin, **self._offsets.earliest(new)}, latest, most)

    def reportLatestOffset(self) -> dict[str, Any] | None:  # noqa: N802
        """What the cluster had for the last batch: for the query's progress report."""
        return to_json(self._latest) if self._latest else None

    # --- a batch -----------------------------------------------------------------------------

    def partitions(self, start: dict[str, Any], end: dict[str, Any]) -> Sequence[InputPartition]:
        """The tasks of one micro-batch."""
        if start == end:
            return []
        begin, stop = StreamOffset.from_json(start), StreamOffset.from_json(end)
        if stop.initial is not None:
            begin = StreamOffset(stop.initial, begin.topic_ids)
        topics = self._offsets.topics()
        self._check_available_now(stop.offsets, topics)
        self._check_topic_ids(begin, stop, topics)
        ranges = self._ranges(begin.offsets, stop.offsets)
        ranges = self._cut_off(ranges)
        options = self._options
        split = split_ranges(ranges, options.min_partitions, options.max_records_per_partition)
        return [KafkaInputPartition(one, options) for one in split]

    def _check_topic_ids(self, begin: StreamOffset, stop: StreamOffset, topics: Topics) -> None:
        for topic, now in sorted(topics.ids.items()):
            earlier = {begin.topic_ids.get(topic, now), stop.topic_ids.get(topic, now)} - {now}
            if earlier:
                self._report(
                    "PARTITION_OFFSET_CHANGED",
                    f"Topic {topic} was deleted and created again: its id was "
                    f"{', '.join(sorted(earlier))} and is {now}",
                )

    def _ranges(self, begin: PartitionOffsets, end: PartitionOffsets) -> list[OffsetRange]:
        gone = set(begin) - set(end)
        if gone:
            self._report("PARTITIONS_DELETED", f"Partitions {names(gone)} have been deleted")
        new = set(end) - set(begin)
        first = self._offsets.earliest(new)
        if set(first) != new:
            self._report(
                "INITIAL_OFFSET_NOT_FOUND_FOR_PARTITIONS",
                f"Cannot find initial offsets for partitions {names(new - set(first))}",
            )
        for one, offset in sorted(first.items()):
            if offset:
                self._report(
                    "ADDED_PARTITION_DOES_NOT_START_FROM_OFFSET_ZERO",
                    f"Added partition {names([one])} starts from {offset} instead of 0",
                )
        begin = {**begin, **first}
        ranges = [OffsetRange(one, begin[one], end[one]) for one in sorted(end) if one in begin]
        for bad in ranges:
            if bad.end < bad.start:
                self._report(
                    "PARTITION_OFFSET_CHANGED",
                    f"Partition {names([bad.partition])} offset was changed from {bad.start} to "
                    f"{bad.end}. Either the query starts behind the end of the log, or the topic "
                    "was deleted and created again",
                )
        return [one for one in ranges if one.size]

    def _cut_off(self, ranges: list[OffsetRange]) -> list[OffsetRange]:
        """Without what retention has taken already."""
        earliest = self._offsets.earliest([one.partition for one in ranges])
        kept = []
        for one in ranges:
            first = earliest.get(one.partition, one.end)
            if one.start < first:
                self._report(
                    "COULD_NOT_READ_OFFSET_RANGE",
                    f"Could not read records in offset [{one.start}, {min(first, one.end)}) for "
                    f"topic partition {names([one.partition])}, which starts at {first}",
                )
            kept.append(OffsetRange(one.partition, max(one.start, min(first, one.end)), one.end))
        return kept

    def _check_available_now(self, end: PartitionOffsets, topics: Topics) -> None:
        if self._available_now is None:
            return
        lost = set(end) - set(topics.partitions)
        if lost:
            raise DataLossError(
                "[LOST_TOPIC_PARTITIONS_IN_END_OFFSET_WITH_TRIGGER_AVAILABLENOW] partitions "
                f"{names(lost)} were deleted while the query ran. Restart it"
            )

    def _report(self, error_class: str, what: str) -> None:
        report_data_loss(error_class, what, fail=self._options.fail_on_data_loss)

    def read(self, partition: InputPartition) -> Iterator[pa.RecordBatch]:
        """The records of one task: runs on an executor, in another instance."""
        return read_partition(partition)

    # --- the end -----------------------------------------------------------------------------

    def commit(self, end: dict[str, Any]) -> None:
        """Spark keeps the offsets; a consumer group gets them on demand."""
        self._commit_to_group(StreamOffset.from_json(end).offsets)

    def _commit_to_group(self, offsets: PartitionOffsets) -> None:
        group = self._options.commit_to_group
        if group is not None and offsets and offsets != self._committed:
            self._offsets.commit_to_group(group, offsets)
            self._committed = offsets

    def stop(self) -> None:
        """The query has ended."""
        self._offsets.close()

    def __getstate__(self) -> dict[str, Any]:
        # Tasks only call `read`; a client could not be pickled, nor would it be of use.
        return {**self.__dict__, "_offsets": OffsetReader(self._options)}
