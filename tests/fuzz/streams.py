"""Mutated byte streams through both pollers' receivers: `python -m tests.fuzz.streams COUNT`.

The native exchange reads them from a socket, in pieces of any size, and cuts them into the frames
that the Python reader finds, or refuses the same length. Beside that it writes parts of any size,
which arrive as they were. A module of its own, so that a run under AddressSanitizer needs nothing
but an interpreter.
"""

import importlib
import random
import socket
import sys
import time
from collections.abc import Callable
from contextlib import suppress
from typing import Any

from pyclient.errors import InvalidReceiveError
from pyclient.net.frame_reader import FrameReader, invalid_length
from tests.fuzz.mutator import SEED, Mutator

LIMIT_BYTES = 6 << 20
PATIENCE_MS = 10_000
SIZES = (0, 1, 3, 4, 5, 60, 1_000, 65_531, 65_532, 65_533, 70_000, 300_000, 2_000_000, 5_000_000)


def corpus(draw: random.Random) -> list[bytes]:
    """Streams of a few frames of many sizes, on both sides of the receiver's limits."""
    streams = []
    for _ in range(40):
        largest = draw.choice((4, 7, 11, len(SIZES)))
        frames = [draw.randbytes(draw.choice(SIZES[:largest])) for _ in range(draw.randint(1, 6))]
        streams.append(b"".join(len(one).to_bytes(4, "big") + one for one in frames))
    return streams


def expected(data: bytes) -> tuple[list[bytes], str | None]:
    """The frames that the Python reader finds, and what it says about a length it refuses."""
    reader = FrameReader(LIMIT_BYTES)
    scratch = memoryview(bytearray(1 << 16))
    refusal = None
    try:
        while data:
            target = reader.target(scratch)
            count = min(len(target), len(data))
            target[:count] = data[:count]
            reader.received(scratch, count)
            data = data[count:]
    except InvalidReceiveError as error:
        refusal = str(error)
    return [bytes(frame) for frame in reader.frames], refusal


class Wire:
    """A native transport, and the other end of its connection."""

    def __init__(self) -> None:
        native = importlib.import_module("pyclient._native.exchange")
        rings = socket.socketpair()
        for one in rings:
            one.setblocking(False)
        self.exchange: Any = native.Exchange(*rings, LIMIT_BYTES, invalid_length)
        ours, self.peer = socket.socketpair()
        ours.setblocking(False)
        self.peer.setblocking(False)
        self.transport: Any = self.exchange.add(ours, None)

    def close(self) -> None:
        self.transport.close()
        self.peer.close()
        self.exchange.close()


def receive(wire: Wire, data: bytes, draw: random.Random) -> tuple[list[bytes], str | None]:
    """What the native exchange makes of the bytes, which come in pieces of any size."""
    frames: list[memoryview] = []
    left = memoryview(data)
    while wire.transport.error is None:
        if left:
            piece = draw.choice((1, 3, 4, 100, 65_536, 1 << 20))
            with suppress(BlockingIOError):  # the exchange reads first
                left = left[wire.peer.send(left[:piece]) :]
        elif wire.peer.fileno() >= 0:
            wire.peer.close()
        wire.exchange.turn(0)
        if draw.random() < 0.5:
            frames += wire.transport.take_frames()
    frames += wire.transport.take_frames()
    error = wire.transport.error
    refusal = str(error) if isinstance(error, InvalidReceiveError) else None
    return [bytes(frame) for frame in frames], refusal


def send(wire: Wire, draw: random.Random) -> None:
    """Parts of any size, some of them empty, arrive as they were."""
    parts = [
        draw.randbytes(draw.choice((0, 1, 7, 1_000, 100_000))) for _ in range(draw.randint(1, 40))
    ]
    whole = b"".join(parts)
    wire.transport.send(parts[:20])
    wire.transport.send([memoryview(bytearray(part)) for part in parts[20:]])
    received = b""
    while len(received) < len(whole):
        wire.exchange.turn(0)
        try:
            received += wire.peer.recv(draw.choice((10, 5_000, 1 << 20)))
        except BlockingIOError:
            continue
    assert received == whole
    wire.exchange.turn(0)
    assert wire.transport.parts_sent == len(parts)


def fuzz(count: int, *, seed: int = SEED, until: Callable[[], bool] = lambda: False) -> int:
    """How many streams there were.

    Raises:
        AssertionError: the native exchange and the Python reader differ.
    """
    draw = random.Random(seed)
    originals = corpus(draw)
    mutator = Mutator(seed)
    done = 0
    for index in mutator.inputs(len(originals), count):
        if done % 100 == 0 and until():
            break
        data = mutator.mutate(originals[index], originals)
        wire = Wire()
        try:
            if done % 4 == 0:
                send(wire, draw)
            is_cut_off = done % 10 == 0
            if is_cut_off:  # what is never read makes writing fail, with frames on their way
                wire.transport.send([bytes(100_000)] * 40)
            frames, refusal = receive(wire, data, draw)
            if is_cut_off:
                assert frames == expected(data)[0][: len(frames)]
            else:
                assert (frames, refusal) == expected(data)
        except BaseException as error:
            error.add_note(f"FUZZ_SEED={seed}, input {done}: {data[:200].hex()}...")
            raise
        finally:
            wire.close()
        done += 1
    return done


if __name__ == "__main__":
    started = time.monotonic()
    streams = fuzz(int(sys.argv[1]))
    print(f"{streams} streams, {time.monotonic() - started:.0f} s")
