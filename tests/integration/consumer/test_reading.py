"""Reading without a group: what comes, in which order, from where on."""

import threading

import pytest

from pyclient import KafkaConsumer, TopicPartition
from pyclient.errors import (
    IllegalStateError,
    KafkaTimeoutError,
    NoOffsetForPartitionError,
    NotLeaderOrFollowerError,
    OffsetOutOfRangeError,
    WakeupError,
)
from pyclient.protocol.messages.fetch import FetchRequest
from pyclient.protocol.messages.list_offsets import ListOffsetsRequest

P0, P1 = TopicPartition("orders", 0), TopicPartition("orders", 1)


def test_a_consumer_without_a_group_reads_all_partitions_in_order(new_consumer, fill, read):
    fill("orders", partitions=3, count=200)
    found = read(new_consumer("orders"), 600)
    for partition in range(3):
        assert [number for where, number in found if where == partition] == list(range(200))


def test_iteration_ends_when_nothing_comes_and_goes_on_when_asked_again(new_consumer, fill):
    fill("orders", count=10)
    consumer = new_consumer("orders", consumer_timeout_ms=500)
    assert [int(record.value) for record in consumer] == list(range(10))
    fill("orders", count=5, first=10)
    assert [int(record.value) for record in consumer] == list(range(10, 15))


def test_a_poll_returns_no_more_than_asked_for(new_consumer, fill, read):
    fill("orders", count=10)
    consumer = new_consumer("orders")
    assert read(consumer, 3, max_records=3) == [(0, 0), (0, 1), (0, 2)]
    assert consumer.position(P0) == 3
    assert len(read(consumer, 7)) == 7


def test_the_default_is_to_start_at_the_end(servers, fill, read):
    fill("orders", count=10)
    with KafkaConsumer("orders", bootstrap_servers=servers) as consumer:
        consumer.poll(timeout_ms=0)
        while not consumer.assignment():
            consumer.poll(timeout_ms=100)
        assert consumer.position(P0) == 10
        fill("orders", count=2, first=10)
        assert read(consumer, 2) == [(0, 10), (0, 11)]


@pytest.mark.parametrize(
    ("options", "expected"),
    [
        ({}, (8 << 20, 4 << 20)),
        ({"fetch_max_bytes": 52_428_800}, (52_428_800, 1 << 20)),
        ({"max_partition_fetch_bytes": 1 << 20}, (52_428_800, 1 << 20)),
        ({"fetch_max_bytes": 7_000, "max_partition_fetch_bytes": 6_000}, (7_000, 6_000)),
        ({"fetch_buffer_bytes": 3 << 20}, (3 << 20, 3 << 20)),
    ],
)
def test_fetch_sizes_are_those_that_the_program_sets(
    new_consumer, fill, read, kafka_broker, options, expected
):
    fill("orders", count=10)
    read(new_consumer("orders", **options), 10)
    request = kafka_broker.requests.of(FetchRequest)[0]
    assert (request.max_bytes, request.topics[0].partitions[0].partition_max_bytes) == expected


def test_seeks_go_where_they_say(new_consumer, fill, read):
    fill("orders", partitions=2, count=10)
    consumer = new_consumer()
    consumer.assign([P0, P1])
    consumer.seek(P0, 7)
    consumer.seek_to_end(P1)
    assert consumer.position(P1) == 10
    assert read(consumer, 3) == [(0, 7), (0, 8), (0, 9)]
    consumer.seek_to_beginning()
    assert consumer.position(P0) == consumer.position(P1) == 0
    assert len(read(consumer, 20)) == 20
    consumer.seek(P0, 9)
    assert read(consumer, 1) == [(0, 9)]


def test_a_paused_partition_rests_and_goes_on_where_it_was(new_consumer, fill, read):
    fill("orders", partitions=2, count=10)
    consumer = new_consumer()
    consumer.assign([P0, P1])
    consumer.pause(P0)
    assert consumer.paused() == {P0}
    assert {where for where, _ in read(consumer, 10)} == {1}
    assert consumer.poll(timeout_ms=50) == {}
    consumer.resume(P0)
    assert read(consumer, 10) == [(0, number) for number in range(10)]


