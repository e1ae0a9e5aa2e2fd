"""Choosing nodes, reaching them, and losing them."""

import math

import pytest

from pyclient.errors import (
    KafkaConnectionError,
    KafkaTimeoutError,
    RebootstrapRequiredError,
    UnknownServerError,
)
from pyclient.net.request_manager import UnsentRequest, coordinator_connection
from pyclient.protocol.messages.api_versions import ApiVersionsRequest
from pyclient.protocol.messages.heartbeat import HeartbeatRequest, HeartbeatResponse
from pyclient.protocol.messages.list_groups import ListGroupsRequest, ListGroupsResponse
from pyclient.protocol.messages.metadata import MetadataRequest, MetadataResponse
from pyclient.types import BrokerMetadata


def on_loop(network, engine, function):
    """Run a function where the network client belongs, and return its result."""
    results = []
    engine.submit(lambda: results.append(function(network.clock.monotonic_ms())))
    network.run_until(lambda: bool(results), timeout_ms=0)
    return results[0]


def test_ready_connects_to_a_node(network, engine):
    assert not on_loop(network, engine, lambda now_ms: engine.network.ready(2, now_ms))
    network.run_for(1)
    assert on_loop(network, engine, lambda now_ms: engine.network.is_ready(2, now_ms))
    assert on_loop(network, engine, lambda now_ms: engine.network.ready(2, now_ms))


def test_asking_whether_a_node_is_ready_does_not_connect_to_it(network, engine):
    assert not on_loop(network, engine, lambda now_ms: engine.network.is_ready(2, now_ms))
    network.run_for(1)
    assert not on_loop(network, engine, lambda now_ms: engine.network.is_ready(2, now_ms))
    assert network.brokers[2].attempts == 0


def test_a_node_that_is_not_in_the_metadata_is_never_ready(network, engine):
    assert not on_loop(network, engine, lambda now_ms: engine.network.ready(9, now_ms))
    with pytest.raises(KafkaConnectionError, match="the cluster's metadata has no such node"):
        engine.request(HeartbeatRequest(), 9, timeout_ms=1_000)


def test_a_node_in_back_off_says_when_to_ask_again(network, engine):
    network.brokers[2].refuse_connections()
    on_loop(network, engine, lambda now_ms: engine.network.ready(2, now_ms))
    network.run_for(0)
    now_ms = network.clock.monotonic_ms()
    ready_at_ms = on_loop(network, engine, lambda now_ms: engine.network.ready_at_ms(2, now_ms))
    assert now_ms < ready_at_ms <= now_ms + 60  # reconnect.backoff.ms and its jitter
    assert not on_loop(network, engine, lambda now_ms: engine.network.ready(2, now_ms))
    assert network.brokers[2].attempts == 1


def test_a_connected_node_needs_no_time_to_wait_for(network, engine):
    network.brokers[2].on(HeartbeatRequest, HeartbeatResponse())
    engine.request(HeartbeatRequest(), 2, timeout_ms=1_000)
    assert on_loop(network, engine, lambda now: engine.network.ready_at_ms(2, now)) == math.inf


def test_the_pause_between_attempts_grows_up_to_its_maximum(network, new_engine):
    broker = network.add_broker(1)
    broker.refuse_connections()
    new_engine(reconnect_backoff_ms=50, reconnect_backoff_max_ms=1_000).start()
    network.run_for(1_000)
    in_first_second = broker.attempts
    assert 4 <= in_first_second <= 7  # after 0, 50, 150, 350, 750 ms, give or take a fifth
    network.run_for(9_000)
    assert 7 <= broker.attempts - in_first_second <= 12


def test_the_least_loaded_node_is_chosen(network, engine):
    one, two = network.brokers[1], network.brokers[2]
    for broker in (one, two):
        broker.on(HeartbeatRequest, HeartbeatResponse())
        broker.on(ListGroupsRequest, None)
        engine.request(HeartbeatRequest(), broker.node_id, timeout_ms=1_000)

    def send(now_ms):
        engine.network.send(UnsentRequest(ListGroupsRequest(), 1, lambda *_: None), now_ms)
        return engine.network.least_loaded_node(now_ms)

    assert on_loop(network, engine, send) == 2


