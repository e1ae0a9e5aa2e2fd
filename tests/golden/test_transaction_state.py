"""The transactions in a folder of Apache Kafka: read, written alike, and continued."""

from collections.abc import Iterator

import pytest

from broker_stub.coordinator.placement import partition_for
from broker_stub.coordinator.transactions.transaction_log import (
    STATE_TOPIC,
    read_transaction,
    transaction_record,
)
from broker_stub.log.internal_batches import read_log
from tests.golden.apache_folders import KINDS, unpack
from tests.golden.loader import golden_lines
from tests.support.node_harness import NodeHarness
from tests.support.transaction_script import TransactionScript

TRANSACTIONAL_ID = "golden-tx"


@pytest.fixture(params=KINDS)
def harness(request: pytest.FixtureRequest, tmp_path) -> Iterator[NodeHarness]:
    folder = unpack(request.param, tmp_path)
    harness = NodeHarness(folder.path, clock=folder.clock())
    yield harness
    harness.node.abandon()


def test_a_transactional_id_is_kept_where_apache_kafka_keeps_it():
    for line in golden_lines("coordinator.jsonl.gz"):
        assert partition_for(line["id"], 50) == line["partition_of_50"], line


def test_every_record_of_the_log_is_written_as_apache_kafka_wrote_it(harness):
    topic = harness.node.image.topic(STATE_TOPIC)
    states = []
    for index in topic.partitions:
        for record in read_log(harness.node.replicas.partition(STATE_TOPIC, index).log):
            transactional_id, image = read_transaction(record.key, record.value)
            assert partition_for(transactional_id, len(topic.partitions)) == index
            assert transaction_record(image, 2) == (record.key, record.value)
            states.append(image.state.value)
    # Two transactions of an old client: one aborted, one committed.
    assert states[:2] == ["Empty", "Ongoing"]
    assert {"PrepareCommit", "CompleteCommit", "PrepareAbort", "CompleteAbort"} < set(states)


def test_the_transactional_id_is_restored_and_continued(harness):
    script = TransactionScript(harness.ask, TRANSACTIONAL_ID, "golden-tx-more")
    harness.create_topic("golden-tx-more")
    before = script.describe()
    assert (before["state"], before["timeout"], before["epoch"]) == ("CompleteCommit", 60_000, 0)
    assert harness.node.transactions.unreadable_records == 0
    producer = script.started()
    assert producer.epoch == 1
    assert script.produce(producer, b"more") == 0
    harness.restart(clean=False)
    assert script.end(producer).error == 0
    assert script.read() == [b"more"]
    assert script.produce(producer.older(), b"zombie") == 47
