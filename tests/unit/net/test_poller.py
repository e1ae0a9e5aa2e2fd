"""Sockets on loopback: writing parts, reading frames, connecting, waking."""

import socket
import struct
import threading
from types import SimpleNamespace

import pytest

from pyclient.errors import InvalidReceiveError
from pyclient.net.poller import SelectorPoller
from pyclient.net.resolver import Address, resolve
from pyclient.net.transport import SocketOptions

OWNER = SimpleNamespace()
PATIENCE_MS = 10_000


def framed(payload: bytes) -> bytes:
    return struct.pack(">i", len(payload)) + payload


@pytest.fixture
def poller():
    poller = SelectorPoller(SocketOptions(send_buffer_bytes=16_384, receive_buffer_bytes=-1))
    yield poller
    poller.close()


@pytest.fixture
def listener():
    with socket.create_server(("127.0.0.1", 0)) as listener:
        yield listener


def address_of(listener) -> Address:
    return Address(int(socket.AF_INET), listener.getsockname())


@pytest.fixture
def connected(poller, listener):
    transport = poller.open(address_of(listener), OWNER)
    peer, _ = listener.accept()
    while not transport.connected:
        poller.poll(PATIENCE_MS)
    yield transport, peer
    transport.close()
    peer.close()


def read_exactly(peer, count):
    received = bytearray()
    while len(received) < count:
        received += peer.recv(1 << 20)
    return bytes(received)


def test_a_connection_is_made_without_waiting(poller, listener):
    transport = poller.open(address_of(listener), OWNER)
    assert not transport.connected
    assert list(poller.poll(PATIENCE_MS)) == [transport]
    assert transport.connected
    assert transport.error is None
    transport.close()


def test_a_refusal_is_told_by_a_poll(poller, listener):
    address = address_of(listener)
    listener.close()
    transport = poller.open(address, OWNER)
    assert list(poller.poll(PATIENCE_MS)) == [transport]
    assert isinstance(transport.error, OSError)
    assert "refused" in str(transport.error)
    transport.close()


def test_an_address_that_no_socket_can_have_is_told_by_a_poll(poller):
    transport = poller.open(Address(-5, ("127.0.0.1", 1)), OWNER)
    assert list(poller.poll(PATIENCE_MS)) == [transport]
    assert isinstance(transport.error, OSError)
    transport.close()


@pytest.mark.parametrize("parts", [1, 3, 1_024, 5_000])
def test_parts_arrive_in_order_however_many(poller, connected, parts):
    transport, peer = connected
    pieces = [bytes([number % 256]) * (number % 7) for number in range(parts)]
    assert transport.send(pieces) == parts
    whole = b"".join(pieces)
    reader = threading.Thread(target=lambda: received.append(read_exactly(peer, len(whole))))
    received: list[bytes] = []
    reader.start()
    poller.poll(0)
    while transport.parts_sent < parts:
        poller.poll(PATIENCE_MS)
    reader.join(10)
    assert received == [whole]


def test_what_the_system_does_not_take_at_once_goes_out_when_it_does(poller, connected):
    transport, peer = connected
    large = [memoryview(bytearray(range(256)) * 512) for _ in range(8)]  # 1 MiB in all
    transport.send([b"head", *large])
    poller.poll(0)
    assert transport.parts_sent < 9
    received: list[bytes] = []
    whole = b"head" + b"".join(large)
    reader = threading.Thread(target=lambda: received.append(read_exactly(peer, len(whole))))
    reader.start()
    while transport.parts_sent < 9:
        assert transport in poller.poll(PATIENCE_MS)  # progress is news
    reader.join(10)
    assert received == [whole]


def test_frames_arrive_and_stay_valid(poller, connected):
    transport, peer = connected
    small, large = b"small", bytes(range(256)) * 2_000
    peer.sendall(framed(small) + framed(large))
    frames = []
    while len(frames) < 2:
        poller.poll(PATIENCE_MS)
        frames += transport.take_frames()
    peer.sendall(framed(b"x" * 60_000))
    while not transport.take_frames():
        poller.poll(PATIENCE_MS)
    assert [bytes(frame) for frame in frames] == [small, large]


def test_the_end_of_the_stream_is_told_after_the_frames_before_it(poller, connected):
    transport, peer = connected
    peer.sendall(framed(b"last words"))
    peer.close()
    while transport.error is None:
        poller.poll(PATIENCE_MS)
    assert [bytes(frame) for frame in transport.take_frames()] == [b"last words"]
    assert isinstance(transport.error, EOFError)


def test_a_frame_above_the_limit_ends_the_transport(listener):
    poller = SelectorPoller(SocketOptions(receive_message_max_bytes=100))
    transport = poller.open(address_of(listener), OWNER)
    peer, _ = listener.accept()
    with peer:
        peer.sendall(framed(bytes(101)))
        while transport.error is None:
            poller.poll(PATIENCE_MS)
    assert isinstance(transport.error, InvalidReceiveError)
    transport.close()
    poller.close()


def test_writing_to_a_connection_that_is_gone_is_an_error(poller, connected):
    transport, peer = connected
    peer.close()
    while transport.error is None:
        transport.send([bytes(65_536)])
        poller.poll(PATIENCE_MS)
    transport.close()


def test_a_wake_before_the_poll_ends_it_at_once(poller):
    poller.wake()
    assert not poller.poll(PATIENCE_MS * 100)


def test_a_wake_from_another_thread_ends_the_poll(poller):
    threads = [threading.Thread(target=poller.wake) for _ in range(4)]
    for thread in threads:
        thread.start()
    assert not poller.poll(PATIENCE_MS * 100)
    for thread in threads:
        thread.join()


def test_a_closed_transport_is_never_heard_of_again(poller, connected):
    transport, peer = connected
    transport.send([b"never written"])
    transport.close()
    transport.close()
    peer.settimeout(10)
    assert not poller.poll(0)
    assert peer.recv(100) == b""


def test_a_numeric_address_is_resolved_at_once():
    resolution = resolve("127.0.0.1", 9092, lambda: None)
    assert resolution.done
    assert [str(one) for one in resolution.addresses] == ["127.0.0.1:9092"]
    assert str(resolve("::1", 9092, lambda: None).addresses[0]) == "[::1]:9092"


def test_a_name_is_resolved_beside_the_loop(poller):
    resolution = poller.resolve("localhost", 9092)
    while not resolution.done:
        poller.poll(PATIENCE_MS)
    assert "127.0.0.1:9092" in [str(one) for one in resolution.addresses]


@pytest.mark.parametrize("host", ["no-such-host.invalid", "label..empty", "x" * 70 + ".org"])
def test_a_name_that_does_not_resolve_is_an_error(poller, host):
    resolution = poller.resolve(host, 9092)
    while not resolution.done:
        poller.poll(PATIENCE_MS)
    assert isinstance(resolution.error, OSError)
    assert not resolution.addresses
