"""The admin client on a scripted network: where requests go, what is repeated, what it returns."""

import uuid

import pytest

from pyclient.admin import KafkaAdminClient, NewPartitions, NewTopic
from pyclient.errors import (
    IllegalStateError,
    KafkaTimeoutError,
    NoBrokersAvailable,
    NotControllerError,
    RequestTimedOutError,
    TopicExistsError,
    UnknownTopicIdError,
    UnknownTopicOrPartitionError,
    UnsupportedVersionError,
)
from pyclient.net.scripted import DISCONNECT
from pyclient.protocol.messages.create_partitions import (
    CreatePartitionsRequest,
    CreatePartitionsResponse,
    CreatePartitionsTopicResult,
)
from pyclient.protocol.messages.create_topics import (
    CreatableTopicConfigs,
    CreatableTopicResult,
    CreateTopicsRequest,
    CreateTopicsResponse,
)
from pyclient.protocol.messages.delete_topics import (
    DeletableTopicResult,
    DeleteTopicsRequest,
    DeleteTopicsResponse,
)
from pyclient.protocol.messages.metadata import (
    MetadataRequest,
    MetadataResponse,
    MetadataResponseBroker,
    MetadataResponsePartition,
    MetadataResponseTopic,
)
from pyclient.types import parse_uuid


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


def test_what_may_be_the_work_of_an_attempt_without_an_answer_is_an_error_that_says_so(
    admin, controller
):
    exists = created("orders", error=TopicExistsError.code)
    controller.on(CreateTopicsRequest, [DISCONNECT, exists])
    with pytest.raises(TopicExistsError, match="an earlier attempt of this call got no answer"):
        admin.create_topics(["orders"])


def test_an_error_after_no_doubt_says_nothing_of_it(admin, controller):
    exists = created("orders", error=TopicExistsError.code)
    not_tried = created("orders", error=NotControllerError.code)
    controller.on(CreateTopicsRequest, [not_tried, exists])
    with pytest.raises(TopicExistsError) as caught:
        admin.create_topics(["orders"])
    assert "attempt" not in str(caught.value)


def test_a_broker_that_cannot_choose_the_numbers_is_told_so(admin, controller):
    controller.versions[CreateTopicsRequest.api_key] = (0, 3)
    controller.cut()
    with pytest.raises(UnsupportedVersionError, match="versions 4 to 7, the broker serves 0 to 3"):
        admin.create_topics(["orders"])


def test_the_entries_of_a_new_topic_are_shown_by_name(admin, controller):
    entry = CreatableTopicConfigs(name="retention.ms", value="1", config_source=1)
    result = CreatableTopicResult(name="orders", configs=[entry])
    controller.on(CreateTopicsRequest, CreateTopicsResponse(topics=[result]))
    (topic,) = admin.create_topics(["orders"])["topics"]
    assert topic["configs"]["retention.ms"]["config_source"] == "DYNAMIC_TOPIC_CONFIG"


def test_a_call_ends_by_its_deadline_and_says_why(admin, network, controller):
    controller.on(CreateTopicsRequest, created("orders", error=NotControllerError.code))
    started_ms = network.clock.monotonic_ms()
    with pytest.raises(KafkaTimeoutError, match=r"within 3000 ms: topic 'orders' .*NOT_CONTROLLER"):
        admin.create_topics(["orders"], timeout_ms=3_000)
    assert network.clock.monotonic_ms() - started_ms == pytest.approx(3_000, abs=1)


def test_a_change_that_may_have_happened_is_named_when_the_time_is_up(admin, controller):
    controller.on(CreateTopicsRequest, DISCONNECT)
    with pytest.raises(KafkaTimeoutError, match=r"may have happened all the same: topic 'orders'$"):
        admin.create_topics(["orders"], timeout_ms=3_000)