def test_pausing_inside_an_iteration_loses_nothing(new_consumer, fill):
    fill("orders", partitions=2, count=10)
    consumer = new_consumer(consumer_timeout_ms=500)
    consumer.assign([P0, P1])
    first = next(consumer)
    paused = TopicPartition("orders", first.partition)
    consumer.pause(paused)
    assert {record.partition for record in consumer} == {1 - first.partition}
    assert consumer.position(paused) == 1
    consumer.resume(paused)
    assert [record.offset for record in consumer] == list(range(1, 10))


def test_a_seek_inside_an_iteration_is_followed_at_once(new_consumer, fill):
    fill("orders", count=10)
    consumer = new_consumer("orders", consumer_timeout_ms=500)
    seen = []
    for record in consumer:
        seen.append(record.offset)
        if len(seen) == 3:
            consumer.seek(P0, 8)
    assert seen == [0, 1, 2, 8, 9]


def test_polling_after_an_iteration_goes_on_behind_its_last_record(new_consumer, fill, read):
    fill("orders", count=10)
    consumer = new_consumer("orders")
    assert next(consumer).offset == 0
    assert next(iter(consumer)).offset == 1
    assert consumer.position(P0) == 2
    assert read(consumer, 8) == [(0, number) for number in range(2, 10)]


def test_offsets_are_told_without_being_assigned(new_consumer, fill):
    fill("orders", partitions=2, count=10)
    consumer = new_consumer()
    assert consumer.beginning_offsets([P0, P1]) == {P0: 0, P1: 0}
    assert consumer.end_offsets([P0, P1]) == {P0: 10, P1: 10}
    assert consumer.end_offsets([]) == {}
    found = consumer.offsets_for_times({P0: 0, P1: 2**60})
    assert found[P0].offset == 0
    assert found[P1] is None


def test_questions_about_a_partition_that_is_not_there_end_in_time(new_consumer, fill):
    fill("orders")
    consumer = new_consumer()
    with pytest.raises(KafkaTimeoutError, match="orders-7"):
        consumer.end_offsets([TopicPartition("orders", 7)], timeout_ms=300)


def test_topics_and_partitions_are_told_also_while_a_fetch_waits(new_consumer, fill, read):
    fill("orders", partitions=2, count=1)
    consumer = new_consumer("orders", fetch_max_wait_ms=20_000)
    read(consumer, 2)
    assert consumer.topics() == {"orders"}
    assert consumer.partitions_for_topic("orders") == {0, 1}
    assert consumer.partitions_for_topic("nowhere") == set()
    assert consumer.end_offsets([P0]) == {P0: 1}
    consumer.seek(P0, 0)
    assert read(consumer, 1) == [(0, 0)]


def test_records_come_as_arrow_columns(new_consumer, fill):
    fill("orders", partitions=2, count=50)
    consumer = new_consumer("orders")
    numbers = {0: [], 1: []}
    while sum(map(len, numbers.values())) < 100:
        table = consumer.poll_arrow(timeout_ms=20_000)
        assert table.num_rows
        for row in table.to_pylist():
            numbers[row["partition"]].append(int(row["value"]))
    assert numbers == {0: list(range(50)), 1: list(range(50))}
    assert consumer.position(P0) == 50
    assert consumer.poll_arrow().num_rows == 0


@pytest.mark.parametrize(
    ("options", "asked", "size"),
    [
        ({}, None, 8 << 20),
        ({"fetch_max_bytes": 30_000_000}, None, 30_000_000),
        ({"fetch_max_bytes": 30_000_000}, 5_000, 5_000),
    ],
)
def test_an_arrow_table_is_bounded_in_bytes(new_consumer, fill, monkeypatch, options, asked, size):
    fill("orders")
    consumer = new_consumer("orders", **options)
    collect = consumer._loop.core.collector.collect_columns
    bounds = []
    monkeypatch.setattr(
        consumer._loop.core.collector,
        "collect_columns",
        lambda builder, max_bytes, *others: (
            bounds.append(max_bytes) or collect(builder, max_bytes, *others)
        ),
    )
    assert consumer.poll_arrow(timeout_ms=20_000, max_bytes=asked).num_rows
    assert set(bounds) == {size}


def test_deserializers_make_keys_and_values(new_consumer, fill):
    fill("orders", count=3)
    consumer = new_consumer("orders", value_deserializer=int, consumer_timeout_ms=500)
    assert [record.value for record in consumer] == [0, 1, 2]


