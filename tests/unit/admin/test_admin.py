"""The admin client on a scripted network: where requests go, what is repeated, what it returns."""

import pytest

from pyclient.admin import ConfigResource, KafkaAdminClient, NewPartitions, NewTopic
from pyclient.errors import (
    IllegalStateError,
    KafkaTimeoutError,
    NoBrokersAvailable,
    NotControllerError,
    TopicExistsError,
    UnknownTopicOrPartitionError,
)
from pyclient.net.scripted import DISCONNECT
from pyclient.protocol.messages.create_partitions import (
    CreatePartitionsRequest,
    CreatePartitionsResponse,
    CreatePartitionsTopicResult,
)
from pyclient.protocol.messages.create_topics import (
    CreatableTopicResult,
    CreateTopicsRequest,
    CreateTopicsResponse,
)
from pyclient.protocol.messages.delete_topics import (
    DeletableTopicResult,
    DeleteTopicsRequest,
    DeleteTopicsResponse,
)
from pyclient.protocol.messages.describe_cluster import (
    DescribeClusterRequest,
    DescribeClusterResponse,
)
from pyclient.protocol.messages.describe_configs import (
    DescribeConfigsRequest,
    DescribeConfigsResourceResult,
    DescribeConfigsResponse,
    DescribeConfigsResult,
)
from pyclient.types import parse_uuid

TOPIC_CONFIG, STATIC, DEFAULT = 1, 4, 5


@pytest.fixture
def controller(network):
    return network.add_broker(1)


@pytest.fixture
def other(network):
    return network.add_broker(2)


@pytest.fixture
def admin(network, controller, other):
    with KafkaAdminClient(bootstrap_servers="broker1:9092", environment=network) as admin:
        yield admin


def created(*names, error=0):
    return CreateTopicsResponse(
        topics=[CreatableTopicResult(name=name, error_code=error, configs=[]) for name in names]
    )


def test_topics_are_created_by_the_controller(admin, controller, other):
    controller.on(CreateTopicsRequest, created("orders"))
    result = admin.create_topics(
        [NewTopic("orders", num_partitions=3, replication_factor=1, topic_configs={"a": 1})]
    )
    assert result["topics"][0]["name"] == "orders"
    (request,) = controller.received(CreateTopicsRequest)
    (topic,) = request.topics
    assert (topic.num_partitions, topic.replication_factor) == (3, 1)
    assert [(one.name, one.value) for one in topic.configs] == [("a", "1")]
    assert not other.received(CreateTopicsRequest)


@pytest.mark.parametrize(
    "new_topics", [["orders"], {"orders": {}}, [NewTopic("orders")], {"orders": {"configs": {}}}]
)
def test_a_topic_can_be_given_in_all_forms(admin, controller, new_topics):
    controller.on(CreateTopicsRequest, created("orders"))
    admin.create_topics(new_topics)
    (topic,) = controller.received(CreateTopicsRequest)[0].topics
    assert (topic.name, topic.num_partitions, topic.replication_factor) == ("orders", -1, -1)


def test_assignments_are_passed_on(admin, controller):
    controller.on(CreateTopicsRequest, created("orders"))
    admin.create_topics({"orders": {"assignments": {0: [2, 1]}}})
    (topic,) = controller.received(CreateTopicsRequest)[0].topics
    assert [(one.partition_index, one.broker_ids) for one in topic.assignments] == [(0, [2, 1])]


def test_a_topic_that_exists_is_an_error_with_its_name(admin, controller):
    controller.on(CreateTopicsRequest, created("orders", error=TopicExistsError.code))
    with pytest.raises(TopicExistsError, match="topic 'orders'"):
        admin.create_topics(["orders"])


def test_errors_are_in_the_result_on_request(admin, controller):
    controller.on(CreateTopicsRequest, created("orders", error=TopicExistsError.code))
    result = admin.create_topics(["orders"], raise_errors=False)
    assert result["topics"][0]["error_code"] == TopicExistsError.code


