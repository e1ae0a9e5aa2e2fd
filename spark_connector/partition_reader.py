"""Reads one offset range on an executor: a consumer without a group, Arrow columns throughout."""

import logging
from collections.abc import Iterator, Mapping
from dataclasses import dataclass, replace
from typing import Any, Final

import pyarrow as pa
from pyspark.sql.datasource import InputPartition

from pyclient import KafkaConsumer, TopicPartition
from pyclient.errors import KafkaTimeoutError, OffsetOutOfRangeError
from spark_connector.offset_range_calculator import OffsetRange
from spark_connector.options import SourceOptions
from spark_connector.record_converter import source_batches

log = logging.getLogger(__name__)

# Large fetches make large Arrow batches, which cost Spark the least per row.
_FETCH_BYTES: Final = 8 * 1024 * 1024


class DataLossError(RuntimeError):
    """Records that the query must read no longer exist."""


@dataclass
class KafkaInputPartition(InputPartition):
    """One task, with everything it needs; sent by pickle."""

    offsets: OffsetRange
    options: SourceOptions


def check_ranges(
    ranges: list[OffsetRange],
    earliest: Mapping[TopicPartition, int],
    *,
    fail_on_data_loss: bool,
) -> list[OffsetRange]:
    """Check on the driver that the start of each range still exists.

    Raises:
        DataLossError: it does not, and `failOnDataLoss` is true.
    """
    checked = []
    for one in ranges:
        first = earliest[one.partition]
        if one.start < first:
            report_data_loss(
                f"{_name(one.partition)}: offsets {one.start} to {first - 1} are gone "
                "(retention or a deleted topic)",
                fail=fail_on_data_loss,
            )
            one = replace(one, start=min(first, one.end))
        if one.size:
            checked.append(one)
    return checked


def report_data_loss(what: str, *, fail: bool) -> None:
    """Raise, or warn and let the query continue."""
    if fail:
        raise DataLossError(
            f"{what}. To go on without them, set the option 'failOnDataLoss' to 'false'"
        )
    log.warning("data loss: %s; failOnDataLoss is false, so the query goes on", what)


def read_partition(partition: InputPartition) -> Iterator[pa.RecordBatch]:
    """The records of one task.

    Raises:
        DataLossError: retention was faster than the task.
        KafkaTimeoutError: nothing came for `kafkaConsumer.pollTimeoutMs`.
    """
    if not isinstance(partition, KafkaInputPartition):
        return  # Spark's stand-in for a plan without partitions
    wanted, options = partition.offsets, partition.options
    with KafkaConsumer(**_client(options)) as consumer:
        consumer.assign([wanted.partition])
        consumer.seek(wanted.partition, wanted.start)
        position = wanted.start
        while position < wanted.end:
            table = _poll(consumer, wanted, options)
            yield from source_batches(table, wanted.end, include_headers=options.include_headers)
            before, position = position, consumer.position(wanted.partition)
            if position == before:
                raise KafkaTimeoutError(
                    f"{_name(wanted.partition)}: nothing at offset {position} for "
                    f"{options.poll_timeout_ms} ms (kafkaConsumer.pollTimeoutMs), "
                    f"though the task has to read up to {wanted.end}"
                )


def _poll(consumer: KafkaConsumer, wanted: OffsetRange, options: SourceOptions) -> pa.Table:
    try:
        return consumer.poll_arrow(
            timeout_ms=options.poll_timeout_ms, headers=options.include_headers
        )
    except OffsetOutOfRangeError:
        first = consumer.beginning_offsets([wanted.partition])[wanted.partition]
        report_data_loss(
            f"{_name(wanted.partition)}: offsets up to {first - 1} went while the task ran",
            fail=options.fail_on_data_loss,
        )
        consumer.seek(wanted.partition, first)
        return None


def _client(options: SourceOptions) -> dict[str, Any]:
    client = {key: value for key, value in options.client.items() if key != "group.id"}
    return {
        "max.partition.fetch.bytes": _FETCH_BYTES,
        **client,
        "enable.auto.commit": False,
        "auto.offset.reset": "none",
    }


def _name(partition: TopicPartition) -> str:
    return f"{partition.topic}-{partition.partition}"
