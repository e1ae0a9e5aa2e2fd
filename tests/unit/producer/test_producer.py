"""`KafkaProducer` on a scripted network: its arguments, its errors, its end."""

import json
import logging

import pytest

from pyclient import KafkaProducer, TopicPartition
from pyclient.error_codes import ClusterAuthorizationError
from pyclient.errors import (
    BufferExhaustedError,
    IllegalStateError,
    InvalidTopicError,
    KafkaConfigurationError,
    KafkaTimeoutError,
    NoBrokersAvailable,
    NotLeaderOrFollowerError,
    RecordTooLargeError,
    UnsupportedVersionError,
)
from pyclient.net.scripted import DISCONNECT
from pyclient.producer.partitioner import partition_for_key
from pyclient.protocol.messages.init_producer_id import (
    InitProducerIdRequest,
    InitProducerIdResponse,
)
from pyclient.protocol.messages.metadata import MetadataRequest
from pyclient.protocol.messages.produce import ProduceRequest
from pyclient.serialization import JsonSerializer, Serializer
from tests.support.scripted_log import ScriptedLog


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

    @pytest.mark.parametrize("partition", [2, -1])
    def test_a_partition_that_does_not_exist_after_another_look(self, network, producer, partition):
        producer.send("orders", b"v").get(5)
        asked = len(network.brokers[1].received(MetadataRequest))
        with pytest.raises(ValueError, match=f"has 2 partitions.*no partition {partition}"):
            producer.send("orders", b"v", partition=partition)
        assert len(network.brokers[1].received(MetadataRequest)) == asked + 1

    def test_a_partition_that_is_new_is_found_by_another_look(self, network, log, producer):
        producer.send("orders", b"v").get(5)
        network.topics["orders"] = 3
        assert producer.send("orders", b"v", partition=2).get(5).partition == 2

    def test_a_negative_timestamp(self, producer):
        with pytest.raises(ValueError, match="timestamp"):
            producer.send("orders", b"v", timestamp_ms=-5)

    def test_a_misspelt_option_gets_the_nearest_name(self):
        with pytest.raises(KafkaConfigurationError, match="did you mean 'linger_ms'"):
            KafkaProducer(lingr_ms=5)

    def test_a_record_larger_than_a_request_may_be(self, producer):
        with pytest.raises(RecordTooLargeError, match=r"1048576 of max\.request\.size") as caught:
            producer.send("orders", b"x" * 2_000_000)
        assert caught.value.limit == 1_048_576
        assert caught.value.size > 2_000_000


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
        describe = network.describe

        def refuse(request, version):
            response = describe(request, version)
            for topic in response.topics:
                topic.error_code = InvalidTopicError.code
                topic.partitions = []
            return response

        network.brokers[1].on(MetadataRequest, refuse)
        future = producer.send("tea", b"v")
        assert isinstance(future.exception, InvalidTopicError)
        assert future.topic_partition == ("tea", -1)

    def test_partitions_for_waits_and_says_why_there_are_none(self, log, new_producer):
        producer = new_producer(max_block_ms=500)
        assert producer.partitions_for("orders") == {0, 1}
        with pytest.raises(KafkaTimeoutError, match="does not exist"):
            producer.partitions_for("tea")


class TestBackPressure:
    def test_send_fails_when_memory_stays_full_and_says_how_full_and_why(
        self, network, log, new_producer
    ):
        producer = new_producer(
            buffer_memory=40_000, max_block_ms=1_000, bootstrap_timeout_ms=1_000
        )
        producer.send("orders", b"v").get(5)
        network.brokers[1].refuse_connections()
        for _ in range(2):  # two buffers' worth
            producer.send("orders", b"x" * 16_000)
        started_ms = network.clock.monotonic_ms()
        with pytest.raises(
            BufferExhaustedError, match=r"of the 40000 bytes of buffer\.memory.*nothing listens"
        ) as caught:
            producer.send("orders", b"x" * 16_000)
        assert caught.value.buffered > 30_000
        assert network.clock.monotonic_ms() - started_ms >= 1_000

    def test_send_goes_on_when_memory_comes_back(self, log, new_producer):
        producer = new_producer(buffer_memory=40_000, max_block_ms=5_000)
        futures = [producer.send("orders", b"x" * 1000) for _ in range(200)]
        producer.flush()
        assert all(future.succeeded() for future in futures)
        assert len(log.all_values("orders")) == 200

    def test_in_a_callback_send_never_blocks(self, network, log, new_producer):
        producer = new_producer(buffer_memory=20_000, batch_size=16_384)
        outcomes = []

        def on_success(_):
            outcomes.append(producer.send("orders", b"y"))  # memory is back by now
            outcomes.append(producer.send("orders", b"x" * 18_000))  # but not for this, too
            outcomes.append(producer.send("unheard-of", b"z"))

        producer.send("orders", b"v", partition=0).add_callback(on_success)
        before_ms = network.clock.monotonic_ms()
        producer.flush()
        taken, no_memory, no_metadata = outcomes
        assert taken.exception is None
        assert "a callback must not wait" in str(no_memory.exception)
        assert "a callback must not wait" in str(no_metadata.exception)
        assert network.clock.monotonic_ms() - before_ms < 100

    @pytest.mark.parametrize("call", ["flush", "close", "partitions_for", "get"])
    def test_in_a_callback_nothing_else_waits_either(self, log, producer, call):
        raised = []

        def on_success(_):
            pending = producer.send("orders", b"w")
            calls = {
                "flush": producer.flush,
                "close": producer.close,
                "partitions_for": lambda: producer.partitions_for("orders"),
                "get": pending.get,
            }
            with pytest.raises(IllegalStateError, match=call) as caught:
                calls[call]()
            raised.append(caught.value)

        producer.send("orders", b"v").add_callback(on_success)
        producer.flush()
        assert len(raised) == 1