def test_a_mere_check_is_repeated_and_leaves_nothing_open(admin, controller):
    timed_out = created("orders", error=RequestTimedOutError.code)
    controller.on(CreateTopicsRequest, [timed_out, created("orders")])
    admin.create_topics(["orders"], validate_only=True)
    controller.on(CreateTopicsRequest, DISCONNECT)
    with pytest.raises(KafkaTimeoutError) as caught:
        admin.create_topics(["orders"], timeout_ms=3_000, validate_only=True)
    assert "happened" not in str(caught.value)


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
    deleted = DeletableTopicResult(name="orders", topic_id=uuid.UUID(int=1).bytes)
    controller.on(DeleteTopicsRequest, DeleteTopicsResponse(responses=[deleted]))
    (topic,) = admin.delete_topics(["orders"]).topics
    assert (topic.name, topic.topic_id) == ("orders", "AAAAAAAAAAAAAAAAAAAAAQ")
    assert topic == topic | {"topic_id": topic["topic_id"]}


def test_topics_are_deleted_by_name_on_brokers_that_know_no_ids(admin, controller):
    controller.versions[DeleteTopicsRequest.api_key] = (1, 5)
    controller.cut()
    controller.on(
        DeleteTopicsRequest, DeleteTopicsResponse(responses=[DeletableTopicResult(name="orders")])
    )
    assert admin.delete_topics(["orders"])["topics"][0]["name"] == "orders"
    assert controller.received(DeleteTopicsRequest)[0].topic_names == ["orders"]
    with pytest.raises(UnsupportedVersionError, match="DeleteTopicsRequest"):
        admin.delete_topics([uuid.UUID(int=1)])


def test_topics_are_deleted_by_their_ids(admin, controller):
    first, second = uuid.UUID(int=1), uuid.UUID(int=2)
    results = [
        DeletableTopicResult(name="orders", topic_id=first.bytes),
        DeletableTopicResult(name=None, topic_id=second.bytes, error_code=100),
        DeletableTopicResult(name="payments"),
    ]
    controller.on(DeleteTopicsRequest, DeleteTopicsResponse(responses=results))
    found = admin.delete_topics([first, second, "payments"], raise_errors=False)["topics"]
    assert [one["error_code"] for one in found] == [0, 100, 0]
    (request,) = controller.received(DeleteTopicsRequest)
    assert [(one.name, one.topic_id) for one in request.topics] == [
        (None, first.bytes),
        (None, second.bytes),
        ("payments", bytes(16)),
    ]
    with pytest.raises(UnknownTopicIdError, match="the topic of id AAAAAAAAAAAAAAAAAAAAAg"):
        admin.delete_topics([second])


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


def metadata(name, leader=1, error=0):
    partition = MetadataResponsePartition(leader_id=leader)
    topic = MetadataResponseTopic(name=name, error_code=error, partitions=[partition])
    return MetadataResponse(
        brokers=[MetadataResponseBroker(node_id=1, host="broker1", port=9092)],
        controller_id=1,
        topics=[topic],
    )


def test_a_new_topic_can_be_waited_for(admin, controller, other):
    controller.on(CreateTopicsRequest, created("orders"))
    unknown = metadata("orders", error=UnknownTopicOrPartitionError.code)
    answers = [unknown, metadata("orders", leader=-1), metadata("orders")]
    for broker in (controller, other):
        broker.on(MetadataRequest, answers)
    admin.create_topics(["orders"], wait_for_metadata=True)
    asked = len(controller.received(MetadataRequest)) + len(other.received(MetadataRequest))
    assert asked >= 3


def test_waiting_for_a_topic_ends_by_its_deadline_and_says_why(admin, network):
    started_ms = network.clock.monotonic_ms()
    with pytest.raises(KafkaTimeoutError, match="within 1000 ms: topic 'oders'"):
        admin.wait_for_topics(["oders"], timeout_ms=1_000)
    assert network.clock.monotonic_ms() - started_ms == pytest.approx(1_000, abs=1)


def test_a_check_makes_nothing_to_wait_for(admin):
    with pytest.raises(ValueError, match="creates nothing"):
        admin.create_topics(["orders"], validate_only=True, wait_for_metadata=True)


def test_topics_are_described_by_their_ids(admin, controller, other):
    topic_id = uuid.UUID(int=7)
    for broker in (controller, other):
        broker.on(MetadataRequest, metadata("orders"))
    admin.describe_topics([topic_id])
    received = [*controller.received(MetadataRequest), *other.received(MetadataRequest)]
    assert any(topic.topic_id == topic_id.bytes for one in received for topic in one.topics or ())


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
        assert lazy.config["bootstrap.servers"] == "nowhere"
