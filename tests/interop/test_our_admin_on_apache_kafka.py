"""Our admin client on Apache Kafka 4.3: topics, partitions, records, configurations, groups."""

from collections.abc import Iterator
from datetime import timedelta

import pytest

from pyclient import (
    KafkaAdminClient,
    KafkaConsumer,
    KafkaProducer,
    OffsetAndMetadata,
    TopicPartition,
)
from pyclient.admin import (
    ConfigResource,
    MemberToRemove,
    NewTopic,
    OffsetShift,
    OffsetSpec,
    OffsetTimestamp,
)
from pyclient.errors import (
    GroupIdNotFoundError,
    InvalidPartitionsError,
    InvalidReplicaAssignmentError,
    NoError,
    OffsetOutOfRangeError,
    TopicExistsError,
    UnknownMemberIdError,
    UnknownTopicOrPartitionError,
)
from tests.interop.apache_kafka import ApacheKafka


@pytest.fixture
def admin(apache: ApacheKafka) -> Iterator[KafkaAdminClient]:
    with KafkaAdminClient(bootstrap_servers=apache.bootstrap_servers) as admin:
        yield admin


def test_a_topic_lives_from_its_creation_to_its_deletion(admin: KafkaAdminClient) -> None:
    configs = {"retention.ms": "60000", "cleanup.policy": "compact"}
    admin.create_topics([NewTopic("ours", 2, 1, topic_configs=configs)])
    assert "ours" in admin.list_topics()
    found = admin.describe_configs([ConfigResource("topic", "ours")])
    assert {key: entry["value"] for key, entry in found["topic"]["ours"].items()} == configs
    admin.create_partitions({"ours": 5})
    # Brokers learn of changes a moment later; the controller knows at once.
    with pytest.raises(InvalidPartitionsError, match="already has 5 partition"):
        admin.create_partitions({"ours": 5})
    (described,) = admin.describe_topics(["ours"])
    (deleted,) = admin.delete_topics(["ours"]).topics
    assert deleted.topic_id == described.topic_id != "AAAAAAAAAAAAAAAAAAAAAA"
    with pytest.raises(UnknownTopicOrPartitionError, match="topic 'ours'"):
        admin.delete_topics(["ours"])


def test_what_the_broker_refuses_is_raised_by_name(admin: KafkaAdminClient) -> None:
    admin.create_topics({"refused": {"num_partitions": 2}})
    with pytest.raises(TopicExistsError, match="topic 'refused'"):
        admin.create_topics(["refused"])
    with pytest.raises(InvalidPartitionsError, match="topic 'refused'"):
        admin.create_partitions({"refused": 1})
    with pytest.raises(UnknownTopicOrPartitionError, match="topic 'nowhere'"):
        admin.delete_topics(["nowhere"])
    with pytest.raises(UnknownTopicOrPartitionError, match="topic 'nowhere'"):
        admin.describe_configs([ConfigResource("topic", "nowhere")])


def test_the_cluster_and_its_broker_are_described(admin: KafkaAdminClient) -> None:
    described = admin.describe_cluster()
    (broker,) = described["brokers"]
    node = str(broker["broker_id"])
    found = admin.describe_configs([ConfigResource("broker", node)], config_filter="all")
    assert found["broker"][node]["num.partitions"]["value"] == "4"


def configs(admin: KafkaAdminClient, topic: str) -> dict[str, str]:
    found = admin.describe_configs([ConfigResource("topic", topic)])
    return {key: entry["value"] for key, entry in found["topic"][topic].items()}


def wait_for_configs(admin: KafkaAdminClient, topic: str, wanted: dict[str, str]) -> None:
    """Brokers learn of changes a moment after the controller has made them."""
    for _ in range(1_000):
        if configs(admin, topic) == wanted:
            return
    assert configs(admin, topic) == wanted


def test_entries_are_changed_one_by_one(admin: KafkaAdminClient) -> None:
    topic = "entries"
    admin.create_topics({topic: {"configs": {"retention.ms": "5"}}}, wait_for_metadata=True)
    for change in (
        {"retention.ms": 60_000},
        {"cleanup.policy": ("append", "compact")},
        {"cleanup.policy": ("subtract", "delete"), "segment.bytes": 2_000_000},
        {"segment.bytes": ("delete", None)},
    ):
        resource = ConfigResource("topic", topic, change)
        result = admin.alter_configs([resource])
        assert result == {"topic": {topic: "OK"}}
    wanted = {"retention.ms": "60000", "cleanup.policy": "compact"}
    wait_for_configs(admin, topic, wanted)
    admin.reset_configs([ConfigResource("topic", topic)])
    wait_for_configs(admin, topic, {})


