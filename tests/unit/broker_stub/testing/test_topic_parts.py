"""Faults of one topic or partition: the error is in its part of the answer, and nowhere else."""

from typing import Any

import pytest

from broker_stub.handlers import SERVED
from broker_stub.request import HANG_UP
from broker_stub.testing import Always
from broker_stub.testing.topic_layouts import LAYOUTS
from pyclient.errors import (
    ElectionNotNeededError,
    FetchSessionIdNotFoundError,
    LeaderNotAvailableError,
    NotLeaderOrFollowerError,
    TopicExistsError,
    UnknownTopicOrPartitionError,
)
from pyclient.protocol.messages.alter_partition_reassignments import (
    AlterPartitionReassignmentsRequest,
    ReassignablePartition,
    ReassignableTopic,
)
from pyclient.protocol.messages.create_topics import CreatableTopic, CreateTopicsRequest
from pyclient.protocol.messages.delete_topics import DeleteTopicsRequest, DeleteTopicState
from pyclient.protocol.messages.describe_topic_partitions import (
    DescribeTopicPartitionsRequest,
    TopicRequest,
)
from pyclient.protocol.messages.elect_leaders import ElectLeadersRequest, TopicPartitions
from pyclient.protocol.messages.fetch import (
    FetchPartition,
    FetchRequest,
    FetchTopic,
    ForgottenTopic,
)
from pyclient.protocol.messages.find_coordinator import FindCoordinatorRequest
from pyclient.protocol.messages.list_offsets import (
    ListOffsetsPartition,
    ListOffsetsRequest,
    ListOffsetsTopic,
)
from pyclient.protocol.messages.metadata import MetadataRequest, MetadataRequestTopic
from pyclient.protocol.messages.offset_commit import OffsetCommitRequest
from pyclient.protocol.messages.offset_fetch import OffsetFetchRequest
from pyclient.protocol.messages.produce import (
    PartitionProduceData,
    ProduceRequest,
    TopicProduceData,
)
from pyclient.protocol.primitives import ZERO_UUID, ArrayType, StructType
from pyclient.protocol.registry import request_class
from tests.support.node_harness import NodeHarness, batch
from tests.support.offset_requests import offset_commit_request, offset_fetch_request

ERROR = NotLeaderOrFollowerError
TOPICS = ("orders", "payments")

# DescribeLogDirs and ListPartitionReassignments have no error for a topic. AddPartitionsToTxn adds
# all partitions or none.
FAILED_AS_A_WHOLE = {24, 35, 46}


@pytest.fixture
def ids(harness: NodeHarness) -> dict[str, bytes]:
    """Two topics of two partitions each; their ids."""
    return {name: harness.create_topic(name, 2) for name in TOPICS}


def produce_request(ids: dict[str, bytes], acks: int = -1) -> ProduceRequest:
    """A record for each of the four partitions."""
    return ProduceRequest(
        acks=acks,
        timeout_ms=1000,
        topic_data=[
            TopicProduceData(
                name=name,
                topic_id=ids[name],
                partition_data=[
                    PartitionProduceData(index=index, records=batch(b"v")) for index in range(2)
                ],
            )
            for name in TOPICS
        ],
    )


def produced(response: Any, ids: dict[str, bytes]) -> dict[tuple[str, int], int]:
    """Error codes by partition."""
    names = {topic_id: name for name, topic_id in ids.items()}
    return {
        (topic.name or names[topic.topic_id], one.index): one.error_code
        for topic in response.responses
        for one in topic.partition_responses
    }


def end_offsets(harness: NodeHarness) -> list[int]:
    return [
        harness.node.replicas.partition(name, index).log_end_offset
        for name in TOPICS
        for index in range(2)
    ]


def all_but(*failed: tuple[str, int], error: int = ERROR.code) -> dict[tuple[str, int], int]:
    every = [(name, index) for name in TOPICS for index in range(2)]
    return {one: error if one in failed else 0 for one in every}


