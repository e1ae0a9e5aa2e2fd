"""One connection: its greeting, versions, responses and ends, on a scripted network."""

import errno
import struct

import pytest

from pyclient.errors import (
    CorrelationIdError,
    KafkaConnectionError,
    KafkaTimeoutError,
    NoBrokersAvailable,
    ProtocolError,
    RequestTimedOutError,
    UnsupportedVersionError,
)
from pyclient.net.connection_state import TRANSITIONS, ConnectionState
from pyclient.net.request_manager import UnsentRequest
from pyclient.net.scripted import DISCONNECT
from pyclient.protocol.messages.api_versions import ApiVersionsRequest
from pyclient.protocol.messages.find_coordinator import (
    FindCoordinatorRequest,
    FindCoordinatorResponse,
)
from pyclient.protocol.messages.heartbeat import HeartbeatRequest, HeartbeatResponse
from pyclient.protocol.messages.list_groups import ListGroupsRequest, ListGroupsResponse
from pyclient.protocol.messages.produce import ProduceRequest


def framed(payload):
    return struct.pack(">i", len(payload)) + payload


def test_every_state_leads_back_to_disconnected():
    for state, following in TRANSITIONS.items():
        if state is not ConnectionState.DISCONNECTED:
            assert ConnectionState.DISCONNECTED in following


def test_the_greeting_names_the_library(network, engine):
    (greeting,) = network.brokers[1].received(ApiVersionsRequest)
    assert greeting.client_software_name == "kafka-pyclient"
    assert greeting.client_software_version


def test_a_broker_that_does_not_know_the_greetings_version_is_asked_in_version_0(
    network, new_engine
):
    broker = network.add_broker(1)
    versions = []

    def greet(request, version):
        versions.append(version)
        if version > 0:
            # correlation id, error 35, then bytes of no meaning
            correlation_id = len(versions)
            return framed(struct.pack(">ih", correlation_id, 35) + b"\x7f\xff\x00")
        return broker.api_versions(request, version)

    broker.on(ApiVersionsRequest, greet)
    engine = new_engine()
    engine.start()
    engine.bootstrap(timeout_ms=1_000)
    assert versions[:2] == [4, 0]


def test_a_request_goes_out_in_the_highest_version_that_both_know(network, new_engine):
    broker = network.add_broker(1)
    broker.versions[ListGroupsRequest.api_key] = (0, 3)
    versions = []

    def list_groups(request, version):
        versions.append(version)
        return ListGroupsResponse()

    broker.on(ListGroupsRequest, list_groups)
    engine = new_engine()
    engine.start()
    engine.bootstrap(timeout_ms=1_000)
    engine.request(ListGroupsRequest(), 1, timeout_ms=1_000)
    assert versions == [3]


def test_an_api_that_the_broker_does_not_have_fails_the_request_and_nothing_else(
    network, new_engine
):
    broker = network.add_broker(1)
    del broker.versions[ListGroupsRequest.api_key]
    broker.on(HeartbeatRequest, HeartbeatResponse())
    engine = new_engine()
    engine.start()
    engine.bootstrap(timeout_ms=1_000)
    with pytest.raises(UnsupportedVersionError, match="does not serve ListGroupsRequest"):
        engine.request(ListGroupsRequest(), 1, timeout_ms=1_000)
    assert engine.request(HeartbeatRequest(), 1, timeout_ms=1_000) == HeartbeatResponse()


def test_a_request_that_cannot_be_encoded_fails_and_nothing_else(network, engine):
    network.brokers[1].on(HeartbeatRequest, HeartbeatResponse())
    with pytest.raises(ProtocolError, match="generation_id"):
        engine.request(HeartbeatRequest(generation_id=2**40), 1, timeout_ms=1_000)
    assert engine.request(HeartbeatRequest(), 1, timeout_ms=1_000) == HeartbeatResponse()


def test_a_request_without_an_answer_times_out_and_ends_the_connection(network, engine):
    broker = network.brokers[1]
    broker.on(HeartbeatRequest, None)
    with pytest.raises(RequestTimedOutError, match="no response to HeartbeatRequest v4"):
        engine.request(HeartbeatRequest(), 1, timeout_ms=700)
    broker.on(HeartbeatRequest, HeartbeatResponse())
    assert engine.request(HeartbeatRequest(), 1, timeout_ms=1_000) == HeartbeatResponse()
    assert len(broker.received(ApiVersionsRequest)) == 3  # bootstrap, first, second connection


def test_requests_behind_one_that_timed_out_fail_with_the_connection(network, engine):
    network.brokers[1].on(HeartbeatRequest, None)
    network.brokers[1].on(ListGroupsRequest, None)
    outcomes = []
    for request, timeout_ms in ((HeartbeatRequest(), 500), (ListGroupsRequest(), 5_000)):
        unsent = UnsentRequest(request, 1, lambda out, now: outcomes.append(out), timeout_ms)
        engine.submit(lambda one=unsent: engine.network.send(one, network.clock.monotonic_ms()))
    assert network.run_until(lambda: len(outcomes) == 2, timeout_ms=600)
    assert [type(one) for one in outcomes] == [RequestTimedOutError, KafkaConnectionError]


