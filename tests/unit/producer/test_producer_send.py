"""`KafkaProducer.send` on a scripted network: what arrives, and what is refused."""

import json
from datetime import UTC, datetime

import pytest

from pyclient import KafkaProducer, TopicPartition
from pyclient.errors import (
    InvalidTopicError,
    KafkaConfigurationError,
    KafkaTimeoutError,
    NoBrokersAvailable,
    RecordTooLargeError,
)
from pyclient.producer.partitioner import partition_for_key
from pyclient.protocol.messages.metadata import MetadataRequest
from pyclient.serialization import JsonSerializer, Serializer
from tests.support.refused_topics import refuse_topics


class TestSend:
    def test_a_record_arrives_with_all_that_belongs_to_it(self, log, producer):
        future = producer.send(
            "orders", b"espresso", key=b"table-7", headers=[("a", b"b")], timestamp_ms=1234
        )
        metadata = future.get(timeout=5)
        expected = partition_for_key(b"table-7", 2)
        assert metadata.topic_partition == TopicPartition("orders", expected)
        assert (metadata.offset, metadata.timestamp, metadata.checksum) == (0, 1234, None)
        assert metadata.serialized_key_size == 7
        assert metadata.serialized_value_size == 8
        assert metadata.serialized_header_size == 2
        (record,) = log.partitions["orders", expected].records
        assert (record.key, record.value) == (b"table-7", b"espresso")
        assert (record.headers, record.timestamp) == ([("a", b"b")], 1234)

    def test_the_timestamp_is_now_by_default(self, network, log, producer):
        now_ms = network.clock.now_ms()
        assert producer.send("orders", b"v").get(5).timestamp == now_ms

    def test_keys_and_values_may_be_views_and_null(self, log, producer):
        producer.send("orders", memoryview(b"v"), partition=0)
        producer.send("orders", bytearray(b"w"), partition=0)
        producer.send("orders", None, key=b"gone", partition=0)
        producer.flush()
        records = log.partitions["orders", 0].records
        assert [(one.key, one.value) for one in records] == [
            (None, b"v"),
            (None, b"w"),
            (b"gone", None),
        ]

    @pytest.mark.parametrize(
        ("given", "value"),
        [
            (memoryview(b"abcdefgh").cast("I"), b"abcdefgh"),
            (memoryview(b"abcdefgh")[::2], b"aceg"),
            (memoryview(b""), b""),
            (type("Hash", (bytes,), {})(b"abc"), b"abc"),
        ],
    )
    def test_unusual_views_and_subclasses_of_bytes_arrive_as_their_bytes(
        self, log, producer, given, value
    ):
        metadata = producer.send("orders", given, key=given, partition=0).get(5)
        assert metadata.serialized_value_size == metadata.serialized_key_size == len(value)
        producer.send_many("orders", [given], keys=[given], partition=0).get(5)
        records = log.partitions["orders", 0].records
        assert [(one.key, one.value) for one in records] == [(value, value)] * 2

    def test_serializers_get_what_was_sent(self, log, new_producer):
        producer = new_producer(value_serializer=JsonSerializer(), key_serializer=str.encode)
        producer.send("orders", {"table": 7}, key="k", partition=0).get(5)
        (record,) = log.partitions["orders", 0].records
        assert (record.key, json.loads(record.value)) == (b"k", {"table": 7})

    def test_a_serializer_sees_topic_and_headers(self, log, new_producer):
        seen = []

        class Spy(Serializer):
            def serialize(self, topic, headers, data):
                seen.append((topic, list(headers), data))
                return b"x"

        producer = new_producer(value_serializer=Spy())
        producer.send("orders", 1, headers=[("h", b"1")])
        assert seen == [("orders", [("h", b"1")], 1)]

    def test_a_partitioner_of_the_programs_own_decides(self, log, new_producer):
        producer = new_producer(partitioner=lambda key, everything, available: everything[-1])
        assert producer.send("orders", b"v", key=b"k").get(5).partition == 1

    def test_keys_can_be_ignored(self, log, new_producer):
        producer = new_producer(partitioner_ignore_keys=True)
        futures = [producer.send("orders", b"v", key=b"%d" % number) for number in range(10)]
        futures += producer.send_many("orders", [b"v"] * 10, keys=[b"%d" % n for n in range(10)])
        producer.flush()
        assert len({future.get(0).partition for future in futures}) == 1
        assert {
            record.key for records in log.partitions.values() for record in records.records
        } == {b"%d" % number for number in range(10)}

    def test_records_without_a_key_share_a_batch(self, log, producer):
        for number in range(10):
            producer.send("orders", b"%d" % number)
        producer.flush()
        assert len(log.requests) == 1

    def test_every_codec_arrives(self, log, new_producer, twin):
        for codec in (None, "gzip", "snappy", "lz4", "zstd"):
            producer = new_producer(compression_type=codec)
            producer.send("orders", b"v" * 1000, partition=0)
            producer.flush()
        partition = log.partitions["orders", 0]
        assert [batch.codec for batch in partition.batches] == [0, 1, 2, 3, 4]
        assert log.values("orders", 0) == [b"v" * 1000] * 5

    def test_the_first_send_asks_for_the_topics_metadata_and_later_ones_do_not(
        self, network, log, producer
    ):
        producer.send("orders", b"a").get(5)
        asked = len(network.brokers[1].received(MetadataRequest))
        producer.send("orders", b"b").get(5)
        assert len(network.brokers[1].received(MetadataRequest)) == asked

    def test_a_topic_that_loses_its_partitions_for_a_while_is_waited_for(
        self, network, log, producer
    ):
        producer.send("orders", b"v", key=b"k").get(5)
        network.topics["orders"] = 0
        metadata = producer._core.engine.metadata
        metadata.request_update()
        metadata.wait_for_update(metadata.snapshot, 5_000)
        network.topics["orders"] = 2
        assert producer.send("orders", b"w", key=b"k").get(5).offset == 1

    def test_a_topic_that_comes_into_being_is_sent_to(self, network, log, producer):
        network.auto_create_topics = True
        assert producer.send("tea", b"v").get(5).topic == "tea"


