"""Apache Kafka's own log dump reads what our broker wrote, and has no complaint."""

from pathlib import Path

import pytest

from broker_stub import Broker
from tests.golden.apache_folders import KINDS, unpack
from tests.interop.confluent_client import Confluent
from tests.interop.foreign_records import Record
from tests.interop.log_dump import dump, dump_records, files_of_logs
from tests.support.node_harness import NodeHarness, batch, produce_request

pytestmark = pytest.mark.usefixtures("kafka_jars")


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
    dumped = dump_records(segments)
    assert "isvalid: true" in dumped.printed
    assert dumped.complaints == []


def test_its_index_check_finds_every_entry_where_it_belongs(folder):
    indexes = sorted((folder / "orders-0").glob("*index"))
    assert {one.suffix for one in indexes} >= {".index", ".timeindex"}
    dumped = dump(indexes)
    assert "offset:" in dumped.printed
    assert dumped.complaints == []


def test_its_metadata_decoder_reads_the_metadata_log(folder):
    dumped = dump((folder / "__cluster_metadata-0").glob("*.log"), "--cluster-metadata-decoder")
    for kind in ("REGISTER_BROKER_RECORD", "TOPIC_RECORD", "PARTITION_RECORD", "CONFIG_RECORD"):
        assert f'"type":"{kind}"' in dumped.printed, dumped
    assert '"type":"REMOVE_TOPIC_RECORD"' in dumped.printed
    assert '"type":"PRODUCER_IDS_RECORD"' in dumped.printed
    assert '"name":"orders"' in dumped.printed
    assert dumped.complaints == []


@pytest.mark.parametrize("kind", KINDS)
def test_a_folder_of_apache_kafka_that_we_went_on_with_dumps_without_a_complaint(tmp_path, kind):
    folder = unpack(kind, tmp_path)
    harness = NodeHarness(folder.path, clock=folder.clock())
    for topic, partition in folder.read_committed:
        new = batch(b"ours", key=b"key", timestamp_ms=harness.clock.now_ms())
        harness.ask(produce_request(topic, new, partition=partition), 9)
    harness.node.close()
    files = files_of_logs(folder.path)
    assert {path.suffix for path in files} >= {".log", ".index", ".timeindex", ".txnindex"}
    dumped = dump_records(files)
    assert "payload: ours" in dumped.printed
    assert dumped.complaints == []


def test_its_metadata_decoder_reads_a_log_that_we_went_on_with(tmp_path):
    folder = unpack("killed", tmp_path)
    harness = NodeHarness(folder.path, clock=folder.clock())
    harness.create_topic("new")
    harness.node.close()
    segments = (folder.path / "__cluster_metadata-0").glob("*.log")
    dumped = dump(segments, "--cluster-metadata-decoder")
    assert '"name":"new"' in dumped.printed
    assert dumped.complaints == []
