"""Apache Kafka's own log dump reads what our broker wrote, and has no complaint."""

from __future__ import annotations

from pathlib import Path

import pytest

from broker_stub import Broker
from tests.golden.apache_folders import KINDS, unpack
from tests.interop.apache_kafka import dump_log, run_tool
from tests.interop.foreign_clients import Confluent, Record
from tests.support.node_harness import NodeHarness, batch, produce_request

pytestmark = pytest.mark.usefixtures("kafka_jars")

COMPLAINTS = (
    *("Mismatches", "mismatch in", "Non-consecutive", "isvalid: false", "out of order"),
    *("not found in :", "Could not", "invalid bytes at the end"),
)


@pytest.fixture(scope="module")
def folder(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """What a broker leaves after some work: topics made and deleted, every codec, segments."""
    data_dir = tmp_path_factory.mktemp("data")
    records = [Record(0, b"k%d" % n, b"v" * 500, (), 1_700_000_000_000 + n) for n in range(200)]
    with Broker(data_dir) as broker:
        broker.create_topic(
            "orders", config={"segment.bytes": 150_000, "index.interval.bytes": 1024}
        )
        broker.create_topic("gone", partitions=3)
        for codec in (None, "gzip", "snappy", None, "lz4", "zstd"):
            Confluent().produce(
                broker.bootstrap_servers, "orders", records, codec=codec, idempotent=True
            )
        topic = broker.call(lambda node: node.image.topic("gone"))
        broker.call(lambda node: node.controller.delete_topics([topic.topic_id], lambda _: None))
    return data_dir


def test_its_log_dump_reads_every_segment_without_a_complaint(folder):
    segments = sorted((folder / "orders-0").glob("*.log"))
    assert len(segments) > 1
    for segment in segments:
        dumped = dump_log(segment)
        assert "isvalid: true" in dumped
        assert not [one for one in COMPLAINTS if one in dumped], dumped


def test_its_index_check_finds_every_entry_where_it_belongs(folder):
    indexes = sorted((folder / "orders-0").glob("*index"))
    assert {one.suffix for one in indexes} >= {".index", ".timeindex"}
    dumped = run_tool(
        "org.apache.kafka.tools.DumpLogSegments", ["--files", ",".join(map(str, indexes))]
    )
    assert "offset:" in dumped
    assert not [one for one in COMPLAINTS if one in dumped], dumped


def test_its_metadata_decoder_reads_the_metadata_log(folder):
    (segment,) = (folder / "__cluster_metadata-0").glob("*.log")
    dumped = run_tool(
        "org.apache.kafka.tools.DumpLogSegments",
        ["--cluster-metadata-decoder", "--files", str(segment)],
    )
    for kind in ("REGISTER_BROKER_RECORD", "TOPIC_RECORD", "PARTITION_RECORD", "CONFIG_RECORD"):
        assert f'"type":"{kind}"' in dumped, dumped
    assert '"type":"REMOVE_TOPIC_RECORD"' in dumped
    assert '"type":"PRODUCER_IDS_RECORD"' in dumped
    assert '"name":"orders"' in dumped
    assert "Could not" not in dumped


@pytest.mark.parametrize("kind", KINDS)
def test_a_folder_of_apache_kafka_that_we_went_on_with_dumps_without_a_complaint(tmp_path, kind):
    folder = unpack(kind, tmp_path)
    harness = NodeHarness(folder.path, clock=folder.clock())
    for topic, partition in folder.read_committed:
        new = batch(b"ours", key=b"key", timestamp_ms=harness.clock.now_ms())
        harness.ask(produce_request(topic, new, partition=partition), 9)
    harness.node.close()
    files = [
        path
        for suffix in ("log", "index", "timeindex", "txnindex", "snapshot")
        for path in sorted(folder.path.rglob(f"*.{suffix}"))
    ]
    assert {path.suffix for path in files} >= {".log", ".index", ".timeindex", ".txnindex"}
    dumped = run_tool(
        "org.apache.kafka.tools.DumpLogSegments",
        ["--deep-iteration", "--print-data-log", "--files", ",".join(map(str, files))],
    )
    assert "payload: ours" in dumped
    assert not [one for one in COMPLAINTS if one in dumped], dumped


def test_its_metadata_decoder_reads_a_log_that_we_went_on_with(tmp_path):
    folder = unpack("killed", tmp_path)
    harness = NodeHarness(folder.path, clock=folder.clock())
    harness.create_topic("new")
    harness.node.close()
    (segment,) = (folder.path / "__cluster_metadata-0").glob("*.log")
    dumped = run_tool(
        "org.apache.kafka.tools.DumpLogSegments",
        ["--cluster-metadata-decoder", "--files", str(segment)],
    )
    assert '"name":"new"' in dumped
    assert "Could not" not in dumped
    assert not [one for one in COMPLAINTS if one in dumped], dumped
