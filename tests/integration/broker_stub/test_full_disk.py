"""A real process on files that can't grow any more: the kernel cuts its writes short."""

import signal
from pathlib import Path

import pytest

from pyclient.error_codes import KafkaStorageError
from pyclient.protocol.messages.fetch import FetchPartition, FetchRequest, FetchTopic
from pyclient.protocol.messages.metadata import MetadataRequest, MetadataRequestTopic
from pyclient.records.batch import iter_batches
from tests.integration.broker_stub.raw_client import RawClient
from tests.support.node_harness import batch, produce_request
from tests.support.server_process import ServerProcess

FILE_BYTES_MAX = 100_000


def produce(client: RawClient, value: bytes, sequence: int) -> tuple[int, int]:
    """Error code and offset."""
    numbered = batch(value, size=1 << 12, producer_id=7, producer_epoch=0, base_sequence=sequence)
    response = client.ask(produce_request("orders", numbered), 9)
    (outcome,) = response.responses[0].partition_responses
    return outcome.error_code, outcome.base_offset


def read_all(client: RawClient) -> list[bytes]:
    partition = FetchPartition(partition=0, partition_max_bytes=1 << 30)
    request = FetchRequest(topics=[FetchTopic(topic="orders", partitions=[partition])])
    data = client.ask(request, 12).responses[0].partitions[0]
    return [record.value for one in iter_batches(data.records) for record in one.decode()]


@pytest.mark.parametrize("clean", [True, False])
def test_what_does_not_fit_is_refused_and_all_that_was_acked_is_there_after_a_restart(
    tmp_path: Path, clean: bool
):
    limited = ServerProcess(
        "--data-dir", tmp_path, wrapper=("prlimit", f"--fsize={FILE_BYTES_MAX}")
    )
    acked: list[bytes] = []
    with limited as server, RawClient(server.port) as client:
        client.ask(MetadataRequest(topics=[MetadataRequestTopic(name="orders")]), 9)
        while True:
            value = b"%d" % len(acked) * 700
            error_code, offset = produce(client, value, len(acked))
            if error_code:
                break
            assert offset == len(acked)
            acked.append(value)
        assert error_code == KafkaStorageError.code
        small = b"fits still"
        assert produce(client, small, len(acked)) == (0, len(acked))  # the torn one was cut off
        acked.append(small)
        assert read_all(client) == acked
        server.signal(signal.SIGTERM if clean else signal.SIGKILL)
    with ServerProcess("--data-dir", tmp_path) as server, RawClient(server.port) as client:
        assert produce(client, small, len(acked) - 1) == (0, len(acked) - 1)  # known again
        assert produce(client, value, len(acked)) == (0, len(acked))
        assert read_all(client) == [*acked, value]
