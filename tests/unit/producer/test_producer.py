"""`KafkaProducer` on a scripted network: back-pressure, flush, close, idempotence."""

import logging

import pytest

from pyclient import KafkaProducer
from pyclient.error_codes import ClusterAuthorizationError
from pyclient.errors import (
    BufferExhaustedError,
    IllegalStateError,
    KafkaTimeoutError,
    NotLeaderOrFollowerError,
    UnsupportedVersionError,
)
from pyclient.net.scripted import DISCONNECT
from pyclient.protocol.messages.init_producer_id import (
    InitProducerIdRequest,
    InitProducerIdResponse,
)
from pyclient.protocol.messages.metadata import MetadataRequest
from pyclient.protocol.messages.produce import ProduceRequest
from pyclient.serialization import Serializer
from tests.support.scripted_log import ScriptedLog


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
        assert "closing with 1 unacknowledged batches after 2.0 s" in caplog.text
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

    def test_a_serializer_that_fails_to_close_is_logged(self, log, new_producer, caplog):
        class Failing(Serializer):
            def serialize(self, topic, headers, data):
                return data

            def close(self):
                raise OSError("still in use")

        new_producer(key_serializer=Failing()).close()
        assert "still in use" in caplog.text


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
