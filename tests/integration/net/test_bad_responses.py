"""Responses that are late, doubled, misnumbered, cut short or too long, for every request of every
client, in memory, on sockets and with TLS: all calls end in a retry or the right error, in time.
"""

import math
import struct
from collections.abc import Callable
from contextlib import contextmanager

import pytest

from pyclient import KafkaAdminClient, KafkaConsumer, KafkaProducer
from pyclient.errors import KafkaError, KafkaTimeoutError, NoBrokersAvailable, ProtocolError
from pyclient.protocol.messages.api_versions import ApiVersionsRequest
from pyclient.protocol.messages.create_topics import CreateTopicsRequest, CreateTopicsResponse
from pyclient.protocol.messages.fetch import FetchRequest
from pyclient.protocol.messages.find_coordinator import FindCoordinatorRequest
from pyclient.protocol.messages.init_producer_id import InitProducerIdRequest
from pyclient.protocol.messages.join_group import JoinGroupRequest
from pyclient.protocol.messages.list_offsets import ListOffsetsRequest
from pyclient.protocol.messages.metadata import MetadataRequest
from pyclient.protocol.messages.offset_commit import OffsetCommitRequest
from pyclient.protocol.messages.offset_fetch import OffsetFetchRequest
from pyclient.protocol.messages.produce import ProduceRequest
from pyclient.protocol.messages.sync_group import SyncGroupRequest
from pyclient.protocol.schema import Message
from tests.support.wire_uses import PATIENCE_SECONDS, administer, consume, produce
from tests.support.wire_worlds import KINDS, TOPIC, WireWorld, wire_world

Change = Callable[[bytes], bytes | None]

EXCHANGES = [
    (use, request)
    for use, requests in (
        (produce, (ApiVersionsRequest, MetadataRequest, InitProducerIdRequest, ProduceRequest)),
        (
            consume,
            (
                FindCoordinatorRequest,
                JoinGroupRequest,
                SyncGroupRequest,
                OffsetFetchRequest,
                ListOffsetsRequest,
                FetchRequest,
                OffsetCommitRequest,
            ),
        ),
        (administer, (ApiVersionsRequest, MetadataRequest, CreateTopicsRequest)),
    )
    for request in requests
]


def short(value: object) -> str:
    """The name of a test's parameter."""
    return str(getattr(value, "__name__", value)).removesuffix("Request")


every_kind = pytest.mark.parametrize("kind", KINDS)
every_exchange = pytest.mark.parametrize(("use", "request_class"), EXCHANGES, ids=short)


def doubled(response: bytes) -> bytes:
    return response + response


def misnumbered(response: bytes) -> bytes:
    (correlation_id,) = struct.unpack_from(">i", response, 4)
    return response[:4] + struct.pack(">i", correlation_id + 1) + response[8:]


def too_long(response: bytes) -> bytes:
    return struct.pack(">i", 2**31 - 1) + response[4:]


def negative(response: bytes) -> bytes:
    return struct.pack(">i", -1) + response[4:]


