"""Named listeners, silent connections and several log folders, on sockets."""

import socket
from pathlib import Path
from typing import Any

import pytest

from broker_stub import Broker
from broker_stub.net.server import PortInUseError
from pyclient.clock import ManualClock
from pyclient.errors import InconsistentClusterIdError, KafkaConfigurationError, KafkaStorageError
from pyclient.protocol.messages.api_versions import ApiVersionsRequest
from pyclient.protocol.messages.describe_log_dirs import DescribeLogDirsRequest
from pyclient.protocol.messages.fetch import FetchPartition, FetchRequest, FetchTopic
from pyclient.protocol.messages.find_coordinator import FindCoordinatorRequest
from pyclient.protocol.messages.metadata import MetadataRequest
from tests.integration.broker_stub.raw_client import RawClient
from tests.support.node_harness import batch, produce_request

LISTENERS = {
    "listeners": "INTERNAL://127.0.0.1:0,EXTERNAL://:0",
    "advertised.listeners": "INTERNAL://127.0.0.1:0,EXTERNAL://kafka.test:19092",
    "listener.security.protocol.map": "INTERNAL:PLAINTEXT,EXTERNAL:PLAINTEXT",
}
MINUTE_MS = 60_000


def bound_ports(broker: Broker) -> list[int]:
    return [listener.port for listener in broker._listeners]


def test_clients_are_told_the_address_of_the_listener_they_came_in_on():
    with Broker(config=LISTENERS) as broker:
        internal, external = bound_ports(broker)
        assert broker.listeners == {
            "INTERNAL": f"127.0.0.1:{internal}",
            "EXTERNAL": "kafka.test:19092",
        }
        assert broker.bootstrap_servers == f"127.0.0.1:{internal}"
        for port, address in (
            (internal, ("127.0.0.1", internal)),
            (external, ("kafka.test", 19092)),
        ):
            with RawClient(port) as client:
                (found,) = client.ask(MetadataRequest(topics=None), 9).brokers
                assert (found.host, found.port) == address
                coordinator = client.ask(FindCoordinatorRequest(key="group"), 3)
                assert (coordinator.host, coordinator.port) == address


@pytest.mark.skipif(not socket.has_dualstack_ipv6(), reason="the system has no IPv6")
def test_every_address_is_those_of_both_families():
    with Broker(config=LISTENERS) as broker:
        _, external = bound_ports(broker)
        for host in ("127.0.0.1", "::1"):
            socket.create_connection((host, external), 5).close()
        with RawClient(external) as client:
            assert client.ask(ApiVersionsRequest(), 0).error_code == 0
            (host,) = broker.call(
                lambda _: {
                    connection._context.client_host
                    for connection in broker._running()._server._connections
                    if connection.sock.getpeername()[1] == client.socket.getsockname()[1]
                }
            )
        assert host == "127.0.0.1"


def test_every_listener_keeps_its_port_over_a_restart():
    with Broker(config=LISTENERS) as broker:
        before = bound_ports(broker)
        broker.restart()
        assert bound_ports(broker) == before
        for port in before:
            with RawClient(port) as client:
                assert client.ask(ApiVersionsRequest(), 0).error_code == 0


def test_a_taken_port_of_a_second_listener_frees_the_first_again():
    with socket.create_server(("127.0.0.1", 0)) as taken:
        text = f"INTERNAL://127.0.0.1:0,EXTERNAL://127.0.0.1:{taken.getsockname()[1]}"
        broker = Broker(config={**LISTENERS, "listeners": text})
        with pytest.raises(PortInUseError, match="in use by another process"):
            broker.start()
        assert not broker.running


def test_host_and_port_are_one_way_to_say_it_and_listeners_the_other():
    for other in ({"port": 9092}, {"host": "127.0.0.1"}):
        with pytest.raises(KafkaConfigurationError, match="a host and a port, or listeners"):
            Broker(config=LISTENERS, **other)


def test_a_silent_connection_is_closed_and_a_lively_one_is_not():
    clock = ManualClock()
    with (
        Broker(clock=clock, config={"connections.max.idle.ms": 10 * MINUTE_MS}) as broker,
        RawClient(broker.port) as silent,
        RawClient(broker.port) as lively,
    ):
        silent.ask(ApiVersionsRequest(), 0)
        for _ in range(2):
            clock.advance(6 * MINUTE_MS)
            assert lively.ask(ApiVersionsRequest(), 0).error_code == 0
        assert silent.is_closed_by_peer()
        clock.advance(6 * MINUTE_MS)
        assert lively.ask(ApiVersionsRequest(), 0).error_code == 0


