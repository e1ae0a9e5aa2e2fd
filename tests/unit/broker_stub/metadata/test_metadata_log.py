"""`__cluster_metadata-0`: what is written there, and what comes back after a restart."""

import pytest

from broker_stub.log.internal_batches import build_batch, read_batches, read_log
from broker_stub.metadata.frames import decode_frame, encode_frame
from broker_stub.metadata.log import CLUSTER_METADATA, MetadataLog
from pyclient.error_codes import KafkaStorageError
from pyclient.errors import ProtocolError
from pyclient.protocol.messages.create_topics import CreatableTopic, CreateTopicsRequest
from pyclient.protocol.messages.delete_topics import DeleteTopicsRequest
from pyclient.protocol.messages.metadata_records import (
    AbortTransactionRecord,
    BeginTransactionRecord,
    EndTransactionRecord,
    NoOpRecord,
    TopicRecord,
)
from tests.support.node_harness import NodeHarness


def topic_record(name: str) -> TopicRecord:
    return TopicRecord(name=name, topic_id=name.encode().ljust(16))


def test_a_frame_is_its_version_the_type_the_record_version_and_the_fields():
    frame = encode_frame(topic_record("a"))
    assert frame[:3] == b"\x01\x02\x00"
    assert decode_frame(frame, set()) == topic_record("a")


def test_an_unknown_record_type_is_skipped_and_told_once(caplog):
    unknown: set[int] = set()
    assert decode_frame(b"\x01\x63\x00", unknown) is None
    assert decode_frame(b"\x01\x63\x00", unknown) is None
    assert caplog.text.count("type 99") == 1


def test_an_unknown_frame_version_is_refused():
    with pytest.raises(ProtocolError, match="frame version 2"):
        decode_frame(b"\x02\x02\x00", set())


@pytest.mark.parametrize("clean", [True, False])
def test_topics_configurations_and_deletions_survive_a_restart(harness, clean):
    kept = harness.create_topic("kept", partitions=3, retention_ms="1000")
    harness.create_topic("gone")
    harness.ask(DeleteTopicsRequest(topic_names=["gone"]), 5)
    harness.restart(clean=clean)
    assert [topic.name for topic in harness.node.image.topics()] == ["kept"]
    topic = harness.node.image.topic("kept")
    assert topic.topic_id == kept
    assert len(topic.partitions) == 3
    assert harness.node.replicas.partition("kept", 0).log.config.retention_ms == 1000


def test_every_start_registers_the_broker_and_writes_that_with_its_first_change(harness):
    epochs = [harness.node.image.brokers[1].epoch]
    for name in ("a", "b"):
        harness.create_topic(name)
        harness.create_topic(name * 2)
        harness.restart()
        epochs.append(harness.node.image.brokers[1].epoch)
    assert epochs == sorted(set(epochs))
    log = harness.node.logs.get(CLUSTER_METADATA, 0)
    assert [
        [type(decode_frame(one.value, set())).__name__ for one in batch.decode()]
        for batch in read_batches(log, 0)
    ] == [
        ["RegisterBrokerRecord", "TopicRecord", "PartitionRecord"],
        ["TopicRecord", "PartitionRecord"],
    ] * 2


def test_a_start_alone_writes_nothing(harness):
    harness.create_topic("orders")
    log = harness.folder / "__cluster_metadata-0" / f"{0:020d}.log"
    written = log.read_bytes()
    harness.restart()
    assert log.read_bytes() == written


def test_an_unclean_start_begins_a_leader_epoch_in_every_partition(harness):
    harness.create_topic("orders", 2)
    replicas = harness.node.replicas
    replicas.append(replicas.partition("orders", 1), build_batch([(None, b"1")], 0))
    checkpoint = harness.folder / "orders-1" / "leader-epoch-checkpoint"
    for epoch in (1, 2):
        harness.restart(clean=False)
        partitions = harness.node.image.topic("orders").partitions.values()
        assert [one.leader_epoch for one in partitions] == [epoch, epoch]
        assert checkpoint.read_text() == f"0\n2\n0 0\n{epoch} 1\n"
    harness.restart()
    assert harness.node.image.topic("orders").partitions[0].leader_epoch == 2


def test_the_cluster_keeps_its_id(harness):
    cluster_id = harness.node.cluster_id
    assert cluster_id
    harness.restart()
    assert harness.node.cluster_id == cluster_id


def replayed(harness: NodeHarness, *records) -> list[str]:
    log = MetadataLog(harness.node.logs, harness.clock)
    for record in records:
        log.append([record])
    found = [logged.record for logged in log.replay()]
    return [record.name for record in found if isinstance(record, TopicRecord)]


def test_a_metadata_transaction_counts_once_it_is_ended(harness):
    assert replayed(
        harness,
        topic_record("before"),
        BeginTransactionRecord(),
        topic_record("inside"),
        EndTransactionRecord(),
    ) == ["before", "inside"]


@pytest.mark.parametrize("end", [AbortTransactionRecord(), NoOpRecord()])
def test_a_metadata_transaction_that_is_aborted_or_not_ended_never_counted(harness, end):
    records = (topic_record("before"), BeginTransactionRecord(), topic_record("inside"), end)
    assert replayed(harness, *records) == ["before"]


def test_batches_of_internal_topics_read_back_as_they_were_built(harness):
    harness.create_topic("internal")
    partition = harness.node.replicas.partition("internal", 0)
    for start in (0, 3):
        records = [(b"k%d" % n, None if n % 2 else b"v" * n) for n in range(start, start + 3)]
        harness.node.replicas.append(partition, build_batch(records, timestamp_ms=5))
    found = [(one.offset, one.key, one.value) for one in read_log(partition.log)]
    assert found == [(n, b"k%d" % n, None if n % 2 else b"v" * n) for n in range(6)]
    assert sum(map(len, harness.node.replicas.read_all(partition))) > 0


class FailingBackground:
    """A disk that refuses to sync."""

    def submit(self, work, done):
        done(OSError("no more"))


def test_a_change_that_cannot_be_synced_is_neither_applied_nor_followed(harness):
    harness.node.controller._background = FailingBackground()
    request = CreateTopicsRequest(
        topics=[CreatableTopic(name="orders", num_partitions=1, replication_factor=1)]
    )
    for _ in range(2):
        (result,) = harness.ask(request).topics
        assert result.error_code == KafkaStorageError.code
    assert harness.node.image.topic("orders") is None


class LaterBackground:
    """Keeps the work until it is told to do it."""

    def __init__(self):
        self.work = []

    def submit(self, work, done):
        self.work.append(lambda: (work(), done(None)))

    def run_one(self):
        self.work.pop(0)()


def test_changes_take_turns_and_answers_wait_for_the_sync(harness):
    later = harness.node.controller._background = LaterBackground()
    request = CreateTopicsRequest(
        topics=[CreatableTopic(name="orders", num_partitions=1, replication_factor=1)]
    )
    first, second = harness.start(request), harness.start(request)
    assert len(later.work) == 1
    assert not first.arrived
    assert harness.node.image.topic("orders") is None
    later.run_one()
    assert first.response.topics[0].error_code == 0
    # Decided against what the first one left: there is nothing to write, nothing to wait for.
    assert second.response.topics[0].error_code == 36
    assert later.work == []


def test_the_metadata_log_is_kafkas_and_keeps_its_records(harness):
    harness.create_topic("orders")
    log = harness.node.logs.get(CLUSTER_METADATA, 0)
    assert (harness.folder / "__cluster_metadata-0").is_dir()
    assert log.config.retention_ms == -1