def test_a_dead_host_among_the_bootstrap_servers_does_not_hold_up_the_others(network, new_engine):
    network.add_broker(1)
    for number in range(2, 6):
        network.add_broker(number).ignore_connections()
    servers = [f"broker{number}" for number in range(5, 0, -1)]
    engine = new_engine(bootstrap_servers=servers)
    engine.start()
    engine.bootstrap(timeout_ms=5_000)  # a second for each, not ten


def test_the_coordinator_has_a_connection_of_its_own(network, engine):
    broker = network.brokers[1]
    broker.on(ListGroupsRequest, None)
    broker.on(HeartbeatRequest, HeartbeatResponse())

    def park(now_ms):
        engine.network.send(UnsentRequest(ListGroupsRequest(), 1, lambda *_: None), now_ms)

    on_loop(network, engine, park)
    coordinator = coordinator_connection(1)
    assert engine.request(HeartbeatRequest(), coordinator, timeout_ms=1_000)
    assert engine.network.in_flight_count(1) == 1
    assert engine.network.in_flight_count(coordinator) == 0


def test_a_coordinator_that_the_metadata_does_not_have_yet_can_be_added(network, engine):
    newcomer = network.add_broker(3)
    newcomer.on(HeartbeatRequest, HeartbeatResponse())
    node = coordinator_connection(3)
    engine.submit(lambda: engine.network.add_node(BrokerMetadata(node, "broker3", 9092)))
    assert engine.request(HeartbeatRequest(), node, timeout_ms=1_000)


def test_a_node_can_be_disconnected(network, engine):
    broker = network.brokers[1]
    broker.on(HeartbeatRequest, None)
    outcomes = []

    def send(now_ms):
        engine.network.send(
            UnsentRequest(HeartbeatRequest(), 1, lambda out, now: outcomes.append(out)), now_ms
        )

    on_loop(network, engine, send)
    network.run_for(10)
    on_loop(network, engine, lambda now_ms: engine.network.disconnect(1, now_ms))
    network.run_for(0)
    assert [type(one) for one in outcomes] == [KafkaConnectionError]


@pytest.mark.parametrize(("strategy", "found"), [("rebootstrap", True), ("none", False)])
def test_when_every_known_broker_is_gone_the_bootstrap_servers_are_asked_again(
    network, new_engine, strategy, found
):
    old = network.add_broker(1)
    network.hosts["entry"] = ["broker1"]
    engine = new_engine(bootstrap_servers="entry", metadata_recovery_strategy=strategy)
    engine.start()
    engine.bootstrap(timeout_ms=1_000)
    # The cluster moves to other machines, and only the name of the entry follows.
    network.add_broker(7)
    network.hosts["entry"] = ["broker7"]
    old.cut()
    del network.brokers[1]
    engine.metadata.request_update()
    network.run_for(5_000)
    assert (7 in engine.metadata.snapshot.brokers) is found


def test_metadata_that_cannot_be_had_for_long_makes_the_bootstrap_servers_be_asked(
    network, new_engine
):
    old = network.add_broker(1)
    network.hosts["entry"] = ["broker1"]
    engine = new_engine(bootstrap_servers="entry", metadata_recovery_rebootstrap_trigger_ms=60_000)
    engine.start()
    engine.bootstrap(timeout_ms=1_000)
    # The old broker can be reached, but answers with an error.
    newcomer = network.add_broker(7)
    network.hosts["entry"] = ["broker7"]
    old.on(MetadataRequest, MetadataResponse(error_code=UnknownServerError.code))
    engine.metadata.request_update()
    network.run_for(59_000)
    assert newcomer.attempts == 0
    assert network.run_until(lambda: newcomer.attempts > 0, timeout_ms=5_000)


def test_a_broker_can_send_the_client_back_to_the_bootstrap_servers(network, new_engine):
    old = network.add_broker(1)
    network.hosts["entry"] = ["broker1"]
    engine = new_engine(bootstrap_servers="entry")
    engine.start()
    engine.bootstrap(timeout_ms=1_000)
    newcomer = network.add_broker(7)
    network.hosts["entry"] = ["broker7"]
    old.on(MetadataRequest, MetadataResponse(error_code=RebootstrapRequiredError.code))
    engine.metadata.request_update()
    assert network.run_until(lambda: newcomer.attempts > 0, timeout_ms=5_000)