def test_a_cut_connection_fails_what_is_in_flight(network, engine):
    network.brokers[1].on(HeartbeatRequest, DISCONNECT)
    with pytest.raises(KafkaConnectionError, match="the connection broke"):
        engine.request(HeartbeatRequest(), 1, timeout_ms=1_000)


def test_a_response_to_another_request_ends_the_connection(network, engine):
    network.brokers[1].on(HeartbeatRequest, framed(struct.pack(">i", 77) + bytes(10)))
    with pytest.raises(CorrelationIdError, match="a response to request 77"):
        engine.request(HeartbeatRequest(), 1, timeout_ms=1_000)


def test_a_response_that_nobody_asked_for_ends_the_connection(network, engine):
    broker = network.brokers[1]
    broker.on(HeartbeatRequest, HeartbeatResponse())
    engine.request(HeartbeatRequest(), 1, timeout_ms=1_000)
    greetings = len(broker.received(ApiVersionsRequest))
    broker.send_raw(framed(bytes(20)))
    network.run_for(1)
    engine.request(HeartbeatRequest(), 1, timeout_ms=1_000)
    assert len(broker.received(ApiVersionsRequest)) == greetings + 1


def test_a_truncated_response_fails_its_request_with_the_field(network, engine):
    def truncated(request, version):
        return framed(struct.pack(">i", 2) + b"\x00" + b"\x00\x00")

    network.brokers[1].on(HeartbeatRequest, truncated)
    with pytest.raises(ProtocolError, match="HeartbeatResponse v4"):
        engine.request(HeartbeatRequest(), 1, timeout_ms=1_000)


def test_a_response_above_the_limit_ends_the_connection(network, new_engine):
    broker = network.add_broker(1)
    broker.on(HeartbeatRequest, framed(bytes(5_001)))
    engine = new_engine(receive_message_max_bytes=5_000)
    engine.start()
    engine.bootstrap(timeout_ms=1_000)
    with pytest.raises(KafkaConnectionError, match="a frame of 5001 bytes"):
        engine.request(HeartbeatRequest(), 1, timeout_ms=1_000)


@pytest.mark.parametrize("cut_at", range(60))
def test_a_connection_cut_at_any_byte_of_the_greeting_is_tried_again(network, new_engine, cut_at):
    broker = network.add_broker(1)
    engine = new_engine()
    greetings = []

    def greet(request, version):
        greetings.append(version)
        if len(greetings) > 1:
            return broker.api_versions(request, version)
        whole = framed(
            struct.pack(">i", 1) + broker.api_versions(request, version).encode_bytes(version)
        )
        return whole[:cut_at]

    broker.on(ApiVersionsRequest, greet)
    engine.start()
    network.run_until(lambda: bool(greetings), timeout_ms=100)
    broker.cut()
    engine.bootstrap(timeout_ms=1_000)


def test_a_throttled_connection_is_left_alone_for_that_time(network, engine):
    broker = network.brokers[1]
    broker.on(HeartbeatRequest, [HeartbeatResponse(throttle_time_ms=400), HeartbeatResponse()])
    engine.request(HeartbeatRequest(), 1, timeout_ms=1_000)
    throttled_at_ms = network.clock.monotonic_ms()
    engine.request(HeartbeatRequest(), 1, timeout_ms=1_000)
    assert network.clock.monotonic_ms() - throttled_at_ms >= 400


def test_a_request_without_response_is_done_when_it_is_written(network, engine):
    broker = network.brokers[1]
    broker.on(ProduceRequest, None)
    broker.on(HeartbeatRequest, HeartbeatResponse())
    engine.request(HeartbeatRequest(), 1, timeout_ms=1_000)
    outcomes = []
    unsent = UnsentRequest(
        ProduceRequest(acks=0), 1, lambda out, now: outcomes.append(out), expects_response=False
    )
    broker.holds_writes = True
    engine.submit(lambda: engine.network.send(unsent, network.clock.monotonic_ms()))
    network.run_for(100)
    assert not outcomes
    broker.holds_writes = False
    engine.wake()
    network.run_for(1)
    assert [type(one).__name__ for one in outcomes] == ["ProduceResponse"]
    assert engine.network.in_flight_count(1) == 0
    assert engine.request(HeartbeatRequest(), 1, timeout_ms=1_000) == HeartbeatResponse()


def test_every_address_of_a_host_is_tried(network, new_engine):
    broker = network.add_broker(1)
    network.hosts["many"] = ["10.0.0.1", "10.0.0.2", "broker1"]
    engine = new_engine(bootstrap_servers="many:9092")
    engine.start()
    engine.bootstrap(timeout_ms=50)
    assert broker.attempts >= 1


