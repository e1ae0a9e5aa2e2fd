"""Byte streams cut into frames, however they arrive."""

import pytest
from hypothesis import given
from hypothesis import strategies as st

from pyclient.errors import InvalidReceiveError
from pyclient.net.frame_reader import FrameReader

SCRATCH_BYTES = 64


def framed(payload: bytes) -> bytes:
    return len(payload).to_bytes(4, "big") + payload


def feed(reader: FrameReader, data: bytes, piece_bytes: int = SCRATCH_BYTES) -> None:
    scratch = memoryview(bytearray(SCRATCH_BYTES))
    while data:
        target = reader.target(scratch)
        count = min(len(target), len(data), piece_bytes)
        target[:count] = data[:count]
        reader.received(scratch, count)
        data = data[count:]


@given(
    payloads=st.lists(st.binary(max_size=300), max_size=8),
    piece_bytes=st.integers(1, SCRATCH_BYTES),
)
def test_frames_come_out_as_they_were_sent_whatever_the_pieces(payloads, piece_bytes):
    reader = FrameReader(limit_bytes=1_000)
    feed(reader, b"".join(map(framed, payloads)), piece_bytes)
    assert [bytes(frame) for frame in reader.frames] == payloads


def test_frames_stay_valid_when_later_bytes_use_the_same_buffer():
    reader = FrameReader(limit_bytes=1_000)
    feed(reader, framed(b"first") + framed(b"x" * 200) + framed(b"third"))
    first, large, third = reader.frames
    feed(reader, framed(b"y" * 500) * 3)
    assert bytes(first) == b"first"
    assert bytes(large) == b"x" * 200
    assert bytes(third) == b"third"


def test_a_frame_larger_than_the_first_step_of_memory_grows_into_its_length():
    payload = bytes(range(256)) * 4 * 4 * 1024  # 4 MiB
    payload += b"end"
    reader = FrameReader(limit_bytes=1 << 24)
    scratch = memoryview(bytearray(1 << 16))
    data = memoryview(framed(payload))
    while data:
        target = reader.target(scratch)
        count = min(len(target), len(data))
        target[:count] = data[:count]
        reader.received(scratch, count)
        data = data[count:]
    assert bytes(reader.frames[0]) == payload


def test_a_large_announcement_costs_no_more_than_the_first_step():
    reader = FrameReader(limit_bytes=2**31 - 1)
    feed(reader, (2**31 - 1).to_bytes(4, "big") + b"a")
    assert len(reader.target(memoryview(bytearray(SCRATCH_BYTES)))) <= 1 << 22


@pytest.mark.parametrize("length", [-1, -(2**31), 1_001, 2**31 - 1])
def test_a_length_out_of_bounds_is_refused(length):
    with pytest.raises(InvalidReceiveError, match=rf"a frame of {length} bytes"):
        feed(FrameReader(limit_bytes=1_000), length.to_bytes(4, "big", signed=True))


def test_a_web_server_is_recognised():
    with pytest.raises(InvalidReceiveError, match="a web server, not a Kafka broker"):
        feed(FrameReader(limit_bytes=100_000_000), b"HTTP/1.1 400 Bad Request\r\n\r\n")


def test_a_tls_listener_is_recognised():
    with pytest.raises(InvalidReceiveError, match="needs security_protocol SSL"):
        feed(FrameReader(limit_bytes=100_000_000), bytes.fromhex("15030300020250"))
