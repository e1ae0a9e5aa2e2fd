"""DescribeLogDirs: what lies in the broker's folders."""

import shutil

import pytest

from pyclient.protocol.messages.describe_log_dirs import (
    DescribableLogDirTopic,
    DescribeLogDirsRequest,
)
from tests.support.node_harness import NodeHarness, batch, produce_request


def described(
    harness: NodeHarness, asked: dict[str, list[int]] | None = None, version: int = 5
) -> dict[str, dict[int, int]]:
    """The sizes of partitions by topic and index, in the one folder."""
    topics = None
    if asked is not None:
        topics = [
            DescribableLogDirTopic(topic=name, partitions=indexes)
            for name, indexes in asked.items()
        ]
    response = harness.ask(DescribeLogDirsRequest(topics=topics), version)
    assert response.error_code == 0
    (folder,) = response.results
    assert (folder.error_code, folder.log_dir) == (0, str(harness.folder))
    return {
        topic.name: {one.partition_index: one.partition_size for one in topic.partitions}
        for topic in folder.topics
    }


@pytest.mark.parametrize("version", range(1, 6))
def test_every_partition_is_listed_with_its_size(harness, version):
    harness.create_topic("orders", 2)
    harness.create_topic("payments")
    written = batch(b"v" * 100)
    harness.ask(produce_request("orders", written, partition=1), 9)
    assert described(harness, version=version) == {
        "orders": {0: 0, 1: len(written)},
        "payments": {0: 0},
    }


def test_only_what_is_asked_for_and_exists_is_listed(harness):
    harness.create_topic("orders", 2)
    asked = {"orders": [1, 7, 1], "missing": [0]}
    assert described(harness, asked) == {"orders": {1: 0}}
    assert described(harness, {}) == {}


def test_a_topic_named_twice_is_listed_once(harness):
    harness.create_topic("orders", 2)
    twice = [DescribableLogDirTopic(topic="orders", partitions=[1])] * 2
    (folder,) = harness.ask(DescribeLogDirsRequest(topics=twice)).results
    assert len(folder.topics[0].partitions) == 1


def test_no_replica_lags_or_is_about_to_move(harness):
    harness.create_topic("orders")
    (folder,) = harness.ask(DescribeLogDirsRequest(topics=None)).results
    (partition,) = folder.topics[0].partitions
    assert (partition.offset_lag, partition.is_future_key) == (0, False)


def test_the_file_systems_size_and_room_come_along(harness):
    (folder,) = harness.ask(DescribeLogDirsRequest(topics=None)).results
    assert folder.total_bytes == shutil.disk_usage(harness.folder).total
    assert 0 < folder.usable_bytes <= folder.total_bytes
    assert not folder.is_cordoned