def test_entries_are_changed_by_a_whole_configuration(admin: KafkaAdminClient) -> None:
    admin.create_topics({"whole": {"configs": {"retention.ms": "5"}}}, wait_for_metadata=True)
    change = ConfigResource("topic", "whole", {"segment.bytes": 2_000_000})
    assert admin.alter_configs([change], incremental=False) == {"topic": {"whole": "OK"}}
    wait_for_configs(admin, "whole", {"retention.ms": "5", "segment.bytes": "2000000"})
    admin.reset_configs([ConfigResource("topic", "whole", ["retention.ms"])], incremental=False)
    wait_for_configs(admin, "whole", {"segment.bytes": "2000000"})


def test_entries_of_brokers_are_changed(admin: KafkaAdminClient) -> None:
    (broker,) = admin.describe_cluster()["brokers"]
    for name in (str(broker["broker_id"]), ""):
        resource = ConfigResource("broker", name, {"log.cleaner.backoff.ms": 12_345})
        assert admin.alter_configs([resource]) == {"broker": {name: "OK"}}
        key = ["log.cleaner.backoff.ms"]
        assert admin.reset_configs([ConfigResource("broker", name, key)]) == {
            "broker": {name: "OK"}
        }


def test_what_is_wrong_with_a_change_is_told(admin: KafkaAdminClient) -> None:
    admin.create_topics(["wrong"], wait_for_metadata=True)
    wrong = ConfigResource("topic", "wrong", {"retention.ms": "soon"})
    assert "INVALID_CONFIG" in admin.alter_configs([wrong])["topic"]["wrong"]
    with pytest.raises(ValueError, match=r"has no retention\.m "):
        admin.alter_configs([ConfigResource("topic", "wrong", {"retention.m": 1})])
    assert "wrong" in admin.list_config_resources(["topic"])["topic"]


def test_records_are_deleted_and_offsets_looked_up(
    admin: KafkaAdminClient, apache: ApacheKafka
) -> None:
    admin.create_topics([NewTopic("records", 1, 1)], wait_for_metadata=True)
    partition = TopicPartition("records", 0)
    with KafkaProducer(bootstrap_servers=apache.bootstrap_servers) as producer:
        for number in range(10):
            producer.send("records", b"%d" % number)
    assert admin.delete_records({partition: 4})[partition]["low_watermark"] == 4
    for spec, offset in ((OffsetSpec.EARLIEST, 4), (OffsetSpec.LATEST, 10), (0, 4)):
        assert admin.list_partition_offsets({partition: spec})[partition].offset == offset
    with pytest.raises(OffsetOutOfRangeError, match="records-0"):
        admin.delete_records({partition: 11})
    (described,) = admin.describe_log_dirs(["records"])
    (topic,) = described["log_dirs"][0]["topics"]
    assert topic["partitions"][0]["partition_size"] > 0
    page = admin.describe_topic_partitions(["records"])
    assert page["topics"][0]["partitions"][0]["leader_id"] >= 0
    assert page["next_cursor"] is None


def test_replicas_controllers_and_features_are_managed(admin: KafkaAdminClient) -> None:
    admin.create_topics([NewTopic("moved", 2, 1)], wait_for_metadata=True)
    (broker,) = (one["broker_id"] for one in admin.describe_cluster()["brokers"])
    (elected,) = admin.elect_leaders("preferred", ["moved"])["replica_election_results"]
    assert {one["error_code"] for one in elected["partition_result"]} == {84}  # not needed
    partitions = [TopicPartition("moved", 0), TopicPartition("moved", 1)]
    moved = admin.alter_partition_reassignments({partitions[0]: [broker], partitions[1]: [99]})
    assert moved == {partitions[0]: None, partitions[1]: InvalidReplicaAssignmentError}
    assert admin.list_partition_reassignments() == {}
    (topic,) = admin.describe_metadata_quorum()["topics"]
    assert topic["partitions"][0]["leader_id"] >= 0
    assert admin.describe_features()["metadata.version"]["finalized_epoch"] >= 0