def test_who_waits_for_an_answer_is_not_silent():
    clock = ManualClock()
    with Broker(clock=clock, config={"connections.max.idle.ms": MINUTE_MS}) as broker:
        broker.create_topic("orders")
        partition = FetchPartition(partition=0, fetch_offset=0, partition_max_bytes=1000)
        fetch = FetchRequest(
            max_wait_ms=10 * MINUTE_MS,
            min_bytes=1,
            topics=[FetchTopic(topic="orders", partitions=[partition])],
        )
        with RawClient(broker.port) as client:
            client.send(fetch, 11)
            while not broker.call(lambda node: len(node.purgatory)):
                pass
            clock.advance(5 * MINUTE_MS)
            clock.advance(5 * MINUTE_MS)
            assert client.receive().responses[0].partitions[0].error_code == 0


def test_with_minus_1_connections_may_be_silent_for_ever():
    clock = ManualClock()
    with (
        Broker(clock=clock, config={"connections.max.idle.ms": -1}) as broker,
        RawClient(broker.port) as client,
    ):
        client.ask(ApiVersionsRequest(), 0)
        clock.advance(10_000 * MINUTE_MS)
        assert client.ask(ApiVersionsRequest(), 0).error_code == 0


def folders(tmp_path: Path) -> dict[str, Any]:
    return {"log.dirs": f"{tmp_path / 'a'},{tmp_path / 'b'}"}


def held(broker: Broker) -> dict[str, set[str]]:
    """The partitions in each folder, as the broker tells."""
    with RawClient(broker.port) as client:
        response = client.ask(DescribeLogDirsRequest(topics=None), 4)
    return {
        Path(one.log_dir).name: {
            f"{topic.name}-{partition.partition_index}"
            for topic in one.topics
            for partition in topic.partitions
        }
        for one in response.results
    }


def test_partitions_are_spread_over_the_log_dirs_and_stay_where_they_are(tmp_path):
    with Broker(config=folders(tmp_path)) as broker:
        broker.create_topic("orders", partitions=4)
        with RawClient(broker.port) as client:
            for index in range(4):
                client.ask(produce_request("orders", batch(b"v"), partition=index), 9)
        before = held(broker)
        assert broker.data_dir == tmp_path / "a"
    assert sorted(map(len, before.values())) == [2, 2]
    for name, partitions in before.items():
        found = {one.name for one in (tmp_path / name).glob("orders-*")}
        assert found == partitions
    with Broker(config=folders(tmp_path)) as broker:
        assert held(broker) == before


def test_a_folder_can_be_added_before_or_behind_the_others(tmp_path):
    with Broker(tmp_path / "b") as broker:
        broker.create_topic("orders")
        cluster_id = broker.call(lambda node: node.cluster_id)
    with Broker(config=folders(tmp_path)) as broker:
        assert broker.call(lambda node: node.cluster_id) == cluster_id
        assert broker.call(lambda node: node.image.topic("orders")) is not None


def test_folders_of_two_clusters_are_refused(tmp_path):
    for name in ("a", "b"):
        Broker(tmp_path / name).start().stop()
    with pytest.raises(InconsistentClusterIdError):
        Broker(config=folders(tmp_path)).start()


def test_a_folder_of_another_node_is_refused_by_name(tmp_path):
    Broker(tmp_path, config={"node.id": 7}).start().stop()
    with pytest.raises(KafkaStorageError, match="belongs to node 7, not to node 1"):
        Broker(tmp_path).start()


def test_a_folder_of_a_newer_format_is_refused_by_name(tmp_path):
    Broker(tmp_path).start().stop()
    properties = tmp_path / "meta.properties"
    properties.write_text(properties.read_text().replace("version=1", "version=2"))
    with pytest.raises(KafkaStorageError, match="has version 2"):
        Broker(tmp_path).start()


def test_a_folder_that_is_in_use_is_refused_and_free_again_afterwards(tmp_path):
    with Broker(tmp_path), pytest.raises(KafkaStorageError, match="in use"):
        Broker(tmp_path).start()
    Broker(tmp_path).start().stop()


def test_a_folder_that_can_not_be_made_is_told_with_the_reason(tmp_path):
    (tmp_path / "file").write_text("")
    with pytest.raises(KafkaStorageError, match="cannot use"):
        Broker(tmp_path / "file" / "folder").start()