def test_of_a_hosts_addresses_the_one_that_got_farthest_says_why(network, new_engine):
    network.add_broker(1).on(ApiVersionsRequest, framed(b"what?"))
    network.hosts["many"] = ["10.0.0.1", "broker1", "10.0.0.2"]
    engine = new_engine(bootstrap_servers="many:9092")
    engine.start()
    with pytest.raises(NoBrokersAvailable, match="does not speak Kafka's protocol"):
        engine.bootstrap(timeout_ms=50)


def test_a_connection_that_nobody_uses_is_closed(network, new_engine):
    broker = network.add_broker(1)
    broker.on(HeartbeatRequest, HeartbeatResponse())
    engine = new_engine(connections_max_idle_ms=60_000, metadata_max_age_ms=10_000_000)
    engine.start()
    engine.bootstrap(timeout_ms=1_000)
    engine.request(HeartbeatRequest(), 1, timeout_ms=1_000)
    (connection,) = [one for one in broker.connections if not one.is_closed]
    network.run_for(59_000)
    assert not connection.is_closed
    network.run_for(2_000)
    assert connection.is_closed


class TestWhyABrokerCannotBeUsed:
    """Each way to fail has its own words, with the address and what to do."""

    def bootstrap_error(self, new_engine, **options):
        engine = new_engine(**options)
        engine.start()
        with pytest.raises(NoBrokersAvailable) as caught:
            engine.bootstrap(timeout_ms=15_000)
        return str(caught.value)

    def test_unknown_host(self, new_engine):
        text = self.bootstrap_error(new_engine, bootstrap_servers="nowhere:9092")
        assert "nowhere:9092: the host name cannot be resolved (Name or service" in text
        assert "check the spelling" in text

    def test_refused(self, network, new_engine):
        network.add_broker(1).refuse_connections()
        text = self.bootstrap_error(new_engine)
        assert "broker1:9092: could not connect (connection refused)" in text
        assert "is the broker running" in text

    def test_no_route(self, network, new_engine):
        network.add_broker(1).refuse_connections(errno.EHOSTUNREACH)
        assert "no route to the host" in self.bootstrap_error(new_engine)

    def test_unanswered(self, network, new_engine):
        network.add_broker(1).ignore_connections()
        text = self.bootstrap_error(new_engine)
        assert "broker1:9092: no connection after" in text
        assert "firewall" in text

    def test_silent(self, network, new_engine):
        network.add_broker(1).on(ApiVersionsRequest, None)
        text = self.bootstrap_error(new_engine)
        assert "no answer to the first request (ApiVersions)" in text
        assert "security_protocol PLAINTEXT" in text

    def test_hanging_up(self, network, new_engine):
        network.add_broker(1).on(ApiVersionsRequest, DISCONNECT)
        assert "disconnected at the first request" in self.bootstrap_error(new_engine)

    def test_web_server(self, network, new_engine):
        network.add_broker(1).on(ApiVersionsRequest, b"HTTP/1.1 400 Bad Request\r\n\r\n")
        text = self.bootstrap_error(new_engine)
        assert "a web server, not a Kafka broker" in text
        assert "check the port in bootstrap_servers" in text

    def test_nonsense(self, network, new_engine):
        network.add_broker(1).on(ApiVersionsRequest, framed(b"what?"))
        assert "does not speak Kafka's protocol" in self.bootstrap_error(new_engine)

    def test_all_addresses_are_named(self, network, new_engine):
        network.add_broker(1).refuse_connections()
        text = self.bootstrap_error(new_engine, bootstrap_servers="broker1,nowhere")
        assert "broker1:9092, nowhere:9092" in text
        assert text.count("\n  ") == 2


def test_a_request_to_a_node_that_cannot_be_reached_fails_with_the_reason(network, engine):
    network.brokers[2].refuse_connections()
    with pytest.raises(KafkaConnectionError, match="broker2:9092: could not connect"):
        engine.request(HeartbeatRequest(), 2, timeout_ms=5_000)


def test_a_request_that_never_found_a_connection_times_out_with_the_reason(network, engine):
    network.brokers[2].ignore_connections()
    with pytest.raises(KafkaTimeoutError, match="could not be sent in time: broker2:9092: no conn"):
        engine.request(HeartbeatRequest(), 2, timeout_ms=300)


def test_requests_keep_their_order_and_at_most_so_many_are_in_flight(network, new_engine):
    broker = network.add_broker(1)
    engine = new_engine(max_in_flight_requests_per_connection=2)
    engine.start()
    engine.bootstrap(timeout_ms=1_000)
    in_flight, answered = [], []

    def find(request, version):
        in_flight.append(engine.network.in_flight_count(1))
        return FindCoordinatorResponse(error_message=request.key)

    broker.on(FindCoordinatorRequest, find)

    def send_all():
        for number in range(6):
            request = FindCoordinatorRequest(key=str(number))
            engine.network.send(
                UnsentRequest(request, 1, lambda out, now: answered.append(out.error_message)),
                network.clock.monotonic_ms(),
            )

    engine.submit(send_all)
    assert network.run_until(lambda: len(answered) == 6, timeout_ms=1_000)
    assert answered == list("012345")
    assert max(in_flight) == 2