def test_a_group_is_listed_described_and_deleted(
    admin: KafkaAdminClient, apache: ApacheKafka
) -> None:
    admin.create_topics([NewTopic("grouped", 2, 1)], wait_for_metadata=True)
    with KafkaProducer(bootstrap_servers=apache.bootstrap_servers) as producer:
        producer.send("grouped", b"1")
    with KafkaConsumer(
        "grouped",
        bootstrap_servers=apache.bootstrap_servers,
        group_id="billing",
        auto_offset_reset="earliest",
    ) as consumer:
        while not consumer.poll(timeout_ms=1_000):
            pass
        listed = admin.list_groups(states_filter=["Stable"], types_filter=["classic"])
        assert "billing" in [one["group_id"] for one in listed]
        (member,) = admin.describe_groups(["billing"])["billing"]["members"]
        assert member["member_assignment"]["assigned_partitions"] == [
            {"topic": "grouped", "partitions": [0, 1]}
        ]
        assert admin.delete_groups(["billing"]) == {"billing": "NonEmptyGroupError"}
    assert admin.delete_groups(["billing"]) == {"billing": "OK"}
    assert admin.delete_groups(["billing"]) == {"billing": "GroupIdNotFoundError"}


def test_offsets_of_a_group_are_listed_altered_reset_and_deleted(
    admin: KafkaAdminClient, apache: ApacheKafka
) -> None:
    admin.create_topics([NewTopic("resets", 2, 1)], wait_for_metadata=True)
    first, second = TopicPartition("resets", 0), TopicPartition("resets", 1)
    with KafkaProducer(bootstrap_servers=apache.bootstrap_servers) as producer:
        for number in range(10):
            producer.send("resets", b"x", partition=0, timestamp_ms=1_000 + number)
    wanted = {first: OffsetAndMetadata(4, "note"), second: OffsetAndMetadata(0)}
    assert admin.alter_group_offsets("resets", wanted) == {first: NoError, second: NoError}
    assert admin.list_group_offsets(["resets", "nobody"]) == {"resets": wanted, "nobody": {}}
    assert admin.list_group_offsets("resets") == {"resets": wanted}
    lags = admin.lag("resets")
    assert [(one.committed, one.end, one.lag) for one in lags.values()] == [(4, 10, 6), (0, 0, 0)]
    assert (lags[first].time_lag_ms or 0) > 1_000_000_000_000
    assert lags[second].time_lag_ms == 0
    targets = (
        (OffsetSpec.EARLIEST, 0),
        (OffsetShift(3), 3),
        (OffsetTimestamp(1_007), 7),
        (timedelta(days=1), 10),
        (OffsetShift(-99), 0),
        (5, 5),
        (OffsetSpec.LATEST, 10),
    )
    for target, offset in targets:
        there = {first: {"error": NoError, "offset": offset}}
        assert admin.reset_group_offsets("resets", {first: target}, dry_run=True) == there
        assert admin.reset_group_offsets("resets", {first: target}) == there
        assert admin.list_group_offsets("resets")["resets"][first].offset == offset
    assert admin.delete_group_offsets("resets", [first]) == {first: NoError}
    assert list(admin.list_group_offsets("resets")["resets"]) == [second]
    with pytest.raises(GroupIdNotFoundError, match="group 'nobody'"):
        admin.delete_group_offsets("nobody", [first])


def test_members_of_a_group_are_removed(admin: KafkaAdminClient, apache: ApacheKafka) -> None:
    admin.create_topics([NewTopic("members", 1, 1)], wait_for_metadata=True)
    with KafkaConsumer(
        "members",
        bootstrap_servers=apache.bootstrap_servers,
        group_id="members",
        group_instance_id="till",
    ) as consumer:
        while not consumer.assignment():
            consumer.poll(timeout_ms=100)
        offset = {TopicPartition("members", 0): OffsetAndMetadata(0)}
        assert admin.alter_group_offsets("members", offset) == dict.fromkeys(
            offset, UnknownMemberIdError
        )
        (old,) = admin.describe_consumer_groups(["members"])
        assert (old.state, old.members[0].member_assignment.assignment) == (
            "Stable",
            [("members", [0])],
        )
        static, stranger = MemberToRemove(group_instance_id="till"), MemberToRemove("stranger")
        assert admin.remove_group_members("members", [static, stranger]) == {
            "till": NoError,
            "stranger": UnknownMemberIdError,
        }
        assert admin.describe_groups(["members"])["members"].members == []
