"""Batch reads of the Spark source, planned and read without Spark, on our broker."""

import time
from typing import Any

import pytest

from broker_stub import Broker
from pyclient import KafkaProducer
from tests.integration.spark_connector.miniature_spark import offsets_of, plan, read, rows_of
from tests.integration.spark_connector.topics import (
    FIRST_MS,
    delete_records,
    fill,
    write_transaction,
)

PATIENT = {"kafkaConsumer.pollTimeoutMs": 60_000}


# --- ranges --------------------------------------------------------------------------------------


def test_a_range_of_only_a_transaction_marker_does_not_wait(kafka_broker: Broker) -> None:
    kafka_broker.create_topic("t")
    write_transaction(kafka_broker, "t", b"a", b"b")
    before = time.monotonic()
    rows = read(kafka_broker, subscribe="t", startingOffsets='{"t":{"0":2}}', **PATIENT)
    assert rows == []
    assert time.monotonic() - before < 30


def test_a_marker_at_the_end_of_a_range_does_not_wait(kafka_broker: Broker) -> None:
    kafka_broker.create_topic("t")
    write_transaction(kafka_broker, "t", b"a", b"b")
    before = time.monotonic()
    assert offsets_of(read(kafka_broker, subscribe="t", **PATIENT)) == [(0, 0), (0, 1)]
    assert time.monotonic() - before < 30


@pytest.mark.parametrize(("start", "end", "rows"), [(600, 700, 0), (400, 700, 100), (500, 700, 0)])
def test_a_range_beyond_the_log_gives_what_there_is_if_data_loss_is_allowed(
    kafka_broker: Broker, start: int, end: int, rows: int
) -> None:
    fill(kafka_broker, "t", 500)
    found = read(
        kafka_broker,
        subscribe="t",
        startingOffsets=f'{{"t":{{"0":{start}}}}}',
        endingOffsets=f'{{"t":{{"0":{end}}}}}',
        failOnDataLoss="false",
    )
    assert len(found) == rows


def test_a_range_beyond_the_log_is_data_loss_and_names_offsets_that_exist(
    kafka_broker: Broker,
) -> None:
    fill(kafka_broker, "t", 500)
    with pytest.raises(RuntimeError, match=r"\[600, 700\) for topic partition t-0.*\[0, 500\)"):
        plan(
            kafka_broker,
            subscribe="t",
            startingOffsets='{"t":{"0":600}}',
            endingOffsets='{"t":{"0":700}}',
        )


def test_a_start_behind_the_end_of_the_log_is_an_error(kafka_broker: Broker) -> None:
    fill(kafka_broker, "t", 50)
    with pytest.raises(ValueError, match="start offset 60 is greater than the end offset 50"):
        plan(kafka_broker, subscribe="t", startingOffsets='{"t":{"0":60}}')


def test_offsets_that_retention_took_are_data_loss(kafka_broker: Broker) -> None:
    fill(kafka_broker, "t", 50)
    delete_records(kafka_broker, "t", before=20)
    wanted: dict[str, Any] = {"subscribe": "t", "startingOffsets": '{"t":{"0":10}}'}
    with pytest.raises(RuntimeError, match=r"KAFKA_DATA_LOSS.*\[10, 50\).*\[20, 50\)"):
        plan(kafka_broker, **wanted)
    rows = read(kafka_broker, **wanted, failOnDataLoss="false")
    assert [row["offset"] for row in rows] == list(range(20, 50))


def test_retention_passing_a_task_is_data_loss(kafka_broker: Broker) -> None:
    fill(kafka_broker, "t", 50)
    for allowed in (False, True):
        reader, (task,) = plan(
            kafka_broker,
            subscribe="t",
            startingOffsets='{"t":{"0":10}}' if not allowed else '{"t":{"0":20}}',
            failOnDataLoss=str(not allowed).lower(),
        )
        delete_records(kafka_broker, "t", before=30 if allowed else 20)
        if allowed:
            assert [row["offset"] for row in rows_of(reader, task)] == list(range(30, 50))
        else:
            with pytest.raises(RuntimeError, match="COULD_NOT_READ_OFFSET_RANGE"):
                list(rows_of(reader, task))


def test_a_second_action_sees_newer_records(kafka_broker: Broker) -> None:
    fill(kafka_broker, "t", 5)
    reader, (task,) = plan(kafka_broker, subscribe="t")
    assert len(list(rows_of(reader, task))) == 5
    fill(kafka_broker, "t", 3)
    assert len(list(rows_of(reader, task))) == 8  # Spark keeps the plan of a DataFrame


# --- what is subscribed --------------------------------------------------------------------------


def test_asking_for_a_topic_does_not_create_it(kafka_broker: Broker) -> None:
    with pytest.raises(ValueError, match="topic 'missing' does not exist"):
        plan(kafka_broker, subscribe="missing")
    with pytest.raises(ValueError, match="topic 'missing' does not exist"):
        plan(kafka_broker, assign='{"missing":[0]}')
    kafka_broker.create_topic("missing")  # raises if it existed


def test_a_pattern_matches_anywhere_in_the_name(kafka_broker: Broker) -> None:
    for name in ("orders-eu", "my-orders", "else"):
        fill(kafka_broker, name, 2)
    rows = read(kafka_broker, subscribePattern="orders")
    assert {row["topic"] for row in rows} == {"orders-eu", "my-orders"}
    assert read(kafka_broker, subscribePattern="^nothing$") == []


def test_assigned_partitions_that_do_not_exist_are_left_out(kafka_broker: Broker) -> None:
    kafka_broker.create_topic("t", partitions=2)
    fill(kafka_broker, "t", 3, (0, 1))
    rows = read(kafka_broker, assign='{"t":[1,7]}')
    assert offsets_of(rows) == [(1, 0), (1, 1), (1, 2)]


