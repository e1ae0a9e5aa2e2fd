"""Sockets on loopback: writing parts, reading frames, connecting, waking."""

import signal
import socket
import threading
from types import SimpleNamespace

import pytest

from pyclient import _twin
from pyclient.errors import InvalidReceiveError
from pyclient.net.environment import SystemEnvironment
from pyclient.net.poller import ExchangePoller, Poller, SelectorPoller, new_poller
from pyclient.net.resolver import Address, resolve
from pyclient.net.transport import SocketOptions
from tests.support.loopback import framed, receiving

OWNER = SimpleNamespace()
PATIENCE_MS = 10_000


POLLERS = {"native": ExchangePoller, "python": SelectorPoller}


@pytest.fixture(params=list(POLLERS))
def kind(request):
    return POLLERS[request.param]


@pytest.fixture
def poller(kind):
    poller = kind(SocketOptions(send_buffer_bytes=16_384, receive_buffer_bytes=-1))
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
    with receiving(peer, b"".join(pieces)):
        poller.poll(0)
        while transport.parts_sent < parts:
            poller.poll(PATIENCE_MS)


def test_what_the_system_does_not_take_at_once_goes_out_when_it_does(poller, connected):
    transport, peer = connected
    large = [memoryview(bytearray(range(256)) * 512) for _ in range(8)]  # 1 MiB in all
    transport.send([b"head", *large])
    poller.poll(0)
    assert transport.parts_sent < 9
    with receiving(peer, b"head" + b"".join(large)):
        while transport.parts_sent < 9:
            assert transport in poller.poll(PATIENCE_MS)  # progress is news


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


def test_a_frame_above_the_limit_ends_the_transport(kind, listener):
    poller = kind(SocketOptions(receive_message_max_bytes=100))
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


# --- the native exchange -------------------------------------------------------------------------


@pytest.mark.usefixtures("twin")
def test_the_twin_in_use_decides_what_waits_for_plaintext_sockets():
    poller: Poller = new_poller(SocketOptions())
    made = SystemEnvironment().new_poller(SocketOptions())
    assert type(poller) is type(made) is POLLERS["native" if _twin.NATIVE else "python"]
    poller.close()
    made.close()


@pytest.fixture
def native(listener):
    poller = ExchangePoller(SocketOptions())
    transport = poller.open(address_of(listener), OWNER)
    peer, _ = listener.accept()
    poller.poll(PATIENCE_MS)
    yield poller, transport, peer
    transport.close()
    peer.close()
    poller.close()


def in_a_thread(function, *arguments):
    thread = threading.Thread(target=function, args=arguments)
    thread.start()
    return thread


def test_a_poll_goes_on_until_a_frame_is_whole(native):
    poller, transport, peer = native
    frame = bytes(range(256)) * 40_000  # 10 MB: more than the first memory for it
    sender = in_a_thread(peer.sendall, framed(frame))
    assert poller.poll(PATIENCE_MS) == [transport]
    assert [bytes(one) for one in transport.take_frames()] == [frame]
    sender.join()


def test_a_wake_ends_a_poll_in_the_middle_of_a_frame(native):
    poller, transport, peer = native
    peer.sendall(framed(b"whole")[:7])
    waker = threading.Timer(0.05, poller.wake)
    waker.start()
    assert poller.poll(PATIENCE_MS * 100) == []
    peer.sendall(framed(b"whole")[7:])
    assert poller.poll(PATIENCE_MS) == [transport]
    assert [bytes(one) for one in transport.take_frames()] == [b"whole"]
    waker.join()


def test_a_poll_ends_in_time_while_bytes_of_a_frame_keep_coming(native):
    poller, _, peer = native
    stop = threading.Event()

    def trickle():
        peer.sendall((1 << 26).to_bytes(4, "big"))
        while not stop.wait(0.001):
            peer.send(b"x" * 100)

    sender = in_a_thread(trickle)
    assert poller.poll(100) == []
    stop.set()
    sender.join()


def test_frames_keep_their_bytes_while_their_memory_goes_round(native):
    poller, transport, peer = native
    held = []
    for number in range(12):
        frame = bytes([number]) * 300_000
        sender = in_a_thread(peer.sendall, framed(frame))
        assert poller.poll(PATIENCE_MS) == [transport]
        (received,) = transport.take_frames()
        assert received.readonly
        if number % 3 == 0:
            held.append((received[1_000:200_000], frame))  # a view outlives the frame
        sender.join()
    assert all(view == frame[1_000:200_000] for view, frame in held)


def test_a_signal_handler_that_raises_ends_a_poll_and_loses_nothing(native):
    poller, transport, peer = native

    def interrupt(*_):
        raise KeyboardInterrupt

    before = signal.signal(signal.SIGALRM, interrupt)
    try:
        signal.setitimer(signal.ITIMER_REAL, 0.05)
        with pytest.raises(KeyboardInterrupt):
            poller.poll(PATIENCE_MS * 100)
    finally:
        signal.signal(signal.SIGALRM, before)
    peer.sendall(framed(b"after"))
    assert poller.poll(PATIENCE_MS) == [transport]
    assert [bytes(one) for one in transport.take_frames()] == [b"after"]


def test_a_wake_after_the_end_does_nothing(kind):
    poller = kind(SocketOptions())
    poller.close()
    poller.wake()


def test_parts_are_let_go_of_when_they_are_written_or_the_transport_is_closed(native):
    poller, transport, _ = native
    written, queued = bytearray(b"written"), bytearray(b"queued")
    transport.send([written])
    poller.poll(0)
    written += b"!"  # would raise BufferError if it were referred to
    transport.send([queued])
    transport.close()
    queued += b"!"