class TestFlushAndClose:
    def test_flush_sends_at_once_whatever_the_linger(self, network, log, new_producer):
        producer = new_producer(linger_ms=60_000)
        future = producer.send("orders", b"v")
        before_ms = network.clock.monotonic_ms()
        producer.flush()
        assert future.succeeded()
        assert network.clock.monotonic_ms() - before_ms < 1000

    def test_flush_returns_after_the_callbacks(self, log, producer):
        offsets = []
        for _ in range(3):
            future = producer.send("orders", b"v", partition=0)
            future.add_callback(lambda metadata: offsets.append(metadata.offset))
        producer.flush()
        assert offsets == [0, 1, 2]

    def test_flush_is_bounded_and_says_what_is_missing(self, network, log, producer):
        producer.send("orders", b"v").get(5)
        network.brokers[1].on(ProduceRequest, None)
        producer.send("orders", b"w")
        before_ms = network.clock.monotonic_ms()
        with pytest.raises(KafkaTimeoutError, match=r"1 batches .* after 2\.0 s"):
            producer.flush(timeout=2)
        assert network.clock.monotonic_ms() - before_ms == 2_000

    def test_an_unbounded_flush_ends_when_the_delivery_time_is_over(
        self, network, log, new_producer
    ):
        producer = new_producer(request_timeout_ms=1_000, delivery_timeout_ms=5_000)
        network.brokers[1].on(ProduceRequest, None)
        future = producer.send("orders", b"w")
        before_ms = network.clock.monotonic_ms()
        producer.flush()
        assert isinstance(future.exception, KafkaTimeoutError)
        assert network.clock.monotonic_ms() - before_ms == pytest.approx(5_000, abs=1_100)

    def test_close_sends_what_is_there(self, log, producer):
        futures = [producer.send("orders", b"%d" % number) for number in range(5)]
        producer.close()
        assert all(future.succeeded() for future in futures)
        assert len(log.all_values("orders")) == 5

    def test_close_is_bounded_and_fails_the_rest(self, network, log, producer, caplog):
        producer.send("orders", b"v").get(5)
        network.brokers[1].on(ProduceRequest, None)
        future = producer.send("orders", b"w")
        before_ms = network.clock.monotonic_ms()
        producer.close(timeout=2)
        assert future.failed()
        assert network.clock.monotonic_ms() - before_ms <= 2_000
        assert "closed with 1 batches not acknowledged after 2.0 s" in caplog.text
        assert producer._core.pool.available == producer._core.pool.total

    def test_after_close_everything_says_so(self, log, producer):
        producer.close()
        producer.close()
        with pytest.raises(IllegalStateError, match=r"send\(\).*closed"):
            producer.send("orders", b"v")
        with pytest.raises(IllegalStateError, match=r"partitions_for\(\).*closed"):
            producer.partitions_for("orders")
        producer.flush()

    def test_a_negative_timeout_is_refused(self, producer):
        with pytest.raises(ValueError, match="negative"):
            producer.close(timeout=-1)
        producer.close()

    def test_the_end_of_a_with_block_closes(self, network, log):
        with KafkaProducer(bootstrap_servers="broker1", environment=network) as producer:
            future = producer.send("orders", b"v")
        assert future.succeeded()

    def test_serializers_are_closed_too_once(self, log, new_producer):
        class Closing(Serializer):
            closed = 0

            def serialize(self, topic, headers, data):
                return data

            def close(self):
                self.closed += 1

        serializer = Closing()
        producer = new_producer(value_serializer=serializer)
        producer.close()
        producer.close()
        assert serializer.closed == 1