@pytest.mark.parametrize("version", [9, 12, 13])  # by name and by id
@pytest.mark.parametrize("after", [False, True])
def test_one_partition_of_a_produce_fails_and_the_others_are_appended(
    harness, faults, ids, version, after
):
    fault = faults.fail_next(ProduceRequest, ERROR, topic="orders", partition=1, after=after)
    response = harness.ask(produce_request(ids), version)
    assert produced(response, ids) == all_but(("orders", 1))
    assert end_offsets(harness) == [1, 1 if after else 0, 1, 1]
    assert fault.hits == 1
    again = harness.ask(produce_request(ids), version)
    assert produced(again, ids) == all_but()


@pytest.mark.parametrize("version", [12, 13])
def test_a_whole_topic_of_a_produce_fails(harness, faults, ids, version):
    faults.fail_next(ProduceRequest, ERROR, topic="orders")
    response = harness.ask(produce_request(ids), version)
    assert produced(response, ids) == all_but(("orders", 0), ("orders", 1))
    assert end_offsets(harness) == [0, 0, 1, 1]
    (failed, _) = sorted(response.responses, key=lambda topic: produced_code(topic), reverse=True)
    assert {one.base_offset for one in failed.partition_responses} == {-1}


def produced_code(topic: Any) -> int:
    code: int = topic.partition_responses[0].error_code
    return code


def test_partitions_fail_each_with_its_own_error(harness, faults, ids):
    faults.fail_next(ProduceRequest, ERROR, topic="orders", partition=0)
    faults.fail_next(ProduceRequest, LeaderNotAvailableError, topic="payments", partition=1)
    faults.fail_next(ProduceRequest, UnknownTopicOrPartitionError, topic="orders")  # the next one
    codes = produced(harness.ask(produce_request(ids), 12), ids)
    assert codes == {
        **all_but(("orders", 0)),
        ("payments", 1): LeaderNotAvailableError.code,
    }
    codes = produced(harness.ask(produce_request(ids), 12), ids)
    unknown = UnknownTopicOrPartitionError.code
    assert codes == all_but(("orders", 0), ("orders", 1), error=unknown)


def test_a_request_about_other_topics_is_left_alone(harness, faults, ids):
    fault = faults.fail(ProduceRequest, ERROR, Always(), topic="refunds")
    assert produced(harness.ask(produce_request(ids), 12), ids) == all_but()
    assert fault.hits == 0


def test_a_failed_partition_of_a_produce_without_acks_closes_the_connection(harness, faults, ids):
    faults.fail_next(ProduceRequest, ERROR, topic="orders", partition=1)
    assert harness.start(produce_request(ids, acks=0), 12).reply == HANG_UP
    assert end_offsets(harness) == [1, 0, 1, 1]


# --- Fetch ---------------------------------------------------------------------------------------


def fetch_request(ids: dict[str, bytes] | None = None, **fields: Any) -> FetchRequest:
    topics = [] if ids is None else [
        FetchTopic(
            topic=name,
            topic_id=ids[name],
            partitions=[FetchPartition(partition=i, partition_max_bytes=1 << 20) for i in range(2)],
        )
        for name in TOPICS
    ]  # fmt: skip
    return FetchRequest(**{"max_wait_ms": 500, "min_bytes": 1, **fields}, topics=topics)


def fetched(response: Any, ids: dict[str, bytes]) -> dict[tuple[str, int], int]:
    names = {topic_id: name for name, topic_id in ids.items()}
    return {
        (topic.topic or names[topic.topic_id], one.partition_index): one.error_code
        for topic in response.responses
        for one in topic.partitions
    }


@pytest.mark.parametrize("version", [4, 12, 17])
def test_one_partition_of_a_fetch_fails_at_once_and_the_others_come_with_it(
    harness, faults, ids, version
):
    harness.ask(produce_request(ids), 12)
    faults.fail_next(FetchRequest, ERROR, topic="orders", partition=1)
    response = harness.ask(fetch_request(ids, min_bytes=1 << 20), version)
    assert fetched(response, ids) == all_but(("orders", 1))
    sizes = [len(one.records) for topic in response.responses for one in topic.partitions]
    assert [size > 0 for size in sizes] == [True, False, True, True]
    assert response.error_code == 0


