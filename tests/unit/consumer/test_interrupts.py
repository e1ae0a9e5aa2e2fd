"""A signal handler interrupts the main thread inside a poll: nothing is skipped or repeated."""

import pytest

from pyclient import KafkaConsumer, TopicPartition, _twin
from pyclient._pure.cursor import RecordCursor as PureCursor
from pyclient.consumer.fetch.buffer import FetchBuffer
from pyclient.consumer.fetch.collector import FetchCollector
from pyclient.consumer.fetch.completed_fetch import CompletedFetch
from pyclient.consumer.iteration import RecordIterator
from pyclient.consumer.poll_loop import PollLoop
from pyclient.consumer.subscription_state import SubscriptionState
from pyclient.net.scripted import ScriptedNetwork
from tests.support.interrupts import Interrupt, lines_of
from tests.support.scripted_group import ScriptedGroup

P0 = TopicPartition("orders", 0)
VALUES = [b"%d" % number for number in range(14)]

READING = (
    FetchCollector._begin,
    FetchCollector.close,
    FetchCollector._make_room,
    FetchCollector._is_next,
    FetchCollector._finish,
    FetchCollector._drop,
    CompletedFetch._readable,
    FetchBuffer.first,
    FetchBuffer.remove,
    SubscriptionState.advance,
    SubscriptionState.position_in,
    PollLoop._begin,
    PollLoop._attend,
    PollLoop._wait,
)
RECORDS = (
    FetchCollector.collect,
    FetchCollector._read,
    FetchCollector._deserialized,
    CompletedFetch.read,
    CompletedFetch._read_batch,
    RecordIterator.settle,
)
POLLING = (
    FetchCollector.advance,
    FetchCollector._advance,
    PollLoop.poll,
    PollLoop.returned,
    KafkaConsumer.poll,
    RecordIterator.rewind,
)
ITERATING = (
    RecordIterator.begin_refill,
    RecordIterator.feed,
    RecordIterator.open_next,
    RecordIterator.prune,
    RecordIterator._drop,
    PollLoop._refill,
    PollLoop._has_next,
)
IN_THE_PURE_TWIN = (PureCursor.__next__, PureCursor.load, PureCursor.open)
COLUMNS = (
    FetchCollector.collect_columns,
    FetchCollector._advance,
    CompletedFetch.read_columns,
    CompletedFetch._read_batch_columns,
    PollLoop.poll_arrow,
    KafkaConsumer.poll_arrow,
)


class FewAtATime(ScriptedGroup):
    """Sends at most four records in a response, so that several fetches wait in the buffer."""

    def fetch(self, request, version):
        values = self.values
        offset = request.topics[0].partitions[0].fetch_offset if request.topics else 0
        self.values = values[: offset + 4]
        try:
            return super().fetch(request, version)
        finally:
            self.values = values


@pytest.fixture
def consumer():
    network = ScriptedNetwork()
    network.add_broker(1)
    network.add_topic("orders")
    FewAtATime(network, network.brokers[1], VALUES)
    consumer = KafkaConsumer(
        "orders",
        bootstrap_servers="broker1",
        environment=network,
        auto_offset_reset="earliest",
        group_id="g",
        max_poll_records=3,
        value_deserializer=lambda data: data,
        enable_auto_commit=False,
    )
    yield consumer
    consumer.close(timeout_ms=0)


def poll(consumer):
    polled = consumer.poll(timeout_ms=1_000)
    return [record.value for records in polled.values() for record in records]


def iterate(consumer):
    return [next(consumer).value]


def poll_arrow(consumer):
    return consumer.poll_arrow(timeout_ms=1_000, max_records=3)["value"].to_pylist()


@pytest.mark.parametrize("after", [0, 2])
@pytest.mark.parametrize(
    ("code", "line", "way"),
    [
        *lines_of((*READING, *RECORDS, *POLLING), poll),
        *lines_of((*READING, *RECORDS, *ITERATING), iterate),
        *lines_of((*READING, *COLUMNS), poll_arrow),
    ],
)
def test_ctrl_c_at_any_line_skips_and_repeats_nothing(consumer, code, line, way, after):
    check(consumer, code, line, way, after)


@pytest.mark.parametrize("after", [0, 2])
@pytest.mark.parametrize(("code", "line", "way"), lines_of(IN_THE_PURE_TWIN, iterate))
def test_ctrl_c_in_the_pure_cursor_skips_and_repeats_nothing(
    monkeypatch, request, code, line, way, after
):
    monkeypatch.setattr(_twin, "RecordCursor", PureCursor)
    check(request.getfixturevalue("consumer"), code, line, way, after)


def check(consumer, code, line, way, after):
    got = []
    with Interrupt(code, line, after):
        for _ in range(40):
            try:
                got += way(consumer)
            except KeyboardInterrupt:
                continue
            finally:
                position = consumer._core.subscription.positions().get(P0)
                # Settled or not, it is never ahead of what the program has.
                assert position is None or position.offset <= len(got)
            if len(got) >= len(VALUES):
                break
    assert got == VALUES
    assert consumer.position(P0) == len(VALUES)