class TestIdempotence:
    def test_it_is_on_by_default_and_off_without_all_acks(self, network, log, new_producer):
        new_producer().send("orders", b"v", partition=0).get(5)
        new_producer(acks=1).send("orders", b"v", partition=0).get(5)
        producers = [batch.producer_id for batch in log.partitions["orders", 0].batches]
        assert producers == [1, -1]
        assert [request.acks for request, _ in log.requests] == [-1, 1]

    def test_a_refused_producer_id_fails_everything_with_the_reason(self, network, log, producer):
        code = ClusterAuthorizationError.code
        network.brokers[1].on(InitProducerIdRequest, InitProducerIdResponse(error_code=code))
        other = KafkaProducer(bootstrap_servers="broker1", environment=network)
        with pytest.raises(ClusterAuthorizationError):
            other.send("orders", b"v").get(5)
        with pytest.raises(ClusterAuthorizationError):
            other.send("orders", b"w").get(5)
        other.close()

    def test_a_producer_id_is_asked_for_until_there_is_one(self, network, log, new_producer):
        not_yet = InitProducerIdResponse(error_code=15)  # coordinator not available
        answers = [not_yet, not_yet, InitProducerIdResponse(producer_id=5, producer_epoch=0)]
        network.brokers[1].on(InitProducerIdRequest, answers)
        assert new_producer().send("orders", b"v").get(5).offset == 0
        assert len(network.brokers[1].received(InitProducerIdRequest)) == 3

    def test_brokers_that_cannot_do_it_say_what_to_set(self, network, log, new_producer):
        del network.brokers[1].versions[22]
        producer = new_producer()
        with pytest.raises(UnsupportedVersionError, match="set enable_idempotence=False"):
            producer.send("orders", b"v").get(5)
        plain = new_producer(enable_idempotence=False)
        assert plain.send("orders", b"v", partition=0).get(5).offset == 0

    def test_retries_through_disconnects_and_lost_answers_write_once_and_in_order(
        self, log, producer
    ):
        log.script.extend([DISCONNECT, ScriptedLog.lost, 6, None, ScriptedLog.lost, 7])
        values = [b"%03d" % number for number in range(60)]
        futures = []
        for value in values:
            futures.append(producer.send("orders", value, partition=0))
            if len(futures) % 10 == 0:
                producer._core.accumulator.seal_all()
        producer.flush()
        assert log.values("orders", 0) == values
        assert [future.get().offset for future in futures] == list(range(60))


class TestAcksAndVersions:
    def test_without_acks_nothing_is_waited_for(self, log, new_producer):
        producer = new_producer(acks=0)
        future = producer.send("orders", b"v", partition=0)
        assert future.get(5).offset == -1
        assert log.values("orders", 0) == [b"v"]

    @pytest.mark.parametrize("version", [3, 7, 9, 12, 13])
    def test_brokers_of_all_ages(self, network, log, new_producer, version):
        network.brokers[1].versions[0] = (3, version)
        producer = new_producer()
        assert producer.send("orders", b"v", partition=1).get(5).partition == 1
        assert [used for _, used in log.requests] == [version]

    def test_a_leader_error_refreshes_metadata_before_the_retry(self, network, log, producer):
        producer.send("orders", b"v", partition=0).get(5)
        asked = len(network.brokers[1].received(MetadataRequest))
        log.script.append(NotLeaderOrFollowerError.code)
        assert producer.send("orders", b"w", partition=0).get(5).offset == 1
        assert len(network.brokers[1].received(MetadataRequest)) > asked


def test_linger_waits_for_more_and_zero_does_not(network, log, new_producer):
    lingering = new_producer(linger_ms=100)
    lingering.send("orders", b"v", partition=0).get(5)
    before_ms = network.clock.monotonic_ms()
    lingering.send("orders", b"v", partition=0).get(5)
    assert network.clock.monotonic_ms() - before_ms >= 100
    prompt = new_producer(linger_ms=0)
    prompt.send("orders", b"v", partition=0).get(5)
    before_ms = network.clock.monotonic_ms()
    prompt.send("orders", b"v", partition=0).get(5)
    assert network.clock.monotonic_ms() == before_ms


def test_batch_size_zero_sends_records_one_by_one(log, new_producer):
    producer = new_producer(batch_size=0)
    for number in range(4):
        producer.send("orders", b"%d" % number, partition=0)
    producer.flush()
    assert [batch.record_count for batch in log.partitions["orders", 0].batches] == [1] * 4


def test_an_idle_producer_wakes_seldom(network, log, producer):
    producer.send("orders", b"v").get(5)
    turns = []
    run_once = producer._core.engine._io_thread.run_once
    producer._core.engine._io_thread.run_once = lambda: (turns.append(1), run_once())
    network.run_for(60_000)
    assert len(turns) < 10


def test_metrics_have_kafkas_names(log, producer):
    for _ in range(10):
        producer.send("orders", b"v" * 100, partition=0)
    producer.flush()
    figures = producer.metrics()["producer-metrics"]
    assert figures["record-send-total"] == 10
    assert figures["records-per-request-avg"] == 10
    assert figures["batch-size-avg"] > 1000
    assert figures["buffer-available-bytes"] == figures["buffer-total-bytes"] == 33_554_432


def test_nothing_is_logged_per_record(log, producer, caplog):
    caplog.set_level(logging.DEBUG)
    producer.send("orders", b"v", partition=0).get(5)
    caplog.clear()
    for _ in range(100):
        producer.send("orders", b"v", partition=0)
    producer.flush()
    assert len(caplog.records) < 10


def test_it_says_which_client_it_is(log, new_producer):
    assert repr(new_producer(client_id="till-3")) == "<KafkaProducer client_id=till-3>"
