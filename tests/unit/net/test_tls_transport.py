"""TLS on loopback: the same parts in and frames out as without it, whatever OpenSSL keeps."""

import socket
import ssl
import threading
from collections.abc import Iterator
from types import SimpleNamespace

import pytest

from broker_stub.testing.tls import TlsCertificates
from pyclient.net.poller import SelectorPoller
from pyclient.net.resolver import Address
from pyclient.net.tls import TlsSettings
from pyclient.net.tls_transport import TlsTransport
from pyclient.net.transport import SocketOptions
from tests.support.loopback import framed, read_exactly, receiving

OWNER = SimpleNamespace(broker=SimpleNamespace(host="localhost"))
PATIENCE_MS = 10_000


@pytest.fixture
def poller(kafka_tls_certificates: TlsCertificates) -> Iterator[SelectorPoller]:
    context = ssl.create_default_context(cafile=kafka_tls_certificates.ca_file)
    tls = TlsSettings(context, "the test", has_certificate=False)
    poller = SelectorPoller(SocketOptions(send_buffer_bytes=16_384, tls=tls))
    yield poller
    poller.close()


@pytest.fixture
def connected(
    poller: SelectorPoller, kafka_tls_certificates: TlsCertificates
) -> Iterator[tuple[TlsTransport, ssl.SSLSocket]]:
    context = ssl.SSLContext(ssl.PROTOCOL_TLS_SERVER)
    context.load_cert_chain(kafka_tls_certificates.broker_file)
    peers: list[ssl.SSLSocket] = []
    with socket.create_server(("127.0.0.1", 0)) as listener:

        def accept() -> None:
            peers.append(context.wrap_socket(listener.accept()[0], server_side=True))

        thread = threading.Thread(target=accept)
        thread.start()
        transport = poller.open(Address(int(socket.AF_INET), listener.getsockname()), OWNER)
        assert isinstance(transport, TlsTransport)
        while not transport.secured:
            poller.poll(PATIENCE_MS)
            assert transport.error is None
        thread.join(10)
    (peer,) = peers
    peer.settimeout(10)
    yield transport, peer
    transport.close()
    peer.close()


@pytest.mark.parametrize("parts", [1, 3, 1_024, 5_000])
def test_parts_arrive_in_order_however_many(poller, connected, parts):
    transport, peer = connected
    pieces = [bytes([number % 256]) * (number % 90) for number in range(1, parts + 1)]
    pieces[parts // 2] = b""
    with receiving(peer, b"".join(pieces)):
        assert transport.send(pieces) == parts
        while transport.parts_sent < parts:
            poller.poll(0)


def test_what_the_system_does_not_take_at_once_goes_out_when_it_does(poller, connected):
    transport, peer = connected
    large = [memoryview(bytearray(range(256)) * 4096) for _ in range(8)]  # 8 MiB in all
    transport.send([b"head", *large])
    poller.poll(0)
    assert transport.parts_sent < 9
    with receiving(peer, b"head" + b"".join(large)):
        while transport.parts_sent < 9:
            assert transport in poller.poll(PATIENCE_MS)


def test_sent_buffers_are_let_go_of(poller, connected):
    transport, peer = connected
    buffer = bytearray(100_000)
    reader = threading.Thread(target=lambda: read_exactly(peer, len(buffer)))
    reader.start()
    transport.send([buffer])
    while transport.parts_sent < 1:
        poller.poll(PATIENCE_MS)
    reader.join(10)
    buffer.append(0)  # fails while a view of it is held


@pytest.mark.parametrize("size", [0, 1, 16_383, 16_384, 16_385, 70_000, 3_000_000])
def test_frames_of_any_size_arrive_whole(poller, connected, size):
    transport, peer = connected
    payload = bytes(index % 251 for index in range(size))
    writer = threading.Thread(target=lambda: peer.sendall(framed(payload) * 3))
    writer.start()
    frames: list[memoryview] = []
    while len(frames) < 3:
        poller.poll(PATIENCE_MS)
        assert transport.error is None
        frames += transport.take_frames()
    writer.join(10)
    assert [bytes(frame) for frame in frames] == [payload] * 3


def test_what_openssl_keeps_of_a_record_is_not_left_there(poller, connected):
    """One record holds many small frames, and the selector sees it only once."""
    transport, peer = connected
    many = 16_384 // 8
    peer.sendall(framed(b"four") * many)
    frames: list[memoryview] = []
    while len(frames) < many:
        assert poller.poll(PATIENCE_MS), "the rest is kept inside"
        frames += transport.take_frames()
    assert len(frames) == many


def test_a_goodbye_of_the_peer_is_the_end_of_the_stream_after_the_frames_before_it(
    poller, connected
):
    transport, peer = connected
    peer.sendall(framed(b"last words"))
    peer.setblocking(False)
    with pytest.raises(ssl.SSLWantReadError):
        peer.unwrap()
    while transport.error is None:
        poller.poll(PATIENCE_MS)
    assert [bytes(frame) for frame in transport.take_frames()] == [b"last words"]
    assert isinstance(transport.error, EOFError)


def test_a_connection_that_is_cut_off_is_the_end_of_the_stream(poller, connected):
    transport, peer = connected
    socket.socket(fileno=peer.detach()).close()
    while transport.error is None:
        poller.poll(PATIENCE_MS)
    assert isinstance(transport.error, EOFError | OSError)


def test_closing_says_goodbye(connected):
    transport, peer = connected
    transport.close()
    transport.close()
    assert peer.recv(100) == b""  # and not an error about a stream that was cut off


def test_closing_in_the_middle_of_a_write_does_not_wait(poller, connected):
    transport, _ = connected
    buffer = bytearray(8 << 20)
    transport.send([buffer])
    poller.poll(0)
    transport.close()
    buffer.append(0)
