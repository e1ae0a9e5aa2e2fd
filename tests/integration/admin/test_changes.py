"""The admin client changes things on our broker: configurations, records, groups."""

import uuid

import pytest

from broker_stub import Broker
from pyclient import KafkaConsumer, KafkaProducer, TopicPartition
from pyclient.admin import ConfigResource, KafkaAdminClient, NewTopic, OffsetSpec
from pyclient.errors import (
    InvalidRequestError,
    NotControllerError,
    NotLeaderOrFollowerError,
    OffsetOutOfRangeError,
    RequestTimedOutError,
    TopicExistsError,
    UnknownTopicIdError,
    UnknownTopicOrPartitionError,
)
from pyclient.protocol.messages.create_topics import CreateTopicsRequest
from pyclient.protocol.messages.delete_records import DeleteRecordsRequest
from pyclient.protocol.messages.incremental_alter_configs import IncrementalAlterConfigsRequest
from pyclient.protocol.messages.metadata import MetadataRequest
from pyclient.types import parse_uuid

ORDERS = TopicPartition("orders", 0)


@pytest.fixture
def broker():
    with Broker(config={"auto.create.topics.enable": False}) as broker:
        yield broker


@pytest.fixture
def admin(broker):
    with KafkaAdminClient(bootstrap_servers=broker.bootstrap_servers) as admin:
        admin.create_topics([NewTopic("orders", 2, 1)])
        yield admin


def configs(admin, kind="topic", name="orders"):
    found = admin.describe_configs([ConfigResource(kind, name)])
    return {key: entry["value"] for key, entry in found[kind][name].items()}


@pytest.mark.parametrize("incremental", [True, False, None])
def test_a_topics_entries_are_changed_and_reset(admin, incremental):
    changed = {"retention.ms": 60_000, "cleanup.policy": "compact"}
    resource = ConfigResource("topic", "orders", changed)
    assert admin.alter_configs([resource], incremental=incremental) == {"topic": {"orders": "OK"}}
    assert configs(admin) == {"retention.ms": "60000", "cleanup.policy": "compact"}
    more = ConfigResource("topic", "orders", {"segment.bytes": 1_000_000})
    admin.alter_configs([more], incremental=incremental)
    assert configs(admin).keys() == {"retention.ms", "cleanup.policy", "segment.bytes"}
    one = ConfigResource("topic", "orders", ["cleanup.policy"])
    admin.reset_configs([one], incremental=incremental)
    assert configs(admin).keys() == {"retention.ms", "segment.bytes"}
    admin.reset_configs([ConfigResource("topic", "orders")], incremental=incremental)
    assert configs(admin) == {}


def test_lists_are_appended_to_and_subtracted_from(admin):
    policy = "cleanup.policy"
    for operation, value, outcome in (
        ("append", "compact", "delete,compact"),
        ("append", "compact", "delete,compact"),  # it is there already
        ("subtract", "delete", "compact"),
        ("set", "delete", "delete"),
    ):
        admin.alter_configs([ConfigResource("topic", "orders", {policy: (operation, value)})])
        assert configs(admin)[policy] == outcome
    admin.alter_configs([ConfigResource("topic", "orders", {policy: ("delete", None)})])
    assert configs(admin) == {}


def test_a_brokers_defaults_are_changed(admin):
    for name in ("1", ""):
        resource = ConfigResource("broker", name, {"log.retention.ms": 60_000})
        assert admin.alter_configs([resource]) == {"broker": {name: "OK"}}
    assert configs(admin, "broker", "1") == {"log.retention.ms": "60000"}


def test_a_check_changes_nothing(admin):
    resource = ConfigResource("topic", "orders", {"retention.ms": 1})
    assert admin.alter_configs([resource], validate_only=True) == {"topic": {"orders": "OK"}}
    assert configs(admin) == {}


def test_what_is_wrong_is_told_by_name(admin):
    wrong = ConfigResource("topic", "orders", {"retention.ms": "soon"})
    assert "INVALID_CONFIG" in admin.alter_configs([wrong])["topic"]["orders"]
    with pytest.raises(ValueError, match=r"has no retention\.m "):
        admin.alter_configs([ConfigResource("topic", "orders", {"retention.m": 1})])
    unknown = ConfigResource("topic", "oders", {"retention.ms": 1})
    with pytest.raises(UnknownTopicOrPartitionError, match="topic 'oders'"):
        admin.alter_configs([unknown])
    result = admin.alter_configs([unknown], raise_on_unknown=False)
    assert "UNKNOWN_TOPIC_OR_PARTITION" in result["topic"]["oders"]


@pytest.mark.parametrize("passing", [NotControllerError])
def test_a_change_that_was_not_tried_is_tried_again(admin, broker, passing):
    fault = broker.faults.fail_next(IncrementalAlterConfigsRequest, passing)
    admin.alter_configs([ConfigResource("topic", "orders", {"retention.ms": 1})])
    assert fault.hits == 1
    assert configs(admin) == {"retention.ms": "1"}