@pytest.mark.parametrize("version", [12, 17])
def test_a_partition_that_the_fetch_session_remembers_fails_too(harness, faults, ids, version):
    session_id = harness.ask(fetch_request(ids, max_wait_ms=0, session_epoch=0), version).session_id
    assert session_id
    faults.fail_next(FetchRequest, ERROR, topic="orders", partition=1)
    incremental = fetch_request(session_id=session_id, session_epoch=1)
    response = harness.ask(incremental, version)
    assert fetched(response, ids) == {("orders", 1): ERROR.code}
    # And is well again: its records come as if nothing had been.
    harness.ask(produce_request(ids), 12)
    response = harness.ask(fetch_request(session_id=session_id, session_epoch=2), version)
    assert fetched(response, ids) == all_but()


def test_a_partition_that_the_session_is_told_to_forget_does_not_fail(harness, faults, ids):
    session_id = harness.ask(fetch_request(ids, max_wait_ms=0, session_epoch=0), 12).session_id
    fault = faults.fail_next(FetchRequest, ERROR, topic="orders", partition=1)
    forgetting = fetch_request(max_wait_ms=0, session_id=session_id, session_epoch=1)
    forgetting.forgotten_topics_data = [ForgottenTopic(topic="orders", partitions=[1])]
    assert fetched(harness.ask(forgetting, 12), ids) == {}
    assert fault.hits == 0


@pytest.mark.parametrize("version", [12, 17])
def test_an_error_of_partitions_fails_all_of_a_fetch_and_not_the_response(
    harness, faults, ids, version
):
    opened = harness.ask(fetch_request(ids, max_wait_ms=0, session_epoch=0), version)
    fault = faults.fail_next(FetchRequest, ERROR, 2)
    everything = {(name, number): ERROR.code for name in TOPICS for number in range(2)}
    for epoch in (1, 2):  # these requests name no topic: the session remembers them
        incremental = fetch_request(session_id=opened.session_id, session_epoch=epoch)
        response = harness.ask(incremental, version)
        assert response.error_code == 0
        assert fetched(response, ids) == everything
    assert fault.hits == 2


def test_an_error_of_the_session_fails_a_fetch_as_a_whole(harness, faults, ids):
    faults.fail_next(FetchRequest, FetchSessionIdNotFoundError)
    response = harness.ask(fetch_request(ids), 12)
    assert response.error_code == FetchSessionIdNotFoundError.code


def test_an_error_of_partitions_waits_for_a_fetch_that_has_some(harness, faults, ids):
    fault = faults.fail_next(FetchRequest, ERROR)
    assert harness.ask(fetch_request(max_wait_ms=0), 12).error_code == 0
    assert fault.hits == 0


def test_a_fetch_waits_for_its_records_before_it_fails_if_it_is_to_fail_after(harness, faults, ids):
    faults.fail_next(FetchRequest, ERROR, topic="orders", partition=1, after=True)
    pending = harness.start(fetch_request(ids), 12)
    assert not pending.arrived
    harness.advance(500)
    assert fetched(pending.response, ids) == all_but(("orders", 1))


# --- Metadata ------------------------------------------------------------------------------------


def described(response: Any) -> dict[str | None, tuple[int, list[int]]]:
    """The error code of each topic, and those of its partitions."""
    return {
        topic.name: (topic.error_code, [one.error_code for one in topic.partitions])
        for topic in response.topics
    }


def metadata_of(*names: str) -> MetadataRequest:
    return MetadataRequest(topics=[MetadataRequestTopic(name=name) for name in names])


@pytest.mark.parametrize("version", [1, 12])
def test_a_topic_of_the_metadata_fails_and_is_not_created(harness, faults, version):
    faults.fail_next(MetadataRequest, LeaderNotAvailableError, topic="orders")
    response = harness.ask(metadata_of("orders", "payments"), version)
    assert described(response) == {
        "orders": (LeaderNotAvailableError.code, []),
        "payments": (0, [0]),
    }
    assert response.brokers
    assert harness.node.image.topic("orders") is None


def test_a_topic_of_the_metadata_fails_after_it_was_created(harness, faults):
    faults.fail_next(MetadataRequest, LeaderNotAvailableError, topic="orders", after=True)
    response = harness.ask(metadata_of("orders"))
    assert described(response) == {"orders": (LeaderNotAvailableError.code, [])}
    assert harness.node.image.topic("orders") is not None


