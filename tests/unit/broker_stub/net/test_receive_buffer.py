"""Frames out of a stream of bytes, however it is cut."""

import pytest
from hypothesis import given
from hypothesis import strategies as st

from broker_stub.net.receive_buffer import BUFFER_BYTES, BufferPool, ReceiveBuffer
from pyclient.errors import ProtocolError


def framed(*frames: bytes) -> bytes:
    return b"".join(len(frame).to_bytes(4, "big") + frame for frame in frames)


def receive(buffer: ReceiveBuffer, data: bytes) -> None:
    room = buffer.room()
    assert len(room) > 0
    taken = min(len(room), len(data))
    room[:taken] = data[:taken]
    buffer.received(taken)
    if taken < len(data):
        receive(buffer, data[taken:])


def frames_of(buffer: ReceiveBuffer) -> list[bytes]:
    found = []
    while (frame := buffer.next_frame()) is not None:
        found.append(bytes(frame))
    return found


@given(st.lists(st.binary(max_size=300)), st.data())
def test_frames_come_out_as_they_went_in_however_they_are_cut(frames, data):
    stream = framed(*frames)
    buffer = ReceiveBuffer(BufferPool(), limit=1000)
    found = []
    while stream:
        cut = data.draw(st.integers(1, len(stream)))
        receive(buffer, stream[:cut])
        stream = stream[cut:]
        found += frames_of(buffer)
        buffer.release()
    assert found == frames


def test_a_frame_larger_than_the_buffer_makes_it_grow():
    large = bytes(range(256)) * (3 * BUFFER_BYTES // 256)
    stream = framed(b"before", large, b"after")
    buffer = ReceiveBuffer(BufferPool(), limit=len(large))
    found = []
    while stream:
        room = buffer.room()  # as a socket would: no more than there is room for
        taken = min(len(room), len(stream), 100_000)
        receive(buffer, stream[:taken])
        stream = stream[taken:]
        found += frames_of(buffer)
        buffer.release()
    assert found == [b"before", large, b"after"]


def test_a_length_alone_allocates_nothing_for_its_frame():
    pool = BufferPool()
    buffer = ReceiveBuffer(pool, limit=100 << 20)
    receive(buffer, (100 << 20).to_bytes(4, "big"))
    assert buffer.next_frame() is None
    assert len(buffer.room()) < BUFFER_BYTES


@pytest.mark.parametrize("length", [-1, 1001])
def test_a_frame_that_is_negative_or_above_the_limit_is_refused(length):
    buffer = ReceiveBuffer(BufferPool(), limit=1000)
    receive(buffer, length.to_bytes(4, "big", signed=True))
    with pytest.raises(ProtocolError, match="1000"):
        buffer.next_frame()


def test_an_idle_connection_holds_no_buffer():
    pool = BufferPool()
    buffer = ReceiveBuffer(pool, limit=1000)
    receive(buffer, framed(b"request"))
    assert frames_of(buffer) == [b"request"]
    buffer.release()
    spare = pool.take()
    assert len(spare) == BUFFER_BYTES
    pool.give_back(spare)
    receive(buffer, framed(b"next"))
    assert buffer._buffer is spare


def test_a_buffer_with_half_a_frame_in_it_is_kept():
    buffer = ReceiveBuffer(BufferPool(), limit=1000)
    receive(buffer, framed(b"request")[:5])
    buffer.release()
    receive(buffer, framed(b"request")[5:])
    assert frames_of(buffer) == [b"request"]


def test_the_beginning_of_a_frame_holds_no_more_than_itself():
    pool = BufferPool()
    waiting = [ReceiveBuffer(pool, limit=1000) for _ in range(100)]
    for buffer in waiting:
        receive(buffer, framed(b"request")[:5])
        buffer.release()
        assert buffer.has_room
    assert sum(len(buffer._buffer) for buffer in waiting) == 500
    for buffer in waiting:
        receive(buffer, framed(b"request")[5:] + framed(b"next"))
        assert frames_of(buffer) == [b"request", b"next"]
        buffer.release()


def test_a_long_beginning_of_a_frame_stays_where_it_is():
    buffer = ReceiveBuffer(BufferPool(), limit=BUFFER_BYTES)
    receive(buffer, framed(bytes(BUFFER_BYTES // 2))[:-1])
    before = buffer._buffer
    buffer.release()
    assert buffer._buffer is before


def test_a_full_buffer_of_unhandled_frames_has_no_room():
    buffer = ReceiveBuffer(BufferPool(), limit=BUFFER_BYTES)
    receive(buffer, framed(b"x" * (BUFFER_BYTES // 2 - 4), b"x" * (BUFFER_BYTES // 2 - 4)))
    assert not buffer.has_room
    assert buffer.next_frame() is not None
    assert buffer.has_room