def test_a_change_whose_outcome_is_open_is_not_called_done(admin, broker):
    broker.faults.fail_next(IncrementalAlterConfigsRequest, RequestTimedOutError, after=True)
    result = admin.alter_configs([ConfigResource("topic", "orders", {"retention.ms": 1})])
    assert "REQUEST_TIMED_OUT" in result["topic"]["orders"]


def test_a_topic_whose_creation_got_no_answer_may_be_ones_own(admin, broker):
    broker.faults.drop(CreateTopicsRequest, after=True)
    with pytest.raises(TopicExistsError, match="an earlier attempt of this call got no answer"):
        admin.create_topics(["payments"])
    assert "payments" in admin.list_topics()


@pytest.fixture
def records(broker, admin):
    with KafkaProducer(bootstrap_servers=broker.bootstrap_servers) as producer:
        for number in range(10):
            producer.send("orders", b"%d" % number, partition=0, timestamp_ms=1_000 + number)


def test_records_are_deleted_and_offsets_looked_up(admin, records):
    (result,) = admin.delete_records({ORDERS: 4}).values()
    assert result["low_watermark"] == 4
    looked_up = {
        spec: admin.list_partition_offsets({ORDERS: spec})[ORDERS].offset
        for spec in (OffsetSpec.EARLIEST, OffsetSpec.LATEST, 1_006, OffsetSpec.MAX_TIMESTAMP)
    }
    assert list(looked_up.values()) == [4, 10, 6, 9]
    admin.delete_records({ORDERS: -1})
    assert admin.list_partition_offsets({ORDERS: OffsetSpec.EARLIEST})[ORDERS].offset == 10
    with pytest.raises(OffsetOutOfRangeError, match="orders-0"):
        admin.delete_records({ORDERS: 11})


def test_deleting_records_follows_the_leader(admin, broker, records):
    fault = broker.faults.fail_next(DeleteRecordsRequest, NotLeaderOrFollowerError)
    assert admin.delete_records({ORDERS: 4})[ORDERS]["low_watermark"] == 4
    assert fault.hits == 1


def test_disks_are_described(admin, records):
    (described,) = admin.describe_log_dirs()
    (log_dir,) = described["log_dirs"]
    (topic,) = (one for one in log_dir["topics"] if one["name"] == "orders")
    sizes = {one["partition_index"]: one["partition_size"] for one in topic["partitions"]}
    assert sizes[0] > 0 == sizes[1]
    assert log_dir["usable_bytes"] > 0


def test_partitions_are_described_page_by_page(admin):
    seen, cursor = [], None
    while True:
        page = admin.describe_topic_partitions(["orders"], 1, cursor)
        (topic,) = page["topics"]
        seen += [one["partition_index"] for one in topic["partitions"]]
        cursor = page["next_cursor"]
        if cursor is None:
            break
    assert seen == [0, 1]


def test_a_topic_can_be_named_by_its_id(admin):
    (described,) = admin.describe_topics(["orders"])
    topic_id = uuid.UUID(bytes=parse_uuid(described["topic_id"]))
    assert admin.describe_topics([topic_id])[0]["name"] == "orders"
    assert admin.delete_topics([topic_id])["topics"][0]["name"] == "orders"
    assert admin.list_topics() == []
    with pytest.raises(UnknownTopicIdError, match=f"the topic of id {described['topic_id']}"):
        admin.delete_topics([topic_id])


def test_a_topic_can_be_used_once_it_was_waited_for(admin, broker):
    created = admin.create_topics({"payments": {"num_partitions": 3}}, wait_for_metadata=True)
    assert created["topics"][0]["num_partitions"] == 3
    asked = broker.requests.count(MetadataRequest)
    admin.wait_for_topics(["payments"])
    assert broker.requests.count(MetadataRequest) == asked + 1  # it was there at the first look


def test_a_group_is_listed_described_and_deleted(admin, broker, records):
    with KafkaConsumer(
        "orders",
        bootstrap_servers=broker.bootstrap_servers,
        group_id="billing",
        auto_offset_reset="earliest",
    ) as consumer:
        while not consumer.poll(timeout_ms=1_000):
            pass
        (listed,) = admin.list_groups(states_filter=["Stable"])
        assert (listed["group_id"], listed["protocol_type"]) == ("billing", "consumer")
        (member,) = admin.describe_groups(["billing"])["billing"]["members"]
        assert member["member_metadata"]["topics"] == ["orders"]
        assert member["member_assignment"]["assigned_partitions"] == [
            {"topic": "orders", "partitions": [0, 1]}
        ]
        assert admin.delete_groups(["billing"]) == {"billing": "NonEmptyGroupError"}
    assert admin.delete_groups(["billing", "nobody"]) == {
        "billing": "OK",
        "nobody": "GroupIdNotFoundError",
    }
    assert admin.list_groups() == []
    assert admin.describe_groups(["billing"])["billing"]["group_state"] == "Dead"


def test_what_has_no_configuration_is_refused_by_name(admin):
    with pytest.raises(InvalidRequestError, match="group 'billing'"):
        admin.describe_configs([ConfigResource("group", "billing")])
