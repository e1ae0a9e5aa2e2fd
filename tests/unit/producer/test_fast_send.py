"""The native fast path of ordinary records, and when it is not taken."""

import gc
import inspect
import weakref

import pytest

from pyclient import KafkaProducer, _twin
from pyclient.clock import ManualClock, SystemClock
from pyclient.producer.partitioner import partition_for_key
from tests.support.threads import run_on_threads, switching

send_module = _twin.load("native")["send"]
batch_module = _twin.load("native")["batch"]


class Short:
    """A topic of three partitions with an open batch each; lists the records on the slow path."""

    def __init__(self, clock=None):
        self.slow = []
        self.clock = clock or ManualClock(1234)
        self.topic = send_module.TopicSlots()
        self.builders = [batch_module.BatchBuilder(bytearray(300)) for _ in range(3)]
        for number, builder in enumerate(self.builders):
            slot = send_module.AppendSlot()
            slot.open(builder, f"result {number}")
            self.topic.add(slot)
        self.topic.partition_count = 3
        self.topic.sticky = self.topic.slots[1]
        self.topics = {"t": self.topic}
        fast = send_module.FastSend()
        fast._set_up_send(self.topics, self.clock, self.take_the_long_way, send_module.RecordFuture)
        self.send = fast.send

    def take_the_long_way(self, *arguments):
        self.slow.append(arguments)
        return "the long way"


def test_a_record_without_a_key_goes_to_the_sticky_partition():
    short = Short()
    future = short.send("t", b"value")
    assert (future.batch_result, future.batch_index, future.timestamp_ms) == ("result 1", 0, 1234)
    assert (future.key_size, future.value_size, future.headers_size) == (-1, 5, -1)
    assert short.send("t", b"").batch_index == 1
    assert [builder.record_count for builder in short.builders] == [0, 2, 0]


def test_a_partition_that_is_given_is_taken():
    short = Short()
    for partition in (2, 0, 2):
        future = short.send("t", b"v", b"k", None, partition)
        assert future.batch_result == f"result {partition}"
    assert [builder.record_count for builder in short.builders] == [1, 0, 2]
    assert not short.slow


def test_a_key_goes_where_java_would_send_it():
    short = Short()
    for key in (b"a", b"bb", b"ccc", b"dddd"):
        future = short.send("t", None, key)
        assert future.batch_result == f"result {partition_for_key(key, 3)}"
        assert (future.key_size, future.value_size) == (len(key), -1)
    assert not short.slow


def test_the_machines_clock_is_read_without_a_call():
    clock = SystemClock()
    before = clock.now_ms()
    assert before <= Short(clock).send("t", b"v").timestamp_ms <= clock.now_ms()


@pytest.mark.parametrize(
    "arguments",
    [
        {"topic": "unknown", "value": b"v"},
        {"topic": b"t", "value": b"v"},
        {"topic": "t"},
        {"topic": "t", "value": "text"},
        {"topic": "t", "value": bytearray(b"v")},
        {"topic": "t", "value": b"v", "key": memoryview(b"k")},
        {"topic": "t", "value": b"v", "headers": []},
        {"topic": "t", "value": b"v", "partition": 10},
        {"topic": "t", "value": b"v", "partition": -1},
        {"topic": "t", "value": b"v", "partition": 2**70},
        {"topic": "t", "value": b"v", "partition": True},
        {"topic": "t", "value": b"v", "timestamp_ms": 5},
        {"topic": "t", "value": b"too large for the buffer" * 20},
    ],
)
def test_all_else_takes_the_long_way(arguments):
    short = Short()
    assert short.send(**arguments) == "the long way"
    names = ("topic", "value", "key", "headers", "partition")
    assert short.slow[0][:5] == tuple(arguments.get(name) for name in names)
    assert sum(builder.record_count for builder in short.builders) == 0


def test_a_sealed_batch_and_a_closed_slot_take_the_long_way():
    short = Short()
    short.builders[1].seal()
    assert short.send("t", b"v") == "the long way"
    short.topic.sticky.close()
    assert short.send("t", b"v") == "the long way"


def test_futures_are_not_the_garbage_collectors_business():
    assert not gc.is_tracked(Short().send("t", b"v"))


def test_a_future_of_another_kind_is_refused():
    with pytest.raises(TypeError, match="not a native RecordFuture"):
        send_module.FastSend()._set_up_send({}, ManualClock(), print, object)


def test_restless_threads_lose_and_tear_nothing():
    short = Short()
    size = 100_000
    builder = batch_module.BatchBuilder(bytearray(size))
    short.topic.sticky.open(builder, "shared")
    indexes = []

    def send_some(_thread):
        futures = [short.send("t", b"x" * 10) for _ in range(1000)]
        indexes.extend(future.batch_index for future in futures)

    with switching():
        run_on_threads(4, send_some)
    assert sorted(indexes) == list(range(4000))
    assert builder.record_count == 4000


def test_a_topic_without_partitions_is_no_division_by_zero():
    short = Short()
    short.topic.partition_count = 0
    assert short.send("t", b"v", b"key") == "the long way"


def test_slots_of_the_other_twin_are_left_to_the_long_way():
    short = Short()
    short.topics["t"] = _twin.load("python")["send"].TopicSlots()
    assert short.send("t", b"v") == "the long way"


class TestProducer:
    def test_its_send_keeps_it_alive(self, network, log):
        send = KafkaProducer(bootstrap_servers="broker1", environment=network).send
        assert send("orders", b"v").get(5).topic == "orders"
        send.__self__.close()

    def test_its_send_says_what_it_takes(self):
        names = list(inspect.signature(KafkaProducer.send).parameters)
        assert names[1:] == ["topic", "value", "key", "headers", "partition", "timestamp_ms"]
        assert "Returns:" in KafkaProducer.send.__doc__

    def test_a_subclass_that_has_its_own_send_is_asked(self, network, log):
        class Loud(KafkaProducer):
            def send(self, topic, value=None, **options):
                return super().send(topic, value.upper(), **options)

        with Loud(bootstrap_servers="broker1", environment=network) as loud:
            loud.send("orders", b"espresso", partition=0).get(5)
        assert log.values("orders", 0) == [b"ESPRESSO"]

    def test_a_closed_producer_knows_no_short_way(self, log, producer):
        producer.send("orders", b"v").get(5)
        producer.close()
        with pytest.raises(Exception, match="closed"):
            producer.send("orders", b"v")

    def test_a_producer_that_nobody_holds_is_gone_at_once(self, network, log):
        producer = KafkaProducer(bootstrap_servers="broker1", environment=network)
        producer.send("orders", b"v").get(5)
        producer.close()
        seen = weakref.ref(producer)
        gc.disable()
        try:
            del producer
            assert seen() is None
        finally:
            gc.enable()