def test_one_partition_of_the_metadata_is_without_a_leader(harness, faults, ids):
    faults.fail_next(MetadataRequest, LeaderNotAvailableError, topic="orders", partition=1)
    response = harness.ask(metadata_of("orders", "payments"))
    assert described(response) == {
        "orders": (0, [0, LeaderNotAvailableError.code]),
        "payments": (0, [0, 0]),
    }
    assert [one.leader_id for one in response.topics[0].partitions] == [1, -1]


def test_a_topic_fails_in_metadata_of_all_topics_and_by_its_id(harness, faults, ids):
    faults.fail_next(MetadataRequest, LeaderNotAvailableError, count=2, topic="orders")
    everything = harness.ask(MetadataRequest(topics=None))
    assert described(everything)["orders"] == (LeaderNotAvailableError.code, [])
    assert described(everything)["payments"] == (0, [0, 0])
    by_id = MetadataRequest(topics=[MetadataRequestTopic(name=None, topic_id=ids["orders"])])
    (topic,) = harness.ask(by_id, 12).topics
    assert (topic.error_code, topic.topic_id) == (LeaderNotAvailableError.code, ids["orders"])


# --- the others ----------------------------------------------------------------------------------


def test_one_partition_of_list_offsets_fails(harness, faults, ids):
    faults.fail_next(ListOffsetsRequest, ERROR, topic="orders", partition=0)
    partitions = [ListOffsetsPartition(partition_index=i, timestamp=-1) for i in range(2)]
    topics = [ListOffsetsTopic(name=name, partitions=partitions) for name in TOPICS]
    response = harness.ask(ListOffsetsRequest(replica_id=-1, topics=topics))
    found = {
        (topic.name, one.partition_index): (one.error_code, one.offset)
        for topic in response.topics
        for one in topic.partitions
    }
    assert found == {
        ("orders", 0): (ERROR.code, -1),
        ("orders", 1): (0, 0),
        ("payments", 0): (0, 0),
        ("payments", 1): (0, 0),
    }


def committed(harness: NodeHarness) -> dict[tuple[str, int], tuple[int, int]]:
    """Offset and error code of each partition, as OffsetFetch in its older form tells."""
    response = harness.ask(offset_fetch_request("group", [(name, [0, 1]) for name in TOPICS], 7), 7)
    return {
        (topic.name, one.partition_index): (one.committed_offset, one.error_code)
        for topic in response.topics
        for one in topic.partitions
    }


def commit(harness: NodeHarness) -> dict[tuple[str, int], int]:
    offsets = {(name, index): 5 for name in TOPICS for index in range(2)}
    response = harness.ask(offset_commit_request("group", offsets))
    return {
        (topic.name, one.partition_index): one.error_code
        for topic in response.topics
        for one in topic.partitions
    }


@pytest.mark.parametrize("after", [False, True])
def test_one_partition_of_a_commit_fails(harness, faults, ids, after):
    harness.ask(FindCoordinatorRequest(key="group"), 3)
    faults.fail_next(OffsetCommitRequest, ERROR, topic="orders", partition=0, after=after)
    assert commit(harness) == all_but(("orders", 0))
    assert committed(harness)["orders", 0] == (5 if after else -1, 0)
    assert committed(harness)["payments", 0] == (5, 0)


def test_one_partition_of_offset_fetch_fails_in_both_of_its_forms(harness, faults, ids):
    harness.ask(FindCoordinatorRequest(key="group"), 3)
    commit(harness)
    faults.fail_next(OffsetFetchRequest, ERROR, topic="orders", partition=0)
    assert committed(harness) == {
        ("orders", 0): (-1, ERROR.code),
        ("orders", 1): (5, 0),
        ("payments", 0): (5, 0),
        ("payments", 1): (5, 0),
    }
    fault = faults.fail_next(OffsetFetchRequest, ERROR, topic="orders", partition=0)
    harness.ask(offset_fetch_request("group", {"orders": [1]}), 9)
    assert fault.hits == 0
    (group,) = harness.ask(offset_fetch_request("group", None), 9).groups
    (orders, _) = group.topics
    assert [(one.committed_offset, one.error_code) for one in orders.partitions] == [
        (-1, ERROR.code),
        (5, 0),
    ]


