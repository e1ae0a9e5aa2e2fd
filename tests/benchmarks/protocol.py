"""Message codecs against kafka-python's: `python -m tests.benchmarks.protocol`.

Metadata of 1,000 partitions, three replicas each, and a Fetch of 100 partitions, as request and
as response, in versions that both speak. Both sides start from finished objects and end with the
body's bytes, or start from these and end with objects; the bytes are compared before the race.
"""

import sys
from collections.abc import Iterator
from typing import Any

from pyclient.protocol.messages import fetch, metadata
from pyclient.protocol.schema import Message
from tests.benchmarks.harness import Race, report
from tests.support.kafka_python_messages import kafka_python_messages, to_theirs

BAR = 1.5
RECORDS = b"r" * 1000


def metadata_response(partitions: int) -> metadata.MetadataResponse:
    """A cluster of three brokers and ten topics."""
    brokers = [
        metadata.MetadataResponseBroker(node_id=node, host=f"broker-{node}.example", port=9092)
        for node in range(3)
    ]
    topics = [
        metadata.MetadataResponseTopic(
            name=f"topic-{number}",
            topic_id=bytes([number + 1]) * 16,
            partitions=[
                metadata.MetadataResponsePartition(
                    partition_index=index,
                    leader_id=index % 3,
                    leader_epoch=5,
                    replica_nodes=[0, 1, 2],
                    isr_nodes=[0, 1, 2],
                )
                for index in range(partitions // 10)
            ],
        )
        for number in range(10)
    ]
    return metadata.MetadataResponse(brokers=brokers, cluster_id="cluster", topics=topics)


def fetch_request(partitions: int) -> fetch.FetchRequest:
    """A consumer of one topic."""
    wanted = [
        fetch.FetchPartition(partition=index, fetch_offset=1_000_000, partition_max_bytes=1 << 20)
        for index in range(partitions)
    ]
    topic = fetch.FetchTopic(topic="topic", partitions=wanted)
    return fetch.FetchRequest(max_wait_ms=500, min_bytes=1, topics=[topic])


def fetch_response(partitions: int) -> fetch.FetchResponse:
    """A kilobyte of records for each partition."""
    found = [
        fetch.PartitionData(
            partition_index=index,
            high_watermark=1_000_100,
            last_stable_offset=1_000_100,
            log_start_offset=0,
            aborted_transactions=None,
            records=RECORDS,
        )
        for index in range(partitions)
    ]
    topic = fetch.FetchableTopicResponse(topic="topic", partitions=found)
    return fetch.FetchResponse(responses=[topic])


def races_of(what: str, ours: Message, version: int) -> Iterator[Race]:
    """Encoding and decoding of one message."""
    cls = type(ours)
    peer: Any = kafka_python_messages()[cls.__name__]
    theirs = to_theirs(ours, peer._struct, version)
    body = ours.encode_bytes(version)
    assert bytes(theirs.encode(version=version)) == body
    # Ours leaves record bytes apart for the socket; its peer's result is one piece.
    yield Race(
        f"encode {what} v{version}",
        lambda: ours.encode(version),
        lambda: theirs.encode(version=version),
        1,
        BAR,
    )
    yield Race(
        f"decode {what} v{version}",
        lambda: cls.decode(body, version),
        lambda: peer.decode(body, version=version),
        1,
        BAR,
    )


def main() -> int:
    """Run all races; 1 if a bar was missed."""
    cases: list[tuple[str, Message, tuple[int, ...]]] = [
        ("Metadata response, 1,000 partitions", metadata_response(1000), (8, 12)),
        ("Fetch request, 100 partitions", fetch_request(100), (11, 12)),
        ("Fetch response, 100 partitions", fetch_response(100), (11, 12)),
    ]
    races = [
        race for what, ours, all_of in cases for v in all_of for race in races_of(what, ours, v)
    ]
    return 0 if report("Messages, against kafka-python", races) else 1


if __name__ == "__main__":
    sys.exit(main())
