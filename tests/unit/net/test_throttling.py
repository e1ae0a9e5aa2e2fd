"""Quotas: which requests wait, and for how long."""

import pytest

from pyclient.net.request_manager import UnsentRequest
from pyclient.net.scripted import ScriptedNetwork
from pyclient.net.throttling import client_waits
from pyclient.protocol.messages.api_versions import ApiVersionsRequest
from pyclient.protocol.messages.describe_cluster import DescribeClusterRequest
from pyclient.protocol.messages.fetch import FetchRequest
from pyclient.protocol.messages.heartbeat import HeartbeatRequest, HeartbeatResponse
from pyclient.protocol.messages.list_groups import ListGroupsRequest, ListGroupsResponse
from pyclient.protocol.messages.metadata import MetadataRequest
from pyclient.protocol.messages.produce import ProduceRequest
from pyclient.protocol.registry import API_NAMES, response_class

THROTTLE_MS = 400


def pause_ms(network: ScriptedNetwork, engine) -> float:
    """How long after a throttled heartbeat the next request goes out."""
    broker = network.brokers[1]
    throttled = HeartbeatResponse(throttle_time_ms=THROTTLE_MS)
    broker.on(HeartbeatRequest, [throttled, HeartbeatResponse()])
    engine.request(HeartbeatRequest(), 1, timeout_ms=1_000)
    began_ms = network.clock.monotonic_ms()
    engine.request(HeartbeatRequest(), 1, timeout_ms=1_000)
    return network.clock.monotonic_ms() - began_ms


def test_a_throttled_client_sends_nothing_for_that_time(network, engine):
    assert pause_ms(network, engine) == pytest.approx(THROTTLE_MS, abs=1)


def test_a_broker_that_has_waited_itself_is_not_waited_for_again(network, new_engine):
    network.add_broker(1).versions[HeartbeatRequest.api_key] = (0, 1)
    engine = new_engine()
    engine.start()
    engine.bootstrap(timeout_ms=1_000)
    assert pause_ms(network, engine) == 0


def test_other_nodes_are_asked_meanwhile(network, engine):
    first, second = network.brokers.values()
    first.on(HeartbeatRequest, HeartbeatResponse(throttle_time_ms=60_000))
    for broker in (first, second):
        broker.on(ListGroupsRequest, ListGroupsResponse())
    engine.request(HeartbeatRequest(), 1, timeout_ms=1_000)
    began_ms = network.clock.monotonic_ms()
    assert engine.request(ListGroupsRequest(), None, timeout_ms=1_000) == ListGroupsResponse()
    assert second.received(ListGroupsRequest)
    assert network.clock.monotonic_ms() - began_ms < 1_000


def test_a_longer_pause_is_not_cut_short_by_a_shorter_one(network, engine):
    broker = network.brokers[1]
    answers = [HeartbeatResponse(throttle_time_ms=ms) for ms in (500, 100, 0)]
    broker.on(HeartbeatRequest, answers)
    now_ms = network.clock.monotonic_ms()
    done: list[float] = []
    for _ in range(2):  # both in flight before the first answer
        engine.submit(lambda: send_heartbeat(engine, done))
    network.run_until(lambda: len(done) == 2)
    engine.request(HeartbeatRequest(), 1, timeout_ms=1_000)
    assert network.clock.monotonic_ms() - now_ms >= 500


def send_heartbeat(engine, done: list[float]) -> None:
    unsent = UnsentRequest(HeartbeatRequest(), 1, lambda _outcome, now_ms: done.append(now_ms))
    engine.network.send(unsent, engine.clock.monotonic_ms())


def test_the_first_answer_may_throttle_already(network, new_engine):
    broker = network.add_broker(1)

    def greet(request, version):
        answer = broker.api_versions(request, version)
        answer.throttle_time_ms = THROTTLE_MS
        return answer

    broker.on(ApiVersionsRequest, greet)
    engine = new_engine()
    engine.start()
    engine.bootstrap(timeout_ms=5_000)
    assert network.clock.monotonic_ms() >= THROTTLE_MS


@pytest.mark.parametrize(
    ("request_class", "first"),
    [
        (ProduceRequest, 6),
        (FetchRequest, 8),
        (MetadataRequest, 6),
        (ApiVersionsRequest, 2),
        (DescribeClusterRequest, 0),
    ],
)
def test_the_client_waits_from_a_version_on(request_class, first):
    assert client_waits(request_class.api_key, first)
    assert first == 0 or not client_waits(request_class.api_key, first - 1)


def test_no_version_waits_that_could_not_tell_for_how_long():
    for key in API_NAMES:
        answer = response_class(key)
        if not hasattr(answer(), "throttle_time_ms"):
            continue
        field = next(one for one in answer.fields if one.name == "throttle_time_ms")
        waits_from = next(version for version in range(100) if client_waits(key, version))
        assert waits_from == 0 or waits_from >= field.versions.lowest