def test_without_a_reset_the_program_has_to_seek_first(new_consumer, fill, read):
    fill("orders", count=3)
    consumer = new_consumer(auto_offset_reset="none")
    consumer.assign([P0])
    with pytest.raises(NoOffsetForPartitionError, match="orders-0"):
        consumer.poll(timeout_ms=20_000)
    consumer.seek(P0, 1)
    assert read(consumer, 2) == [(0, 1), (0, 2)]
    consumer.seek(P0, 99)
    with pytest.raises(OffsetOutOfRangeError, match="offset 99 of orders-0"):
        consumer.poll(timeout_ms=20_000)
    consumer.seek(P0, 2)
    assert read(consumer, 1) == [(0, 2)]


def test_an_offset_out_of_range_starts_again_as_configured(new_consumer, fill, read):
    fill("orders", count=3)
    consumer = new_consumer()
    consumer.assign([P0])
    consumer.seek(P0, 99)
    assert read(consumer, 3) == [(0, 0), (0, 1), (0, 2)]


@pytest.mark.parametrize("api", [FetchRequest, ListOffsetsRequest])
def test_a_partition_whose_leader_changes_is_read_on(kafka_broker, new_consumer, fill, read, api):
    fill("orders", count=10)
    kafka_broker.faults.fail_next(api, NotLeaderOrFollowerError, 2, topic="orders")
    assert len(read(new_consumer("orders"), 10)) == 10


def test_a_consumer_survives_the_restart_of_its_broker(kafka_broker, new_consumer, fill, read):
    fill("orders", count=10)
    consumer = new_consumer("orders")
    assert len(read(consumer, 10)) == 10
    kafka_broker.restart()
    fill("orders", count=10, first=10)
    assert read(consumer, 10) == [(0, number) for number in range(10, 20)]


def test_a_wakeup_from_another_thread_ends_the_wait(new_consumer, fill):
    fill("orders", count=0)
    consumer = new_consumer("orders")
    waker = threading.Timer(0.1, consumer.wakeup)
    waker.start()
    with pytest.raises(WakeupError):
        consumer.poll(timeout_ms=60_000)
    waker.join()
    assert consumer.poll(timeout_ms=0) == {}


def test_a_second_thread_is_refused(new_consumer, fill):
    fill("orders", count=0)
    consumer = new_consumer("orders")

    def poll_until_woken():
        with pytest.raises(WakeupError):
            consumer.poll(timeout_ms=60_000)

    polling = threading.Thread(target=poll_until_woken)
    polling.start()
    while not consumer.metrics()["consumer-fetch-manager-metrics"]["fetch-total"]:
        pass  # until it is well inside
    with pytest.raises(IllegalStateError, match="one thread at a time"):
        consumer.seek_to_end()
    consumer.wakeup()
    polling.join(30)
    assert not polling.is_alive()


def test_a_closed_consumer_says_so(new_consumer, fill):
    fill("orders", count=1)
    consumer = new_consumer("orders")
    consumer.close()
    consumer.close()
    with pytest.raises(IllegalStateError, match="closed"):
        consumer.poll()
    assert list(consumer) == []


def test_there_is_nothing_to_poll_without_topics(new_consumer):
    with pytest.raises(IllegalStateError, match=r"subscribe\(\) or assign\(\)"):
        new_consumer().poll()


def test_a_topic_that_comes_later_is_read_when_it_comes(new_consumer, fill, read, caplog):
    consumer = new_consumer("orders", allow_auto_create_topics=False, metadata_max_age_ms=500)
    while "'orders' cannot be read yet" not in caplog.text:
        assert consumer.poll(timeout_ms=100) == {}
    fill("orders", count=3)
    assert len(read(consumer, 3)) == 3


def test_figures_are_told_under_kafkas_names(new_consumer, fill, read):
    fill("orders", count=10)
    consumer = new_consumer("orders")
    read(consumer, 10)
    figures = consumer.metrics()
    fetching = figures["consumer-fetch-manager-metrics"]
    assert fetching["records-consumed-total"] == 10
    assert fetching["records-lag-max"] == fetching["orders-0.records-lag"] == consumer.lag(P0) == 0
    assert fetching["orders-0.records-lead"] == 10
    assert fetching["fetch-total"] >= 1
    assert figures["consumer-coordinator-metrics"]["assigned-partitions"] == 1
    assert consumer.highwater(P0) == 10
    raw = {
        (name.name, name.tags.get("topic"), name.tags.get("partition")): metric.value()
        for name, metric in consumer.metrics(raw=True).items()
    }
    assert raw["records-lead", "orders", "0"] == raw["records-consumed-total", None, None] == 10
