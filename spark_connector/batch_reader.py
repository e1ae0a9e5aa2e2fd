"""`spark.read`: one plan on the driver, then a task per partition."""

from collections.abc import Iterator, Sequence

import pyarrow as pa
from pyspark.sql.datasource import DataSourceReader, InputPartition

from spark_connector.offset_range_calculator import non_empty_ranges
from spark_connector.offset_reader import OffsetReader
from spark_connector.options import SourceOptions
from spark_connector.partition_reader import KafkaInputPartition, check_ranges, read_partition


class KafkaBatchReader(DataSourceReader):
    """Reads from the starting to the ending offsets, both fixed when the query is planned."""

    def __init__(self, options: SourceOptions) -> None:
        self._options = options

    def partitions(self) -> Sequence[InputPartition]:
        """The tasks: runs on the driver."""
        options = self._options
        offsets = OffsetReader(options)
        try:
            partitions = offsets.partitions()
            start = offsets.resolve(options.starting_offsets, partitions, "startingOffsets")
            end = offsets.resolve(options.ending_offsets, partitions, "endingOffsets")
            ranges = check_ranges(
                non_empty_ranges(start, end),
                offsets.earliest(partitions),
                fail_on_data_loss=options.fail_on_data_loss,
            )
            return [KafkaInputPartition(one, options) for one in ranges]
        finally:
            offsets.close()

    def read(self, partition: InputPartition) -> Iterator[pa.RecordBatch]:
        """The records of one task: runs on an executor."""
        return read_partition(partition)
