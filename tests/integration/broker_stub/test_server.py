"""The socket front: order, back-pressure, bad peers, slow readers."""

import os
import socket
import ssl
import threading
from collections.abc import Callable, Iterator
from contextlib import ExitStack, suppress
from functools import partial

import pytest

from broker_stub import Broker
from broker_stub.coordinator.groups.group_log import OFFSETS_TOPIC
from broker_stub.coordinator.placement import partition_for
from broker_stub.log.internal_batches import read_batches
from broker_stub.log.partition_log import PartitionLog
from broker_stub.node import Node
from broker_stub.testing.tls import TlsCertificates
from pyclient.clock import ManualClock
from pyclient.protocol.messages.api_versions import ApiVersionsRequest
from pyclient.protocol.messages.fetch import FetchPartition, FetchRequest, FetchTopic
from pyclient.protocol.messages.find_coordinator import FindCoordinatorRequest
from pyclient.protocol.messages.metadata import MetadataRequest, MetadataRequestTopic
from pyclient.protocol.messages.offset_commit import (
    OffsetCommitRequest,
)
from tests.integration.broker_stub.raw_client import RawClient
from tests.support.node_harness import batch, produce_request
from tests.support.offset_requests import offset_commit_request


@pytest.fixture(params=["PLAINTEXT", "SSL"])
def broker(request, kafka_tls_certificates: TlsCertificates) -> Iterator[Broker]:
    """The same in the clear and with TLS."""
    config = kafka_tls_certificates.broker_config if request.param == "SSL" else {}
    with Broker(config=config) as running:
        running.create_topic("orders")
        yield running


@pytest.fixture
def connect(broker: Broker, kafka_tls_certificates: TlsCertificates) -> Callable[..., RawClient]:
    """Makes clients of the broker."""
    tls = None
    if "SSL" in broker.listeners:
        tls = ssl.create_default_context(cafile=kafka_tls_certificates.ca_file)
    return partial(RawClient, broker.port, tls=tls)


def fetch_request(offset: int = 0, **fields: int) -> FetchRequest:
    return FetchRequest(
        **{"max_wait_ms": 60_000, "min_bytes": 1, **fields},
        topics=[
            FetchTopic(
                topic="orders",
                partitions=[
                    FetchPartition(partition=0, fetch_offset=offset, partition_max_bytes=64 << 20)
                ],
            )
        ],
    )


def test_pipelined_requests_are_answered_in_order(broker, connect):
    with connect() as client:
        requests = [(ApiVersionsRequest(), 0), (MetadataRequest(topics=None), 9)] * 50
        client.socket.sendall(b"".join(client.frame(*one) for one in requests))
        for request, _ in requests:
            response = client.receive()
            assert type(response).__name__ == type(request).__name__.replace("Request", "Response")


def commit_of(offset: int) -> OffsetCommitRequest:
    return offset_commit_request("group", {("orders", 0): offset})


def log_of_commits(node: Node) -> PartitionLog:
    index = partition_for("group", len(node.coordinator.log_topic().partitions))
    return node.replicas.partition(OFFSETS_TOPIC, index).log


def test_commits_that_arrive_together_are_one_batch_and_answered_in_order(broker, connect):
    with ExitStack() as stack:
        clients = [stack.enter_context(connect()) for _ in range(5)]
        assert clients[0].ask(FindCoordinatorRequest(key="group"), 3).error_code == 0
        clients[0].ask(commit_of(1), 9)
        held, sent = threading.Event(), threading.Event()

        def hold(node: Node) -> None:
            node.dispatcher.interceptors.clear()  # nobody watches `python -m broker_stub` either
            held.set()
            sent.wait(20)

        holder = threading.Thread(target=broker.call, args=(hold,))
        holder.start()
        assert held.wait(20)
        for offset, client in enumerate(clients, 10):
            client.send(commit_of(offset), 9)
            client.send(ApiVersionsRequest(), 0)
        sent.set()
        holder.join()
        for client in clients:
            assert client.receive().topics[0].partitions[0].error_code == 0
            assert client.receive().error_code == 0
        batches = broker.call(lambda node: list(read_batches(log_of_commits(node), 0)))
        assert [one.record_count for one in batches] == [1, 5]


def test_a_request_may_come_byte_by_byte(broker, connect):
    with connect() as client:
        for byte in client.frame(ApiVersionsRequest(), 0):
            client.socket.sendall(bytes([byte]))
        assert client.receive().error_code == 0


def test_a_parked_fetch_holds_up_its_own_connection_only(broker, connect):
    with connect() as waiting, connect() as other:
        waiting.send(fetch_request(), 12)
        waiting.send(ApiVersionsRequest(), 0)
        other.ask(produce_request("orders", batch(b"a")), 9)
        fetched = waiting.receive()
        assert len(fetched.responses[0].partitions[0].records) > 0
        assert waiting.receive().error_code == 0