def test_nodes_that_left_the_cluster_are_disconnected_once_unused(network, engine):
    broker = network.brokers[2]
    broker.on(HeartbeatRequest, HeartbeatResponse())
    engine.request(HeartbeatRequest(), 2, timeout_ms=1_000)
    (connection,) = [one for one in broker.connections if not one.is_closed]
    del network.brokers[2]
    seen = engine.metadata.snapshot
    engine.metadata.request_update()
    engine.metadata.wait_for_update(seen, timeout_ms=1_000)
    network.run_for(0)
    assert connection.is_closed


def test_bootstrap_connections_are_closed_once_the_brokers_are_known(network, engine):
    network.run_for(0)
    assert all(one.is_closed for one in network.brokers[1].connections)


def test_a_request_that_any_node_may_serve_outlives_failures_until_its_time_is_up(network, engine):
    for broker in network.brokers.values():
        broker.refuse_connections()
    started_ms = network.clock.monotonic_ms()
    with pytest.raises(KafkaTimeoutError, match=r"could not be sent in time: .*connection refused"):
        engine.request(ListGroupsRequest(), None, timeout_ms=3_000)
    assert network.clock.monotonic_ms() - started_ms == pytest.approx(3_000, abs=1)


def test_a_request_that_any_node_may_serve_goes_to_the_one_that_comes_back(network, engine):
    for broker in network.brokers.values():
        broker.refuse_connections()
        broker.on(ListGroupsRequest, ListGroupsResponse())
    answers = []
    unsent = UnsentRequest(ListGroupsRequest(), None, lambda out, now: answers.append(out))
    on_loop(network, engine, lambda now_ms: engine.network.send(unsent, now_ms))
    network.run_for(3_000)
    network.brokers[2].accept_connections()
    assert network.run_until(lambda: bool(answers), timeout_ms=2_000)
    assert answers == [ListGroupsResponse()]


def test_a_callback_that_fails_does_not_stop_the_others(network, engine, caplog):
    network.brokers[1].on(HeartbeatRequest, HeartbeatResponse())

    def fail(outcome, now_ms):
        raise RuntimeError("a bug in a callback")

    on_loop(
        network,
        engine,
        lambda now_ms: engine.network.send(UnsentRequest(HeartbeatRequest(), 1, fail), now_ms),
    )
    assert engine.request(HeartbeatRequest(), 1, timeout_ms=1_000)
    assert "a bug in a callback" in caplog.text


def test_a_lost_connection_asks_for_new_metadata(network, engine):
    broker = network.brokers[1]
    broker.on(HeartbeatRequest, HeartbeatResponse())
    engine.request(HeartbeatRequest(), 1, timeout_ms=1_000)
    network.run_for(1_000)
    before = sum(len(one.received(MetadataRequest)) for one in network.brokers.values())
    broker.cut()
    network.run_for(1_000)
    after = sum(len(one.received(MetadataRequest)) for one in network.brokers.values())
    assert after == before + 1
    assert len(broker.received(ApiVersionsRequest)) >= 2


def test_an_idle_client_does_nothing_until_metadata_is_old(network, new_engine):
    network.add_broker(1)
    engine = new_engine(metadata_max_age_ms=300_000)
    engine.start()
    engine.bootstrap(timeout_ms=1_000)
    network.run_for(1_000)
    assert turns_within(network, engine, 290_000) <= 2


def test_a_client_without_a_broker_does_not_spin(network, new_engine):
    network.add_broker(1).refuse_connections()
    engine = new_engine()
    engine.start()
    network.run_for(2_000)  # the pauses have grown to a second
    assert turns_within(network, engine, 10_000) <= 60


def turns_within(network, engine, milliseconds):
    turns = []
    poll = engine.metadata.poll

    def counting_poll(now_ms):
        turns.append(now_ms)
        return poll(now_ms)

    engine.metadata.poll = counting_poll
    network.run_for(milliseconds)
    return len(turns)
