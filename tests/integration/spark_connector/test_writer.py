"""The sink's tasks without Spark: Arrow batches in, records on our broker out."""

from collections.abc import Iterator

import pyarrow as pa
import pytest
from pyspark.sql.types import StructType

from broker_stub import Broker
from pyclient.errors import KafkaError, NoBrokersAvailable
from pyclient.protocol.messages.produce import ProduceRequest
from spark_connector.sink_options import SinkOptions, parse_sink_options
from spark_connector.writer import KafkaBatchWriter, write_batches

HEADERS = pa.list_(pa.struct([("key", pa.string()), ("value", pa.binary())]))


def options(broker: Broker, topic: str | None = "out", **others: str) -> SinkOptions:
    given = {"kafka.bootstrap.servers": broker.bootstrap_servers, **others}
    return parse_sink_options(given if topic is None else {**given, "topic": topic})


def as_text(*contents: bytes | None) -> pa.Array:
    """A string column of these bytes, as Spark hands it over: nothing checks that it is UTF-8."""
    raw = pa.array(contents, pa.binary())
    return pa.Array.from_buffers(pa.string(), len(raw), raw.buffers())


def test_every_column_arrives(kafka_broker: Broker) -> None:
    kafka_broker.create_topic("a", partitions=3)
    kafka_broker.create_topic("b", partitions=3)
    batch = pa.record_batch(
        {
            "topic": ["a", "b", "a"],
            "key": pa.array([b"k", None, None]),
            "value": pa.array(["x", "y", None]),
            "partition": pa.array([2, 1, 0], pa.int32()),
            "headers": pa.array([None, [("h", b"1"), ("i", None)], []], HEADERS),
            "timestamp": pa.array([5_000, 6_000, 7_000], pa.timestamp("us", "UTC")),
            "ignored": [1, 2, 3],
        }
    )
    with_time = options(kafka_broker, None, includeTimestamp="true")
    assert write_batches(iter([batch, batch.slice(0, 0), batch.slice(2, 1)]), with_time).count == 4
    written = [
        (one.partition, one.key, one.value, list(one.headers), one.timestamp)
        for topic in ("a", "b")
        for one in kafka_broker.records(topic)
    ]
    assert sorted(written, key=repr) == [
        (0, None, None, [], 7),
        (0, None, None, [], 7),
        (1, None, b"y", [("h", b"1"), ("i", None)], 6),
        (2, b"k", b"x", [], 5),
    ]


def test_the_timestamp_column_counts_only_on_demand_and_the_topic_option_beats_the_column(
    kafka_broker: Broker,
) -> None:
    batch = pa.record_batch(
        {
            "topic": ["x", None],
            "value": ["a", "b"],
            "timestamp": pa.array([1, 2], pa.timestamp("s")),
        }
    )
    write_batches(iter([batch]), options(kafka_broker))
    assert all(one.timestamp > 1_600_000_000_000 for one in kafka_broker.records("out"))
    assert [one.value for one in kafka_broker.records("out")] == [b"a", b"b"]


def test_text_that_is_not_utf8_is_written_as_its_bytes(kafka_broker: Broker) -> None:
    bad = b"\xff\xfe-\xc3"
    headers = pa.ListArray.from_arrays(
        pa.array([0, None, 1], pa.int32()),
        pa.StructArray.from_arrays([as_text(bad), pa.array([bad])], ["key", "value"]),
    )
    batch = pa.record_batch(
        {"key": as_text(bad, None), "value": as_text(bad, b"ok"), "headers": headers}
    )
    write_batches(iter([batch]), options(kafka_broker))
    first, second = sorted(kafka_broker.records("out"), key=lambda one: one.value != bad)
    assert (first.key, first.value) == (bad, bad)
    assert list(first.headers) == [("\ufffd\ufffd-\ufffd", bad)]  # as Java names it
    assert (second.key, second.value, list(second.headers)) == (None, b"ok", [])


def test_a_task_without_rows_opens_no_connection(kafka_broker: Broker) -> None:
    empty = pa.record_batch({"value": pa.array([], pa.string())})
    unreachable = SinkOptions(client={"bootstrap.servers": "127.0.0.1:1"}, topic="out")
    assert write_batches(iter([empty]), unreachable).count == 0


def test_a_record_that_fails_fails_the_task_with_its_cause(kafka_broker: Broker) -> None:
    batch = pa.record_batch({"value": ["small", "x" * 5000]})
    with pytest.raises(KafkaError, match=r"1 of 2 records .* row 1 for topic 'out'.*max\.request"):
        write_batches(iter([batch]), options(kafka_broker, **{"kafka.max.request.size": "1000"}))


def test_nothing_counts_as_written_before_it_is_acknowledged(kafka_broker: Broker) -> None:
    from pyclient.errors import InvalidRecordError

    def batches() -> Iterator[pa.RecordBatch]:
        for number in range(20):
            if number == 10:
                kafka_broker.faults.fail_next(ProduceRequest, InvalidRecordError)
            yield pa.record_batch({"value": [f"{number}" * 100] * 1000})

    with pytest.raises(KafkaError, match=r"not written; the first, row .* InvalidRecordError"):
        write_batches(batches(), options(kafka_broker))


def test_a_row_without_a_topic_is_refused(kafka_broker: Broker) -> None:
    batch = pa.record_batch({"topic": pa.array(["a", None]), "value": ["x", "y"]})
    with pytest.raises(ValueError, match="null topic present in the data"):
        write_batches(iter([batch]), options(kafka_broker, None))


VALUE = StructType().add("value", "string")


def test_the_driver_checks_the_brokers_once_and_within_bounds() -> None:
    """Bug 8 of issue 17: each attempt of each task waited 30 s."""
    unreachable = parse_sink_options(
        {
            "kafka.bootstrap.servers": "127.0.0.1:1",
            "kafka.bootstrap.timeout.ms": "100",
            "topic": "out",
        }
    )
    with pytest.raises(NoBrokersAvailable, match=r"127\.0\.0\.1:1"):
        KafkaBatchWriter(VALUE, unreachable)


def test_the_driver_checks_the_options_of_the_client(kafka_broker: Broker) -> None:
    """Bug 8 of issue 17: only tasks did."""
    for key, value, words in (
        ("kafka.linger.ms", "soon", r"linger\.ms"),
        ("kafka.compression.type", "zip", r"compression\.type"),
    ):
        with pytest.raises(ValueError, match=words):
            KafkaBatchWriter(VALUE, options(kafka_broker, **{key: value}))


def test_options_of_the_source_and_unknown_ones_are_accepted_with_a_warning(
    kafka_broker: Broker, caplog: pytest.LogCaptureFixture
) -> None:
    """Bug 8 of issue 17: jobs share one dictionary between source and sink."""
    shared = {
        "subscribe": "in",
        "startingOffsets": "earliest",
        "kafka.max.poll.records": "10",
        "kafka.group.id": "g",
        "topik": "x",
    }
    KafkaBatchWriter(VALUE, options(kafka_broker, **shared))
    warned = "\n".join(record.getMessage() for record in caplog.records)
    for word in ("subscribe", "startingOffsets", "kafka.max.poll.records", "topik", "'topic'"):
        assert word in warned
