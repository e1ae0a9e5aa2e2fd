"""Opening a metadata log of Apache Kafka: what is applied, what is skipped, what is refused."""

from pathlib import Path

import pytest

from pyclient.errors import CorruptRecordError, KafkaStorageError
from pyclient.protocol.messages.metadata_records import (
    AccessControlEntryRecord,
    BeginTransactionRecord,
    ConfigRecord,
    FeatureLevelRecord,
    NoOpRecord,
    PartitionChangeRecord,
    ProducerIdsRecord,
    RegisterBrokerRecord,
    RemoveTopicRecord,
    TopicRecord,
)
from pyclient.protocol.messages.quorum_records import KRaftVersionFeature, Voter, VotersRecord
from pyclient.records.control import ControlRecordType
from tests.support.logs import batch
from tests.support.metadata_folders import (
    TOPIC_ID,
    control,
    leader_change,
    metadata_folder,
    records,
    topic,
    write_log,
    write_quorum_state,
    write_snapshot,
)
from tests.support.node_harness import NodeHarness


def topics(harness: NodeHarness) -> list[str]:
    return [one.name for one in harness.node.image.topics()]


def other(name: str) -> list[TopicRecord]:
    return [TopicRecord(name=name, topic_id=name.encode().ljust(16))]


# --- what is applied -----------------------------------------------------------------------------


def test_topics_configurations_and_producer_ids_of_the_log_are_there(tmp_path):
    setting = ConfigRecord(
        resource_type=2, resource_name="orders", name="retention.ms", value="5000"
    )
    write_log(
        tmp_path,
        leader_change(1),
        records(*topic("orders"), setting),
        records(*other("gone")),
        records(RemoveTopicRecord(topic_id=b"gone".ljust(16))),
        records(ProducerIdsRecord(broker_id=1, next_producer_id=4000)),
    )
    harness = NodeHarness(tmp_path)
    assert topics(harness) == ["orders"]
    assert harness.node.replicas.partition("orders", 0).log.config.retention_ms == 5000
    assert harness.node.image.next_producer_id == 4000


def test_a_partition_that_apache_kafka_gave_up_is_led_again(tmp_path):
    write_log(tmp_path, records(*topic("orders", leader=-1, isr=())))
    harness = NodeHarness(tmp_path)
    partition = harness.node.image.topic("orders").partitions[0]
    assert (partition.leader, partition.isr) == (1, (1,))
    assert (partition.leader_epoch, partition.partition_epoch) == (5, 5)
    harness.restart()
    assert harness.node.image.topic("orders").partitions[0] == partition


def test_the_log_goes_on_in_the_epoch_it_was_in(tmp_path):
    write_log(tmp_path, records(*topic("orders")), epoch=9)
    harness = NodeHarness(tmp_path)
    log = harness.node.logs.get("__cluster_metadata", 0)
    assert log.leader_epochs.latest_epoch == 9
    assert log.read(log.log_end_offset - 1, 1).records.read()[12:16] == b"\0\0\0\x09"


def test_types_of_no_meaning_here_are_skipped_and_named_once(tmp_path, caplog):
    write_log(
        tmp_path,
        records(NoOpRecord(), FeatureLevelRecord(name="metadata.version", feature_level=30)),
        records(AccessControlEntryRecord(id=bytes(16)), NoOpRecord()),
        records(FeatureLevelRecord(name="group.version", feature_level=1)),
    )
    NodeHarness(tmp_path)
    lines = [line for line in caplog.messages if "skipping" in line]
    assert lines == [
        "skipping metadata records of these types: AccessControlEntryRecord, FeatureLevelRecord"
    ]


def test_a_transaction_that_was_not_ended_swallows_nothing_that_comes_later(tmp_path):
    write_log(tmp_path, records(*other("before")), records(BeginTransactionRecord()))
    write_log(tmp_path, records(*other("inside")))
    harness = NodeHarness(tmp_path)
    assert topics(harness) == ["before"]
    harness.create_topic("after")
    harness.restart()
    assert topics(harness) == ["before", "after"]


def test_a_change_of_what_is_not_there_is_refused_by_offset(tmp_path):
    change = PartitionChangeRecord(partition_id=0, topic_id=TOPIC_ID, isr=[1])
    write_log(tmp_path, records(NoOpRecord(), change))
    with pytest.raises(CorruptRecordError, match="offset 1: PartitionChangeRecord"):
        NodeHarness(tmp_path)


# --- snapshots -----------------------------------------------------------------------------------


def test_the_newest_snapshot_comes_first_and_then_the_log(tmp_path):
    write_log(tmp_path, records(*other("a")), records(*other("b")), records(*other("c")))
    write_snapshot(tmp_path, 1, *other("old"))
    write_snapshot(tmp_path, 2, *other("new"))
    for leftover in ("00000000000000000003-0000000001.checkpoint.part", "bootstrap.checkpoint"):
        (metadata_folder(tmp_path) / leftover).write_bytes(b"x")
    harness = NodeHarness(tmp_path)
    assert topics(harness) == ["new", "c"]
    harness.restart()
    assert topics(harness) == ["new", "c"]