class TestWrongArguments:
    def test_neither_key_nor_value(self, producer):
        with pytest.raises(ValueError, match="a key or a value"):
            producer.send("orders")

    @pytest.mark.parametrize("name", ["value", "key"])
    def test_text_where_bytes_are_wanted_names_the_serializer(self, producer, name):
        with pytest.raises(TypeError, match=f"the {name} is a str, not bytes.*{name}_serializer"):
            producer.send("orders", **{"value": b"v", name: "text"})

    @pytest.mark.parametrize(
        "headers", [{"a": b"b"}, [("a", "text")], [("a",)], [(b"a", b"b")], ["ab"]]
    )
    def test_headers_that_are_none(self, producer, headers):
        with pytest.raises(TypeError, match="header"):
            producer.send("orders", b"v", headers=headers)

    @pytest.mark.parametrize("topic", ["", "a b", "a/b", "..", "x" * 250])
    def test_what_is_no_topics_name(self, producer, topic):
        with pytest.raises(ValueError, match="is not a topic's name"):
            producer.send(topic, b"v")

    def test_a_topic_that_is_not_text(self, producer):
        with pytest.raises(TypeError, match="a topic's name is a str, not bytes"):
            producer.send(b"orders", b"v")

    @pytest.mark.parametrize(("partition", "looks"), [(2, 1), (-1, 0)])
    def test_a_partition_that_does_not_exist_after_another_look_that_may_help(
        self, network, producer, partition, looks
    ):
        producer.send("orders", b"v").get(5)
        asked = len(network.brokers[1].received(MetadataRequest))
        with pytest.raises(ValueError, match=f"has 2 partitions.*no partition {partition}"):
            producer.send("orders", b"v", partition=partition)
        assert len(network.brokers[1].received(MetadataRequest)) == asked + looks

    @pytest.mark.parametrize("partition", ["0", 1.0, [0]])
    def test_a_partition_of_another_type(self, producer, partition):
        kind = type(partition).__name__
        with pytest.raises(TypeError, match=f"a partition is an int, not {kind}"):
            producer.send("orders", b"v", partition=partition)
        with pytest.raises(TypeError, match=f"a partition is an int, not {kind}"):
            producer.send_many("orders", [b"v"], partition=partition)

    def test_a_partition_that_is_new_is_found_by_another_look(self, network, log, producer):
        producer.send("orders", b"v").get(5)
        network.topics["orders"] = 3
        assert producer.send("orders", b"v", partition=2).get(5).partition == 2

    @pytest.mark.parametrize("timestamp_ms", [-5, 2**63])
    def test_a_timestamp_that_kafka_cannot_hold(self, producer, timestamp_ms):
        with pytest.raises(ValueError, match=f"a timestamp is from 0 to .*, not {timestamp_ms}"):
            producer.send("orders", b"v", timestamp_ms=timestamp_ms)

    @pytest.mark.parametrize("timestamp_ms", ["5", 1.5, datetime(2026, 1, 1, tzinfo=UTC)])
    def test_a_timestamp_of_another_type(self, producer, timestamp_ms):
        kind = type(timestamp_ms).__name__
        with pytest.raises(TypeError, match=f"a timestamp is an int, not {kind}"):
            producer.send("orders", b"v", timestamp_ms=timestamp_ms)

    @pytest.mark.parametrize("name", ["value", "key"])
    def test_a_serializer_that_makes_no_bytes(self, new_producer, log, name):
        producer = new_producer(**{f"{name}_serializer": str})
        with pytest.raises(TypeError, match=f"{name}_serializer made a str of the {name}"):
            producer.send("orders", **{"value": b"v", name: 5})

    def test_a_partitioner_that_chooses_none(self, new_producer, log):
        producer = new_producer(partitioner=lambda *_: None)
        with pytest.raises(ValueError, match="returned None for topic 'orders'"):
            producer.send("orders", b"v")

    @pytest.mark.parametrize(("topic", "error"), [(b"tea", TypeError), ("a b", ValueError)])
    def test_asking_about_what_is_no_topic_harms_nobody(self, producer, topic, error):
        with pytest.raises(error, match="topic's name"):
            producer.partitions_for(topic)
        assert producer.send("orders", b"v").get(5).topic == "orders"

    def test_a_misspelt_option_gets_the_nearest_name(self):
        with pytest.raises(KafkaConfigurationError, match="did you mean 'linger_ms'"):
            KafkaProducer(lingr_ms=5)

    @pytest.mark.parametrize("option", ["max.request.size", "buffer.memory"])
    def test_a_record_too_large_fails_at_once_with_both_sizes(
        self, network, log, new_producer, option
    ):
        producer = new_producer(**{option: 50_000})
        producer.partitions_for("orders")
        before_ms = network.clock.monotonic_ms()
        with pytest.raises(RecordTooLargeError) as caught:
            producer.send("orders", b"x" * 50_000)
        assert network.clock.monotonic_ms() == before_ms
        assert (caught.value.size, caught.value.limit) == (50_072, 50_000)
        assert f"of 50072 bytes, more than the 50000 of {option}" in str(caught.value)
        producer.send("orders", b"x" * 1_000).get(5)  # and nothing is left behind
        assert producer._core.pool.available == producer._core.pool.total