@pytest.mark.parametrize("after", [False, True])
def test_one_topic_of_create_topics_fails(harness, faults, after):
    faults.fail_next(CreateTopicsRequest, TopicExistsError("taken"), topic="orders", after=after)
    new = [CreatableTopic(name=name, num_partitions=1, replication_factor=1) for name in TOPICS]
    response = harness.ask(CreateTopicsRequest(topics=new))
    results = {topic.name: (topic.error_code, topic.error_message) for topic in response.topics}
    assert results == {"orders": (TopicExistsError.code, "taken"), "payments": (0, None)}
    assert (harness.node.image.topic("orders") is not None) == after


@pytest.mark.parametrize("after", [False, True])
@pytest.mark.parametrize("form", ["names", "topics by name", "topics by id"])
def test_one_topic_of_delete_topics_fails(harness, faults, ids, form, after):
    faults.fail_next(DeleteTopicsRequest, ERROR, topic="orders", after=after)
    if form == "names":
        request, version = DeleteTopicsRequest(topic_names=list(TOPICS)), 5
    elif form == "topics by name":
        states = [DeleteTopicState(name=name) for name in TOPICS]
        request, version = DeleteTopicsRequest(topics=states), 6
    else:
        states = [DeleteTopicState(topic_id=topic_id) for topic_id in ids.values()]
        request, version = DeleteTopicsRequest(topics=states), 6
    failed, gone = sorted(harness.ask(request, version).responses, key=lambda one: -one.error_code)
    assert (failed.error_code, gone.error_code) == (ERROR.code, 0)
    assert "orders" in (failed.name, *(n for n, one in ids.items() if one == failed.topic_id))
    assert (harness.node.image.topic("orders") is None) == after
    assert harness.node.image.topic("payments") is None


def test_one_partition_of_elect_leaders_and_of_reassignments_fails(harness, faults, ids):
    faults.fail_next(ElectLeadersRequest, ERROR, topic="orders", partition=1)
    asked = [TopicPartitions(topic=name, partitions=[0, 1]) for name in TOPICS]
    elected = harness.ask(ElectLeadersRequest(topic_partitions=asked)).replica_election_results
    needless = ElectionNotNeededError.code
    codes = {
        (topic.topic, one.partition_id): one.error_code
        for topic in elected
        for one in topic.partition_result
    }
    assert codes == {**dict.fromkeys(codes, needless), ("orders", 1): ERROR.code}
    faults.fail_next(AlterPartitionReassignmentsRequest, ERROR, topic="orders", partition=1)
    moves = [ReassignablePartition(partition_index=index, replicas=[1]) for index in range(2)]
    topics = [ReassignableTopic(name=name, partitions=moves) for name in TOPICS]
    moved = harness.ask(AlterPartitionReassignmentsRequest(topics=topics)).responses
    assert {
        (topic.name, one.partition_index): one.error_code
        for topic in moved
        for one in topic.partitions
    } == all_but(("orders", 1))


@pytest.mark.parametrize("names", [TOPICS, ()])
def test_one_topic_fails_where_partitions_are_described(harness, faults, ids, names):
    faults.fail_next(DescribeTopicPartitionsRequest, ERROR, topic="orders")
    topics = [TopicRequest(name=name) for name in names]
    response = harness.ask(DescribeTopicPartitionsRequest(topics=topics))
    assert described(response) == {"orders": (ERROR.code, []), "payments": (0, [0, 0])}


def test_every_served_api_with_topics_has_a_layout():
    with_topics = {
        api_key
        for api_key in SERVED
        if any(
            isinstance(one.type, ArrayType)
            and isinstance(one.type.element, StructType)
            and {"name", "topic", "topic_id"}
            & {each.name for each in one.type.element.struct.fields}
            and "topic" in one.name
            for one in request_class(api_key).fields
        )
    }
    assert with_topics - FAILED_AS_A_WHOLE == set(LAYOUTS)


def test_no_id_is_the_id_of_no_topic(harness):
    assert harness.node.image.topic_by_id(ZERO_UUID) is None