def shortened(response: bytes) -> bytes:
    """A whole frame with half a response in it."""
    body = response[4 : 4 + len(response) // 2]
    return struct.pack(">i", len(body)) + body


def empty(response: bytes) -> bytes:
    return struct.pack(">i", 0)


def missing(response: bytes) -> None:
    """Delay it until its request has timed out."""


FETCH = {"fetch_max_wait_ms": 100}  # below the request timeout
RETRIED = (doubled, misnumbered, too_long, negative, empty)


def spoil(world: WireWorld, request_class: type[Message], change: Change, times: float) -> list:
    """Change the first responses to one kind of request; the list grows with each."""
    spoilt: list[Message] = []

    def tamper(request: Message, response: bytes) -> bytes | None:
        if type(request) is not request_class or len(spoilt) >= times:
            return response
        spoilt.append(request)
        return change(response)

    world.broker.tamper = tamper
    return spoilt


@every_kind
@every_exchange
@pytest.mark.parametrize("change", RETRIED, ids=lambda one: one.__name__)
def test_a_response_that_is_none_costs_a_connection_and_no_more(
    use, request_class, change, kind, kafka_tls_certificates
):
    with wire_world(kind, kafka_tls_certificates) as world:
        spoilt = spoil(world, request_class, change, times=1)
        use(world)
        assert len(spoilt) == 1
        if change is not doubled:  # then the request was answered, and is not repeated
            assert len(world.broker.received(request_class)) > 1


@every_kind
@every_exchange
def test_a_response_that_cannot_be_read_is_asked_for_again_or_reported(
    use, request_class, kind, kafka_tls_certificates
):
    # What was asked of the broker may have been done: a program must know.
    reported = request_class in (
        ProduceRequest,
        CreateTopicsRequest,
        InitProducerIdRequest,
        FindCoordinatorRequest,
        JoinGroupRequest,
        SyncGroupRequest,
        OffsetFetchRequest,
        ListOffsetsRequest,
        OffsetCommitRequest,
    )
    with wire_world(kind, kafka_tls_certificates) as world:
        assert not spoil(world, request_class, shortened, times=1)
        if reported:
            with pytest.raises(ProtocolError, match=request_class.__name__.removesuffix("Request")):
                use(world)
        else:
            use(world)


@pytest.mark.parametrize(
    ("kind", "use", "request_class"),
    [
        (kind, use, request)
        for kind in KINDS
        for use, request in EXCHANGES
        # These may take seconds, which only pass quickly in memory.
        if kind == "memory" or request not in (ApiVersionsRequest, JoinGroupRequest)
    ],
    ids=short,
)
def test_a_response_that_does_not_come_is_asked_for_again(
    use, request_class, kind, kafka_tls_certificates
):
    options = {"request_timeout_ms": 200}
    if use is consume:
        options |= {"max_poll_interval_ms": 5_000, **FETCH}  # a join waits for so long
    with wire_world(kind, kafka_tls_certificates) as world:
        spoilt = spoil(world, request_class, missing, times=1)
        use(world, **options)
        assert len(spoilt) == 1
        assert len(world.broker.received(request_class)) > 1


@pytest.mark.parametrize(
    ("kind", "change"),
    [
        ("memory", misnumbered),
        ("memory", too_long),
        ("memory", missing),
        ("socket", missing),  # there, time passes
        ("tls", too_long),
    ],
    ids=short,
)
class TestABrokerThatNeverAnswersWell:
    """Every call ends by its deadline, with an error that says what is wrong."""

    DEADLINE_MS = 400
    SLACK_MS = 100  # the clock moves from event to event

    @pytest.fixture
    def world(self, kind, kafka_tls_certificates):
        with wire_world(kind, kafka_tls_certificates) as world:
            world.options["request_timeout_ms"] = 150
            yield world

    @contextmanager
    def in_time(self, world):
        """What the block does takes no longer than its deadline, where time can be measured."""
        began_ms = world.network.clock.monotonic_ms()
        yield
        assert world.network.clock.monotonic_ms() - began_ms <= self.DEADLINE_MS + self.SLACK_MS

    @pytest.mark.parametrize("request_class", [ApiVersionsRequest, MetadataRequest])
    @pytest.mark.parametrize(
        ("client", "extra"), [(KafkaProducer, {}), (KafkaConsumer, FETCH), (KafkaAdminClient, {})]
    )
    def test_no_client_is_made(self, world, change, request_class, client, extra):
        spoil(world, request_class, change, times=math.inf)
        with self.in_time(world), pytest.raises(NoBrokersAvailable) as raised:
            client(**world.options, **extra, bootstrap_timeout_ms=self.DEADLINE_MS)
        assert f"  {world.options['bootstrap_servers']}: " in str(raised.value)

    def test_a_record_is_not_delivered(self, world, change):
        spoil(world, ProduceRequest, change, times=math.inf)
        timeouts = {"delivery_timeout_ms": self.DEADLINE_MS, "linger_ms": 0}
        with KafkaProducer(**world.options, **timeouts) as producer:
            future = producer.send(TOPIC, b"value", partition=0)
            with self.in_time(world), pytest.raises(KafkaTimeoutError) as raised:
                future.get(PATIENCE_SECONDS)
        assert f"{TOPIC}-0" in str(raised.value)

    @pytest.mark.parametrize(
        "request_class", [FindCoordinatorRequest, ListOffsetsRequest, FetchRequest]
    )
    def test_a_poll_brings_nothing(self, world, change, request_class):
        spoil(world, request_class, change, times=math.inf)
        options = {"group_id": "g", "auto_offset_reset": "earliest", **FETCH, **world.options}
        with KafkaConsumer(TOPIC, **options) as consumer, self.in_time(world):
            assert consumer.poll(timeout_ms=self.DEADLINE_MS) == {}

    def test_a_call_of_the_admin_client_ends(self, world, change):
        spoil(world, CreateTopicsRequest, change, times=math.inf)
        world.broker.on(CreateTopicsRequest, CreateTopicsResponse())
        options = {**world.options, "default_api_timeout_ms": self.DEADLINE_MS}
        with (
            KafkaAdminClient(**options) as admin,
            self.in_time(world),
            pytest.raises(KafkaError) as raised,
        ):
            admin.create_topics({"new": {"num_partitions": 1}})
        assert raised.value.retriable