def test_what_is_sent_behind_a_parked_request_is_read_when_its_turn_comes(broker, connect):
    """More than the buffer holds, so that some of it stays in the socket, and in OpenSSL."""
    names = [MetadataRequestTopic(name="x" * 200 + str(number)) for number in range(20)]
    request = MetadataRequest(topics=names, allow_auto_topic_creation=False)
    with connect() as client, connect() as other:
        client.send(fetch_request(), 12)
        frames = b"".join(client.frame(request, 9) for _ in range(400))
        assert len(frames) > 1 << 20
        writer = threading.Thread(target=lambda: client.socket.sendall(frames))
        writer.start()
        wait_until(broker, lambda node: len(node.purgatory) == 1)
        other.ask(produce_request("orders", batch(b"a")), 9)
        assert len(client.receive().responses[0].partitions[0].records) > 0
        for _ in range(400):
            assert len(client.receive().topics) == 20
        writer.join(10)


def test_acks_0_is_not_answered_and_holds_up_nothing(broker, connect):
    with connect() as client:
        client.send(produce_request("orders", batch(b"a"), acks=0), 9, answered=False)
        assert client.ask(ApiVersionsRequest(), 0).error_code == 0


@pytest.mark.parametrize(
    "sent",
    [
        (-1).to_bytes(4, "big", signed=True),
        (200 << 20).to_bytes(4, "big"),
        b"\0\0\0\0",
        b"GET / HTTP/1.1\r\nHost: kafka\r\n\r\n",
        b"\0\0\0\x0a\x03\xe7\0\0\0\0\0\x01\xff\xff",  # API 999
    ],
)
def test_a_bad_peer_is_hung_up_on_and_others_are_served(broker, connect, sent):
    with connect() as bad, connect() as good:
        bad.socket.sendall(sent)
        assert bad.is_closed_by_peer()
        assert good.ask(ApiVersionsRequest(), 0).error_code == 0


def test_the_limit_of_a_request_is_the_configured_one():
    with Broker(config={"socket.request.max.bytes": 1000}) as broker:
        broker.create_topic("orders")
        with RawClient(broker.port) as client:
            client.send(produce_request("orders", batch(b"x" * 2000)), 9)
            assert client.is_closed_by_peer()


def test_a_request_larger_than_any_buffer_is_read_to_its_end(broker, connect):
    broker.create_topic("large", config={"max.message.bytes": 20 << 20})
    batches = batch(b"x" * (12 << 20), size=13 << 20)
    with connect() as client:
        response = client.ask(produce_request("large", batches), 9)
        assert response.responses[0].partition_responses[0].error_code == 0
        response = client.ask(produce_request("orders", batches), 9)
        assert response.responses[0].partition_responses[0].error_code == 10


def test_a_large_response_arrives_whole_by_a_slow_reader(broker, connect):
    one = batch(os.urandom(900_000), size=1 << 20)
    with connect() as producer:
        for _ in range(20):
            producer.ask(produce_request("orders", one), 9)
    with connect(receive_buffer=4096) as slow, connect() as other:
        slow.send(fetch_request(), 12)
        slow.send(ApiVersionsRequest(), 0)
        assert other.ask(ApiVersionsRequest(), 0).error_code == 0
        fetched = slow.receive().responses[0].partitions[0]
        assert bytes(fetched.records).count(one[61:]) == 20
        assert slow.receive().error_code == 0


@pytest.mark.parametrize("waits_behind", [False, True])
def test_a_client_that_says_no_more_can_still_read_all_its_answers(waits_behind):
    with Broker() as broker, RawClient(broker.port, receive_buffer=4096) as client:
        broker.create_topic("orders", config={"max.message.bytes": str(8 << 20)})
        client.ask(produce_request("orders", batch(b"x" * (6 << 20), size=8 << 20)), 9)
        client.send(fetch_request(), 12)
        client.send(fetch_request(), 12)
        if waits_behind:
            client.send(fetch_request(1), 12)
        client.socket.shutdown(socket.SHUT_WR)
        for _ in range(2):
            assert len(client.receive().responses[0].partitions[0].records) > 6 << 20
        assert client.is_closed_by_peer()


def test_what_was_sent_before_a_client_went_is_carried_out(broker, connect):
    with connect() as client:
        client.ask(ApiVersionsRequest(), 0)
        busy = threading.Event()
        broker._running()._server.call_soon(lambda: busy.wait(20))
        for _ in range(20):
            request = produce_request("orders", batch(b"a"), acks=0)
            client.send(request, 9, answered=False)
        if isinstance(client.socket, ssl.SSLSocket):
            client.socket.settimeout(0)
            with suppress(ssl.SSLWantReadError):
                client.socket.unwrap()  # says goodbye, and does not wait for the answer
    busy.set()
    wait_until(broker, lambda node: node.replicas.partition("orders", 0).log_end_offset == 20)