class TestNoCluster:
    def test_no_broker_at_the_address(self, network, new_producer):
        network.add_broker(1).refuse_connections()
        with pytest.raises(NoBrokersAvailable, match=r"broker1:9092.*nothing listens there") as e:
            new_producer(bootstrap_timeout_ms=300)
        assert isinstance(e.value, KafkaTimeoutError)

    def test_a_given_api_version_does_not_wait_for_a_broker(self, network, new_producer):
        network.add_broker(1).refuse_connections()
        producer = new_producer(api_version=(3, 9), max_block_ms=200)
        assert not producer.bootstrap_connected()
        with pytest.raises(KafkaTimeoutError, match="nothing listens there"):
            producer.send("orders", b"v")

    def test_a_topic_that_does_not_exist(self, network, log, new_producer):
        producer = new_producer(max_block_ms=500)
        with pytest.raises(KafkaTimeoutError, match="'tea' after 500 ms: it does not exist"):
            producer.send("tea", b"v")

    def test_a_topic_that_the_brokers_refuse_fails_the_future(self, network, log, producer):
        refuse_topics(network)
        future = producer.send("tea", b"v")
        assert isinstance(future.exception, InvalidTopicError)
        assert future.topic_partition == ("tea", -1)

    def test_partitions_for_waits_and_says_why_there_are_none(self, log, new_producer):
        producer = new_producer(max_block_ms=500)
        assert producer.partitions_for("orders") == {0, 1}
        with pytest.raises(KafkaTimeoutError, match="does not exist"):
            producer.partitions_for("tea")