def test_what_another_controller_has_to_do_is_sent_again_and_nothing_else(admin, controller):
    controller.on(
        CreateTopicsRequest,
        [
            CreateTopicsResponse(
                topics=[
                    CreatableTopicResult(name="done", configs=[]),
                    CreatableTopicResult(
                        name="not", error_code=NotControllerError.code, configs=[]
                    ),
                ]
            ),
            created("not"),
        ],
    )
    result = admin.create_topics(["done", "not"])
    assert [one["error_code"] for one in result["topics"]] == [0, 0]
    first, second = controller.received(CreateTopicsRequest)
    assert [one.name for one in first.topics] == ["done", "not"]
    assert [one.name for one in second.topics] == ["not"]


def test_a_lost_connection_is_no_reason_to_give_up(admin, controller):
    controller.on(CreateTopicsRequest, [DISCONNECT, created("orders")])
    assert admin.create_topics(["orders"])["topics"][0]["error_code"] == 0


def test_a_call_ends_by_its_deadline_and_says_why(admin, network, controller):
    controller.on(CreateTopicsRequest, created("orders", error=NotControllerError.code))
    started_ms = network.clock.monotonic_ms()
    with pytest.raises(KafkaTimeoutError, match=r"within 3000 ms: orders .*NOT_CONTROLLER"):
        admin.create_topics(["orders"], timeout_ms=3_000)
    assert network.clock.monotonic_ms() - started_ms == pytest.approx(3_000, abs=1)


def test_retries_are_counted(network, controller):
    controller.on(CreateTopicsRequest, created("orders", error=NotControllerError.code))
    with (
        KafkaAdminClient(bootstrap_servers="broker1", retries=2, environment=network) as admin,
        pytest.raises(NotControllerError),
    ):
        admin.create_topics(["orders"])
    assert len(controller.received(CreateTopicsRequest)) == 3


def test_nothing_to_do_is_a_mistake(admin):
    with pytest.raises(ValueError, match="no topic to create"):
        admin.create_topics([])
    with pytest.raises(ValueError, match="no topic to delete"):
        admin.delete_topics([])
    with pytest.raises(ValueError, match="no topic to give partitions"):
        admin.create_partitions({})


def test_topics_are_deleted_by_the_controller(admin, controller):
    controller.on(
        DeleteTopicsRequest, DeleteTopicsResponse(responses=[DeletableTopicResult(name="orders")])
    )
    assert admin.delete_topics(["orders"])["topics"][0]["name"] == "orders"
    assert controller.received(DeleteTopicsRequest)[0].topic_names == ["orders"]


def test_deleting_an_unknown_topic_is_an_error_at_once(admin, network, controller):
    unknown = DeletableTopicResult(name="oders", error_code=UnknownTopicOrPartitionError.code)
    controller.on(DeleteTopicsRequest, DeleteTopicsResponse(responses=[unknown]))
    with pytest.raises(UnknownTopicOrPartitionError, match="topic 'oders'"):
        admin.delete_topics(["oders"])
    assert len(controller.received(DeleteTopicsRequest)) == 1


@pytest.mark.parametrize("wanted", [6, {"count": 6}, NewPartitions(6)])
def test_a_topic_grows(admin, controller, wanted):
    controller.on(
        CreatePartitionsRequest,
        CreatePartitionsResponse(results=[CreatePartitionsTopicResult(name="orders")]),
    )
    admin.create_partitions({"orders": wanted}, validate_only=True)
    (request,) = controller.received(CreatePartitionsRequest)
    assert (request.topics[0].count, request.topics[0].assignments) == (6, None)
    assert request.validate_only


def test_new_partitions_can_be_placed(admin, controller):
    controller.on(
        CreatePartitionsRequest,
        CreatePartitionsResponse(results=[CreatePartitionsTopicResult(name="orders")]),
    )
    admin.create_partitions({"orders": NewPartitions(2, [[2, 1]])})
    (topic,) = controller.received(CreatePartitionsRequest)[0].topics
    assert [one.broker_ids for one in topic.assignments] == [[2, 1]]


