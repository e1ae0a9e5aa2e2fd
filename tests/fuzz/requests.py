"""Requests to mutate: Apache Kafka's own bytes, and some that do something on a test's broker."""

from broker_stub.handlers import SERVED
from pyclient.protocol.frame import LENGTH, request_frame
from pyclient.protocol.header import RequestHeader, request_header_version
from pyclient.protocol.messages.fetch import FetchPartition, FetchRequest, FetchTopic
from pyclient.protocol.messages.list_offsets import (
    ListOffsetsPartition,
    ListOffsetsRequest,
    ListOffsetsTopic,
)
from pyclient.protocol.registry import API_NAMES, request_class
from pyclient.protocol.schema import Message
from tests.golden.loader import golden_lines
from tests.support.node_harness import batch, produce_request


def corpus() -> list[bytes]:
    """Both kinds, about as many of the one as of the other; frames without their length."""
    golden, sensible = golden_requests(), sensible_requests()
    return golden + sensible * (len(golden) // len(sensible))


def golden_requests() -> list[bytes]:
    """Apache Kafka's bytes of every request that is served, in every version."""
    keys = {f"{API_NAMES[key]}Request": key for key in SERVED}
    frames = []
    for line in golden_lines("messages.jsonl.gz"):
        api_key = keys.get(line["message"])
        if api_key is None:
            continue
        header = RequestHeader(
            request_api_key=api_key,
            request_api_version=line["version"],
            correlation_id=1,
            client_id="fuzz",
        )
        version = request_header_version(request_class(api_key), line["version"])
        frames.append(header.encode_bytes(version) + bytes.fromhex(line["hex"]))
    return frames


def sensible_requests() -> list[bytes]:
    """Requests that do something here: a topic that exists, batches that are right."""
    fetch = FetchRequest(
        max_wait_ms=10,
        topics=[
            FetchTopic(
                topic="orders", partitions=[FetchPartition(partition=0, partition_max_bytes=1000)]
            )
        ],
    )
    offsets = ListOffsetsRequest(
        replica_id=-1,
        topics=[ListOffsetsTopic(name="orders", partitions=[ListOffsetsPartition(timestamp=5)])],
    )
    numbered = {"producer_id": 7, "producer_epoch": 0, "base_sequence": 0}
    asked: list[tuple[Message, int]] = [
        *((produce_request("orders", batch(b"a", b"b")), version) for version in (3, 9, 12)),
        *((produce_request("orders", batch(b"a", **numbered)), version) for version in (3, 9)),
        *((fetch, version) for version in (4, 7, 11, 12)),
        *((offsets, version) for version in (1, 5, 10)),
    ]
    return [
        b"".join(request_frame(request, version, 1, "fuzz"))[LENGTH.size :]  # type: ignore[arg-type]
        for request, version in asked
    ]