# --- by time -------------------------------------------------------------------------------------


@pytest.fixture
def timed(kafka_broker: Broker) -> Broker:
    """Two partitions, 100 records each, a millisecond apart."""
    kafka_broker.create_topic("t", partitions=2)
    fill(kafka_broker, "t", 100, (0, 1))
    return kafka_broker


def span(rows: list[dict[str, Any]], partition: int) -> tuple[int, int] | None:
    offsets = [row["offset"] for row in rows if row["partition"] == partition]
    return (min(offsets), max(offsets)) if offsets else None


def test_timestamps_bound_a_read(timed: Broker) -> None:
    rows = read(
        timed, subscribe="t", startingTimestamp=FIRST_MS + 10, endingTimestamp=FIRST_MS + 20
    )
    assert (span(rows, 0), span(rows, 1)) == ((10, 19), (10, 19))


def test_timestamps_by_partition_bound_a_read(timed: Broker) -> None:
    rows = read(
        timed,
        subscribe="t",
        startingOffsetsByTimestamp=f'{{"t":{{"0":{FIRST_MS + 10},"1":{FIRST_MS + 50}}}}}',
        endingOffsetsByTimestamp=f'{{"t":{{"0":{FIRST_MS + 20},"1":{FIRST_MS + 999}}}}}',
    )
    assert (span(rows, 0), span(rows, 1)) == ((10, 19), (50, 99))


def test_the_more_general_option_comes_first(timed: Broker) -> None:
    rows = read(
        timed,
        subscribe="t",
        startingTimestamp=FIRST_MS + 90,
        startingOffsetsByTimestamp=f'{{"t":{{"0":{FIRST_MS},"1":{FIRST_MS}}}}}',
        startingOffsets='{"t":{"0":3,"1":3}}',
    )
    assert (span(rows, 0), span(rows, 1)) == ((90, 99), (90, 99))


def test_no_offset_for_a_starting_time_is_an_error_unless_latest_is_allowed(timed: Broker) -> None:
    late = {"subscribe": "t", "startingTimestamp": FIRST_MS + 1000}
    with pytest.raises(ValueError, match=r"No offset matched.*t-[01] and timestamp 1700000001000"):
        plan(timed, **late)
    assert read(timed, **late, startingOffsetsByTimestampStrategy="latest") == []


def test_a_start_after_the_end_is_an_error(timed: Broker) -> None:
    with pytest.raises(ValueError, match="RESOLVED_START_OFFSET_GREATER_THAN_END_OFFSET"):
        plan(timed, subscribe="t", startingTimestamp=FIRST_MS + 20, endingTimestamp=FIRST_MS + 10)


def test_offsets_must_name_the_partitions_of_the_subscription(timed: Broker) -> None:
    with pytest.raises(ValueError, match=r"START_OFFSET_DOES_NOT_MATCH_ASSIGNED.*Missing: t-1"):
        plan(timed, subscribe="t", startingOffsets='{"t":{"0":3}}')
    with pytest.raises(ValueError, match=r"TIMESTAMP_OFFSET_DOES_NOT_MATCH.*not subscribed: t-2"):
        plan(timed, subscribe="t", endingOffsetsByTimestamp='{"t":{"0":3,"1":3,"2":3}}')


# --- more tasks ----------------------------------------------------------------------------------


def test_large_ranges_are_split_into_more_tasks(timed: Broker) -> None:
    _, tasks = plan(timed, subscribe="t", minPartitions=4)
    ranges = [(task.offsets.start, task.offsets.end) for task in tasks]
    assert ranges == [(0, 50), (50, 100)] * 2
    _, tasks = plan(timed, subscribe="t", maxRecordsPerPartition=40)
    assert [task.offsets.size for task in tasks] == [33, 33, 34] * 2
    assert len(read(timed, subscribe="t", minPartitions=7, maxRecordsPerPartition=30)) == 200


# --- records -------------------------------------------------------------------------------------


def test_a_timestamp_that_spark_cannot_hold_names_its_record(kafka_broker: Broker) -> None:
    kafka_broker.create_topic("t", config={"message.timestamp.after.max.ms": 2**63 - 1})
    fill(kafka_broker, "t", 3)
    with KafkaProducer(bootstrap_servers=kafka_broker.bootstrap_servers) as producer:
        producer.send("t", b"late", timestamp_ms=2**62)
    with pytest.raises(ValueError, match=f"topic t partition 0 offset 3 has timestamp .*{2**62}"):
        read(kafka_broker, subscribe="t")


def test_header_keys_that_are_not_utf_8_are_read_as_java_reads_them(kafka_broker: Broker) -> None:
    from broker_stub.log.batch.append_info import AppendOrigin
    from pyclient import _twin
    from tests.support.logs import append

    kafka_broker.create_topic("t")
    builder = _twin.BatchBuilder(bytearray(1000))
    builder.try_append(FIRST_MS, b"k", b"v", [("h?y", b"1")])
    raw = bytearray(b"".join(builder.close()))
    at = raw.index(b"h?y")
    raw[at + 1] = 0xFF
    import google_crc32c

    raw[17:21] = google_crc32c.value(bytes(raw[21:])).to_bytes(4, "big")
    kafka_broker.call(
        lambda node: append(
            node.replicas.partition("t", 0).log, bytes(raw), origin=AppendOrigin.COORDINATOR
        )
    )
    (row,) = read(kafka_broker, subscribe="t", includeHeaders="true")
    assert row["headers"] == [{"key": "h\N{REPLACEMENT CHARACTER}y", "value": b"1"}]