def test_topics_are_listed_and_described(admin, network):
    network.add_topic("orders", partitions=2)
    network.add_topic("payments")
    assert sorted(admin.list_topics()) == ["orders", "payments"]
    (described,) = admin.describe_topics(["orders"])
    assert len(parse_uuid(described["topic_id"])) == 16
    assert [one["leader_id"] for one in described["partitions"]] == [1, 2]
    (unknown,) = admin.describe_topics(["oders"])
    assert unknown["error_code"] == UnknownTopicOrPartitionError.code


def config_entry(name, source, read_only=False):
    return DescribeConfigsResourceResult(
        name=name, value="1", config_source=source, read_only=read_only, config_type=5
    )


def configs_of(request, version):
    entries = [
        config_entry("retention.ms", TOPIC_CONFIG),
        config_entry("node.id", STATIC, read_only=True),
        config_entry("segment.bytes", DEFAULT),
    ]
    return DescribeConfigsResponse(
        results=[
            DescribeConfigsResult(
                resource_type=one.resource_type, resource_name=one.resource_name, configs=entries
            )
            for one in request.resources
        ]
    )


@pytest.mark.parametrize(
    ("config_filter", "keys"),
    [
        ("modified", {"retention.ms"}),
        ("dynamic", {"retention.ms", "segment.bytes"}),
        ("static", {"node.id"}),
        ("default", {"node.id", "segment.bytes"}),
        ("all", {"retention.ms", "node.id", "segment.bytes"}),
    ],
)
def test_configurations_are_filtered(admin, controller, other, config_filter, keys):
    for broker in (controller, other):
        broker.on(DescribeConfigsRequest, configs_of)
    found = admin.describe_configs([ConfigResource("TOPIC", "orders")], config_filter=config_filter)
    assert set(found["topic"]["orders"]) == keys
    if "retention.ms" in keys:
        entry = found["topic"]["orders"]["retention.ms"]
        assert (entry["value"], entry["config_source"], entry["config_type"]) == (
            "1",
            "DYNAMIC_TOPIC_CONFIG",
            "LONG",
        )


def test_a_brokers_configuration_is_asked_of_that_broker(admin, controller, other):
    other.on(DescribeConfigsRequest, configs_of)
    found = admin.describe_configs(
        [ConfigResource("broker", "2", ["node.id"])], config_filter="all"
    )
    assert set(found) == {"broker"}
    (request,) = other.received(DescribeConfigsRequest)
    assert request.resources[0].configuration_keys == ["node.id"]
    assert not controller.received(DescribeConfigsRequest)


def test_a_resource_that_cannot_be_described_is_an_error(admin, controller, other):
    refused = DescribeConfigsResponse(
        results=[
            DescribeConfigsResult(
                resource_type=2,
                resource_name="oders",
                error_code=UnknownTopicOrPartitionError.code,
                error_message="no such topic",
            )
        ]
    )
    for broker in (controller, other):
        broker.on(DescribeConfigsRequest, refused)
    with pytest.raises(UnknownTopicOrPartitionError, match="topic 'oders': no such topic"):
        admin.describe_configs([ConfigResource("topic", "oders")])


def test_the_cluster_is_described(admin, controller, other):
    for broker in (controller, other):
        broker.on(DescribeClusterRequest, DescribeClusterResponse(cluster_id="c", controller_id=1))
    assert admin.describe_cluster() == {"cluster_id": "c", "controller_id": 1, "brokers": []}


def test_a_closed_client_cannot_be_used(admin):
    admin.close()
    admin.close()
    with pytest.raises(
        IllegalStateError, match="MetadataRequest: the client cannot be used, it is"
    ):
        admin.list_topics()


def test_without_a_broker_there_is_no_client(network):
    with pytest.raises(NoBrokersAvailable, match="nowhere:9092: the host name cannot be resolved"):
        KafkaAdminClient(bootstrap_servers="nowhere", bootstrap_timeout_ms=500, environment=network)
    with KafkaAdminClient(
        bootstrap_servers="nowhere", api_version=(4, 0), environment=network
    ) as lazy:
        assert lazy.config["bootstrap.servers"] == (("nowhere", 9092),)