@pytest.mark.parametrize("damage", [lambda data: data[:-1], lambda data: data[:-80], bytes.upper])
def test_a_damaged_snapshot_is_passed_over(tmp_path, caplog, damage):
    write_log(tmp_path, records(*other("a")), records(*other("b")))
    write_snapshot(tmp_path, 1, *other("older"))
    newest = write_snapshot(tmp_path, 2, *other("newest"))
    newest.chmod(0o600)
    newest.write_bytes(damage(newest.read_bytes()))
    assert topics(NodeHarness(tmp_path)) == ["older", "b"]
    assert "using an older snapshot" in caplog.text


def test_without_any_whole_snapshot_the_log_says_it_all(tmp_path):
    write_log(tmp_path, records(*other("a")), records(*other("b")))
    (metadata_folder(tmp_path) / "00000000000000000002-0000000001.checkpoint").touch()
    assert topics(NodeHarness(tmp_path)) == ["a", "b"]


def test_a_log_that_ends_before_its_snapshot_is_refused(tmp_path):
    write_log(tmp_path, records(*other("a")))
    write_snapshot(tmp_path, 7, *other("later"))
    with pytest.raises(KafkaStorageError, match="from offset 0 to 1, but not at 7"):
        NodeHarness(tmp_path)


def test_a_log_whose_start_is_in_no_snapshot_is_refused(tmp_path):
    write_log(tmp_path, records(*other("a")), records(*other("b")))
    (tmp_path / "log-start-offset-checkpoint").write_text("0\n1\n__cluster_metadata 0 1\n")
    with pytest.raises(KafkaStorageError, match="from offset 1 to 2, but not at 0"):
        NodeHarness(tmp_path)


# --- what is refused -----------------------------------------------------------------------------


def voters_record(*voters: int) -> bytes:
    return VotersRecord(
        voters=[
            Voter(voter_id=voter, k_raft_version_feature=KRaftVersionFeature()) for voter in voters
        ]
    ).encode_bytes(0)


def refusal(folder: Path) -> str:
    with pytest.raises(KafkaStorageError) as refused:
        NodeHarness(folder)
    return str(refused.value)


def test_several_controllers_are_refused_by_name(tmp_path):
    write_log(tmp_path, leader_change(1), records(NoOpRecord()), leader_change(1, 2, 3))
    assert "controllers 1, 2, 3 keep its metadata" in refusal(tmp_path)


def test_voters_of_the_quorum_state_count_where_the_log_names_none(tmp_path):
    write_log(tmp_path, records(NoOpRecord()))
    write_quorum_state(tmp_path, 1, 2)
    assert "controllers 1, 2 keep its metadata" in refusal(tmp_path)


def test_voters_of_the_snapshot_count(tmp_path):
    write_log(tmp_path, leader_change(1))
    voters = control(ControlRecordType.KRAFT_VOTERS, voters_record(7))
    write_snapshot(tmp_path, 1, NoOpRecord(), extra=bytes(voters))
    assert "controllers 7 keep its metadata" in refusal(tmp_path)


def test_the_latest_voters_count(tmp_path):
    write_log(tmp_path, leader_change(1, 2, 3), leader_change(1))
    write_quorum_state(tmp_path, 1, 2, 3)
    assert topics(NodeHarness(tmp_path)) == []


def test_a_damaged_quorum_state_is_refused(tmp_path):
    write_log(tmp_path, records(NoOpRecord()))
    (metadata_folder(tmp_path) / "quorum-state").write_text("{")
    assert "quorum-state is damaged" in refusal(tmp_path)


def test_replicas_elsewhere_are_refused_by_name(tmp_path):
    write_log(tmp_path, records(*topic("orders", replicas=(1, 2))))
    assert "orders-0 has replicas on brokers 1, 2" in refusal(tmp_path)


def test_other_brokers_are_refused_by_name(tmp_path):
    write_log(tmp_path, records(RegisterBrokerRecord(broker_id=2, fenced=True)))
    assert "brokers 2 are registered" in refusal(tmp_path)


def test_a_partition_in_a_log_dir_that_was_not_given_is_refused_by_name(tmp_path):
    write_log(tmp_path, records(*topic("orders", directory=b"d" * 16)))
    assert "orders-0 is in a log dir that is not among those given" in refusal(tmp_path)


def test_partitions_without_a_metadata_log_are_refused_and_left_alone(tmp_path):
    (tmp_path / "meta.properties").write_text("version=1\nnode.id=1\ncluster.id=abc\n")
    (tmp_path / "orders-0").mkdir()
    (tmp_path / "orders-0" / "00000000000000000000.log").write_bytes(batch(b"precious"))
    assert "there is orders-0, but no __cluster_metadata-0" in refusal(tmp_path)
    assert (tmp_path / "orders-0" / "00000000000000000000.log").read_bytes() == batch(b"precious")


def test_a_refused_folder_is_given_back_as_it_was(tmp_path):
    write_log(tmp_path, leader_change(1, 2, 3))
    before = {path.name: path.read_bytes() for path in tmp_path.iterdir() if path.is_file()}
    assert ".kafka_cleanshutdown" in before
    refusal(tmp_path)
    after = {path.name: path.read_bytes() for path in tmp_path.iterdir() if path.is_file()}
    assert after == before
    refusal(tmp_path)  # and it is not locked