@pytest.mark.parametrize(
    ("config", "expected"), [({}, 256 << 10), ({"socket.send.buffer.bytes": 50_000}, 50_000)]
)
def test_the_system_buffers_as_much_of_the_answers_as_is_configured(config, expected):
    with Broker(config=config) as broker, RawClient(broker.port) as client:
        client.ask(ApiVersionsRequest(), 0)
        (connection,) = broker._running()._server._connections
        # Linux doubles what it is told, for its own bookkeeping; others do not.
        size = connection.sock.getsockopt(socket.SOL_SOCKET, socket.SO_SNDBUF)
        assert size in (expected, 2 * expected)


def test_with_minus_1_the_system_decides_what_it_buffers():
    config = {"socket.send.buffer.bytes": -1}
    with Broker(config=config) as broker, RawClient(broker.port) as client:
        client.ask(ApiVersionsRequest(), 0)
        (connection,) = broker._running()._server._connections
        size = connection.sock.getsockopt(socket.SOL_SOCKET, socket.SO_SNDBUF)
        assert size == client.socket.getsockopt(socket.SOL_SOCKET, socket.SO_SNDBUF)


def test_a_reader_that_never_reads_costs_one_response_and_no_more(broker, connect):
    one = batch(b"x" * 900_000, size=1 << 20)
    with connect() as producer:
        for _ in range(20):
            producer.ask(produce_request("orders", one), 9)
    with connect(receive_buffer=4096) as stuck, connect() as other:
        for _ in range(200):
            stuck.send(fetch_request(), 12)
        for _ in range(10):
            assert other.ask(ApiVersionsRequest(), 0).error_code == 0
        (queued,) = broker.call(
            lambda _: [
                len(connection._output)
                for connection in broker._running()._server._connections
                if connection._output
            ]
        )
        assert queued <= 3


def test_a_client_that_hangs_up_while_it_waits_is_forgotten(broker, connect):
    with connect() as client:
        client.send(fetch_request(), 12)
        wait_until(broker, lambda node: len(node.purgatory) == 1)
    wait_until(broker, lambda node: len(node.purgatory) == 0)


def wait_until(broker: Broker, condition) -> None:
    """Every call goes round the serving loop once, so events that are due get their turn."""
    for _ in range(10_000):
        if broker.call(condition):
            return
    raise AssertionError("it never came to that")


def test_many_connections_are_served_at_once(broker, connect):
    clients = [connect() for _ in range(200)]
    try:
        for client in clients:
            client.send(ApiVersionsRequest(), 0)
        assert all(client.receive().error_code == 0 for client in clients)
    finally:
        for client in clients:
            client.socket.close()


@pytest.mark.parametrize("never_ms", [2**31, 2**63 - 1])
def test_a_time_that_never_comes_is_waited_for_without_end(never_ms):
    with Broker(config={"connections.max.idle.ms": never_ms}) as broker:
        for _ in range(2):
            with RawClient(broker.port) as client:
                assert client.ask(ApiVersionsRequest(), 0).error_code == 0


def test_an_idle_connection_holds_no_buffer(broker, connect):
    with connect() as client:
        client.ask(ApiVersionsRequest(), 0)
        held = broker.call(
            lambda _: [
                connection._input._buffer for connection in broker._running()._server._connections
            ]
        )
        assert held == [None]


def test_connections_that_end_leave_one_buffer_between_them(broker, connect):
    for _ in range(20):
        with connect() as client:
            client.ask(ApiVersionsRequest(), 0)
            client.socket.sendall(b"half a frame")
    server = broker._running()._server
    wait_until(broker, lambda _: not server._connections)
    assert len(server.buffers._spare) == 1


def test_a_waiting_fetch_ends_when_the_injected_clock_says_so():
    clock = ManualClock()
    with Broker(clock=clock) as broker:
        broker.create_topic("orders")
        with RawClient(broker.port) as client:
            client.send(fetch_request(max_wait_ms=3_600_000), 12)
            wait_until(broker, lambda node: len(node.purgatory) == 1)
            clock.advance(3_600_000)
            assert client.receive().responses[0].partitions[0].error_code == 0


def test_an_idle_broker_does_not_wake(broker):
    # The loop asks the selector to wait for ever: nothing is due while no request is parked.
    assert broker.call(lambda node: node.timers.next_deadline_ms()) is None
    assert broker._running()._server._timeout() is None


def test_threads_end_with_the_broker():
    before = set(threading.enumerate())
    broker = Broker().start()
    assert len(set(threading.enumerate()) - before) == 2
    broker.stop()
    assert set(threading.enumerate()) == before


def test_sockets_are_closed_with_the_broker():
    broker = Broker().start()
    with RawClient(broker.port) as client:
        client.ask(ApiVersionsRequest(), 0)
        broker.stop()
        assert client.is_closed_by_peer()
    with pytest.raises(ConnectionRefusedError):
        socket.create_connection(("127.0.0.1", broker.port))
