"""Peers that send mutated requests to a real broker process, and an honest client among them.

Each bad peer sends one frame and no more. Whatever it was, the broker answers or not, and then
closes; many are connected at a time, and meanwhile the honest client writes and reads.
"""

from __future__ import annotations

import socket
from collections.abc import Callable
from pathlib import Path
from typing import NamedTuple

from pyclient.protocol.frame import LENGTH
from pyclient.protocol.messages.fetch import FetchPartition, FetchRequest, FetchTopic
from pyclient.protocol.messages.metadata import MetadataRequest, MetadataRequestTopic
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


def serve_bad_peers(folder: Path, count: int, until: Callable[[], bool] = lambda: False) -> Served:
    """Let so many come; what they got, and by how much the broker's memory grew."""
    originals = corpus()
    mutator = Mutator(SEED)
    answered = came = 0
    with ServerProcess("--data-dir", folder) as server, HonestClient(server.port) as honest:
        honest.write_and_read()
        before = resident_bytes(server.pid)
        peers: list[socket.socket] = []
        for index in mutator.inputs(len(originals), count):
            peers.append(_send(server.port, mutator.mutate(originals[index], originals)))
            came += 1
            if len(peers) == PEERS_AT_A_TIME:
                honest.write_and_read()
                answered += sum(map(_is_answered, peers))
                peers.clear()
                if until():
                    break
        answered += sum(map(_is_answered, peers))
        honest.write_and_read()
        growth = resident_bytes(server.pid) - before
        mistakes = server.errors().partition("Traceback")
    assert not mistakes[1], f"FUZZ_SEED={SEED}: {mistakes[2][:3000]}"
    assert growth < GROWTH_BYTES_MAX, f"FUZZ_SEED={SEED}: {growth >> 20} MiB more than before"
    return Served(answered, came - answered, growth)


def _send(port: int, frame: bytes) -> socket.socket:
    peer = socket.create_connection(("127.0.0.1", port), TIMEOUT_SECONDS)
    peer.sendall(LENGTH.pack(len(frame)) + frame)
    peer.shutdown(socket.SHUT_WR)
    return peer


def _is_answered(peer: socket.socket) -> bool:
    """Read to the end, which the broker sets; whether there was anything."""
    received = 0
    with peer:
        try:
            while piece := peer.recv(1 << 16):
                received += len(piece)
        except ConnectionResetError:
            pass
    return received > 0
