"""Peers that send mutated requests to a real broker process, and an honest client among them.

Each bad peer sends one frame and waits: the broker must answer it or close the connection soon.
Many are connected at a time, and meanwhile the honest client writes and reads. A peer closes its
own side only after a request that may stay unanswered for long.
"""

import socket
from collections.abc import Callable
from pathlib import Path
from typing import NamedTuple

from broker_stub.handlers import SERVED
from pyclient.errors import ProtocolError
from pyclient.protocol.frame import LENGTH
from pyclient.protocol.header import RequestHeader, request_header_version
from pyclient.protocol.messages.fetch import FetchPartition, FetchRequest, FetchTopic
from pyclient.protocol.messages.join_group import JoinGroupRequest
from pyclient.protocol.messages.metadata import MetadataRequest, MetadataRequestTopic
from pyclient.protocol.messages.produce import ProduceRequest
from pyclient.protocol.messages.sync_group import SyncGroupRequest
from pyclient.protocol.registry import request_class
from pyclient.protocol.schema import Message
from pyclient.records.batch import iter_batches
from tests.fuzz.mutator import SEED, Mutator
from tests.fuzz.requests import corpus
from tests.integration.broker_stub.raw_client import RawClient
from tests.support.broker_load import resident_bytes
from tests.support.node_harness import batch, produce_request
from tests.support.server_process import ServerProcess

GROWTH_BYTES_MAX = 64 << 20
PEERS_AT_A_TIME = 20
TIMEOUT_SECONDS = 20
TOPIC = "honest"
_CORRELATION_ID = slice(4, 8)  # in a request, behind its API key and version


class Served(NamedTuple):
    """What came of it."""

    answered: int
    hung_up_on: int
    growth_bytes: int


class HonestClient(RawClient):
    """Writes and reads one record after another, and expects every one."""

    def __init__(self, port: int) -> None:
        super().__init__(port)
        self._written = 0
        self.ask(MetadataRequest(topics=[MetadataRequestTopic(name=TOPIC)]), 9)

    def write_and_read(self) -> None:
        value = b"%d" % self._written
        response = self.ask(produce_request(TOPIC, batch(value)), 9)
        (outcome,) = response.responses[0].partition_responses
        assert (outcome.error_code, outcome.base_offset) == (0, self._written)
        partition = FetchPartition(
            partition=0, fetch_offset=self._written, partition_max_bytes=1 << 20
        )
        request = FetchRequest(topics=[FetchTopic(topic=TOPIC, partitions=[partition])])
        (data,) = self.ask(request, 12).responses[0].partitions
        (found,) = iter_batches(data.records)
        assert [record.value for record in found.decode()] == [value]
        self._written += 1


class BadPeer:
    """One connection with one frame, which the broker has to do something about."""

    def __init__(self, port: int, frame: bytes) -> None:
        self._frame = frame
        self._socket = socket.create_connection(("127.0.0.1", port), TIMEOUT_SECONDS)
        self._socket.sendall(LENGTH.pack(len(frame)) + frame)
        if may_wait(frame):
            self._socket.shutdown(socket.SHUT_WR)

    def is_answered(self) -> bool:
        """Wait for what the broker does: True for an answer to this frame, False for a hang-up."""
        with self._socket:
            try:
                return self._reads_an_answer()
            except ConnectionResetError:
                return False
            except TimeoutError:
                raise AssertionError(
                    f"FUZZ_SEED={SEED}: neither an answer nor a hang-up: {self._frame.hex()}"
                ) from None

    def _reads_an_answer(self) -> bool:
        head = self._read(LENGTH.size + 4)
        if not head:
            return False
        (length,) = LENGTH.unpack_from(head)
        assert head[LENGTH.size :] == self._frame[_CORRELATION_ID], self._frame.hex()
        left = length - len(head) + LENGTH.size
        assert len(self._read(left)) == left, f"half an answer: {self._frame.hex()}"
        return True

    def _read(self, count: int) -> bytes:
        """Read `count` bytes, or fewer at the end of the connection."""
        data = bytearray()
        while len(data) < count and (piece := self._socket.recv(count - len(data))):
            data += piece
        return bytes(data)


def may_wait(frame: bytes) -> bool:
    """Whether a frame is a request without a response, or one that may be parked."""
    try:
        request = decoded(frame)
    except ProtocolError:
        return False
    match request:
        case ProduceRequest():
            return request.acks == 0
        case FetchRequest():
            return request.max_wait_ms > 0
        case JoinGroupRequest() | SyncGroupRequest():
            return True
    return False


def decoded(frame: bytes) -> Message:
    """The request in a frame.

    Raises:
        ProtocolError: there is none that is served.
    """
    api_key, version = int.from_bytes(frame[:2]), int.from_bytes(frame[2:4])
    if api_key not in SERVED or not SERVED[api_key].lowest <= version <= SERVED[api_key].highest:
        raise ProtocolError("not served")
    declared = request_class(api_key)
    header_version = request_header_version(declared, version)
    _, position = RequestHeader.decode_from(frame, 0, header_version)
    request, _ = declared.decode_from(frame, position, version)
    return request


def serve_bad_peers(folder: Path, count: int, until: Callable[[], bool] = lambda: False) -> Served:
    """Run a number of bad peers; returns their results and the growth of the broker's memory."""
    originals = corpus()
    mutator = Mutator(SEED)
    answered = came = 0
    with ServerProcess("--data-dir", folder) as server, HonestClient(server.port) as honest:
        honest.write_and_read()
        before = resident_bytes(server.pid)
        peers: list[BadPeer] = []
        for index in mutator.inputs(len(originals), count):
            peers.append(BadPeer(server.port, mutator.mutate(originals[index], originals)))
            came += 1
            if len(peers) == PEERS_AT_A_TIME:
                honest.write_and_read()
                answered += sum(peer.is_answered() for peer in peers)
                peers.clear()
                if until():
                    break
        answered += sum(peer.is_answered() for peer in peers)
        honest.write_and_read()
        growth = resident_bytes(server.pid) - before
        mistakes = server.errors().partition("Traceback")
    assert not mistakes[1], f"FUZZ_SEED={SEED}: {mistakes[2][:3000]}"
    assert growth < GROWTH_BYTES_MAX, f"FUZZ_SEED={SEED}: {growth >> 20} MiB more than before"
    return Served(answered, came - answered, growth)
