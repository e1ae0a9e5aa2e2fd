"""A folder of Apache Kafka, served: what every reader gets, now and after more was written."""

from collections.abc import Iterator
from typing import Any

import pytest

from pyclient.protocol.messages.fetch import FetchPartition, FetchRequest, FetchTopic, PartitionData
from pyclient.protocol.messages.metadata import MetadataRequest
from pyclient.protocol.messages.offset_fetch import OffsetFetchRequest, OffsetFetchRequestGroup
from pyclient.records.batch import iter_batches
from pyclient.types import TopicPartition
from tests.golden.apache_folders import KINDS, ApacheFolder, Record, unpack
from tests.support.node_harness import NodeHarness, batch, produce_request

UNCOMMITTED, COMMITTED = 0, 1


@pytest.fixture(params=KINDS, scope="module")
def folder(
    request: pytest.FixtureRequest, tmp_path_factory: pytest.TempPathFactory
) -> ApacheFolder:
    return unpack(request.param, tmp_path_factory.mktemp("apache"))


@pytest.fixture(scope="module")
def harness(folder: ApacheFolder) -> Iterator[NodeHarness]:
    harness = NodeHarness(folder.path, clock=folder.clock())
    yield harness
    harness.node.abandon()


def fetch(harness: NodeHarness, partition: TopicPartition, offset: int, level: int) -> Any:
    asked = FetchPartition(
        partition=partition.partition, fetch_offset=offset, partition_max_bytes=50_000
    )
    request = FetchRequest(
        max_wait_ms=0,
        min_bytes=1,
        isolation_level=level,
        topics=[FetchTopic(topic=partition.topic, partitions=[asked])],
    )
    data = harness.ask(request, 12).responses[0].partitions[0]
    assert data.error_code == 0
    return data


def read(harness: NodeHarness, partition: TopicPartition, level: int) -> list[Record]:
    """All records of a partition, as a client takes them from the responses."""
    found: list[Record] = []
    offset, end = 0, 1
    while offset < end:
        data = fetch(harness, partition, offset, level)
        end = data.last_stable_offset if level == COMMITTED else data.high_watermark
        for one in visible(data):
            found += [
                Record(r.offset, r.timestamp, r.key, r.value, tuple(r.headers))
                for r in one.decode(from_offset=offset)
            ]
        last = [one.next_offset for one in iter_batches(data.records)]
        assert last or offset == end, "a response without records before the end"
        offset = last[-1] if last else end
    return found


def visible(data: PartitionData) -> Iterator[Any]:
    """Leave out control batches, and those that the response says were aborted."""
    aborted = sorted((one.first_offset, one.producer_id) for one in data.aborted_transactions or ())
    aborting: set[int] = set()
    for one in iter_batches(data.records):
        while aborted and aborted[0][0] <= one.last_offset:
            aborting.add(aborted.pop(0)[1])
        if one.is_control:
            if one.decode()[0].key[3] == 0:
                aborting.discard(one.producer_id)
        elif not (one.is_transactional and one.producer_id in aborting):
            yield one


def offsets_of(harness: NodeHarness, group: str) -> dict[TopicPartition, tuple[int, str]]:
    request = OffsetFetchRequest(groups=[OffsetFetchRequestGroup(group_id=group, topics=None)])
    (found,) = harness.ask(request).groups
    # librdkafka wrote the metadata with C's zero at its end, and takes it off when it reads.
    return {
        TopicPartition(topic.name, one.partition_index): (
            one.committed_offset,
            one.metadata.rstrip("\0"),
        )
        for topic in found.topics
        for one in topic.partitions
    }


def test_readers_of_either_isolation_level_get_what_apache_kafka_gave_them(harness, folder):
    for partition, records in folder.read_uncommitted.items():
        assert read(harness, partition, UNCOMMITTED) == records, partition
    for partition, records in folder.read_committed.items():
        assert read(harness, partition, COMMITTED) == records, partition
    assert folder.read_committed != folder.read_uncommitted


def test_groups_find_the_offsets_that_they_committed(harness, folder):
    for group, offsets in folder.group_offsets.items():
        assert offsets_of(harness, group) == offsets


def test_the_topics_are_those_of_the_folder(harness, folder):
    response = harness.ask(MetadataRequest(topics=None))
    found = {
        TopicPartition(topic.name, partition.partition_index)
        for topic in response.topics
        for partition in topic.partitions
        if not topic.is_internal
    }
    assert found == folder.read_uncommitted.keys()
    leaders = {one.leader_id for topic in response.topics for one in topic.partitions}
    assert leaders == {harness.node.node_id}
    assert {topic.error_code for topic in response.topics} == {0}
    internal = {topic.name: len(topic.partitions) for topic in response.topics if topic.is_internal}
    on_disk = [path.name.rpartition("-")[0] for path in folder.path.glob("__*-*")]
    assert internal == {name: on_disk.count(name) for name in internal}
    assert len(internal) == 2


def test_the_cluster_and_its_folder_keep_their_ids(harness, folder):
    lines = (folder.path / "meta.properties").read_text().splitlines()
    said = dict(line.split("=") for line in lines if "=" in line)
    assert harness.node.cluster_id == said["cluster.id"]
    assert str(harness.node.node_id) == said["node.id"]


def test_producer_ids_go_on_after_those_that_were_given_away(harness, folder):
    given = {
        producer_id
        for log in harness.node.logs.logs().values()
        for producer_id in (entry.producer_id for entry in log.producer_state)
    }
    assert given
    assert harness.node.image.next_producer_id > max(given)


@pytest.mark.parametrize("kind", KINDS)
def test_the_folder_is_continued_in_place(tmp_path, kind):
    folder = unpack(kind, tmp_path)
    harness = NodeHarness(folder.path, clock=folder.clock())
    expected = {partition: list(old) for partition, old in folder.read_committed.items()}
    for clean in (True, False):
        topic = f"new-{clean}"
        harness.create_topic(topic)
        for partition in expected:
            expected[partition].append(produce(harness, partition))
        harness.restart(clean=clean)
        assert harness.node.image.topic(topic) is not None
        for partition, records in expected.items():
            assert read(harness, partition, COMMITTED) == records, partition
        for group, offsets in folder.group_offsets.items():
            assert offsets_of(harness, group) == offsets


def produce(harness: NodeHarness, partition: TopicPartition) -> Record:
    now_ms = harness.clock.now_ms()
    new = batch(b"ours", key=b"key", timestamp_ms=now_ms)
    request = produce_request(partition.topic, new, partition=partition.partition)
    (answer,) = harness.ask(request, 9).responses[0].partition_responses
    assert answer.error_code == 0
    return Record(answer.base_offset, now_ms, b"key", b"ours", ())
