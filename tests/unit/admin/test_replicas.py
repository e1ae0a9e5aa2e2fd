"""Elections and moves of partitions, on a scripted network."""

import pytest

from pyclient.admin import ElectionType
from pyclient.errors import (
    ElectionNotNeededError,
    InvalidReplicaAssignmentError,
    NotControllerError,
    PreferredLeaderNotAvailableError,
)
from pyclient.protocol.messages.alter_partition_reassignments import (
    AlterPartitionReassignmentsRequest,
    AlterPartitionReassignmentsResponse,
    ReassignablePartitionResponse,
    ReassignableTopicResponse,
)
from pyclient.protocol.messages.elect_leaders import (
    ElectLeadersRequest,
    ElectLeadersResponse,
    PartitionResult,
    ReplicaElectionResult,
)
from pyclient.protocol.messages.list_partition_reassignments import (
    ListPartitionReassignmentsRequest,
    ListPartitionReassignmentsResponse,
    OngoingPartitionReassignment,
    OngoingTopicReassignment,
)
from pyclient.types import TopicPartition

FIRST, SECOND = TopicPartition("orders", 0), TopicPartition("orders", 1)


def elected(*errors):
    results = [
        PartitionResult(partition_id=index, error_code=error, error_message=None)
        for index, error in enumerate(errors)
    ]
    topic = ReplicaElectionResult(topic="orders", partition_result=results)
    return ElectLeadersResponse(replica_election_results=[topic])


@pytest.mark.parametrize("asked", [{"orders": [0, 1]}, ["orders"], None])
@pytest.mark.parametrize("election", ["preferred", 0, ElectionType.PREFERRED])
def test_leaders_are_elected_by_the_controller(admin, network, controller, asked, election):
    network.add_topic("orders", partitions=2)
    controller.on(ElectLeadersRequest, elected(0, ElectionNotNeededError.code))
    result = admin.elect_leaders(election, asked)
    (topic,) = result["replica_election_results"]
    assert [one["error_code"] for one in topic["partition_result"]] == [0, 84]
    assert topic[0] == "orders"  # by position, as kafka-python's
    assert [(one[0], one[1]) for one in topic[1]] == [(0, 0), (1, 84)]
    with pytest.raises(KeyError):
        topic[2]
    (request,) = controller.received(ElectLeadersRequest)
    assert request.election_type == 0
    assert [(one.topic, one.partitions) for one in request.topic_partitions] == [("orders", [0, 1])]


def test_a_leader_that_cannot_be_elected_is_an_error_with_its_name(admin, controller):
    controller.on(ElectLeadersRequest, elected(PreferredLeaderNotAvailableError.code))
    with pytest.raises(PreferredLeaderNotAvailableError, match="orders-0"):
        admin.elect_leaders("preferred", {"orders": [0]})
    result = admin.elect_leaders("preferred", {"orders": [0]}, raise_errors=False)
    (topic,) = result["replica_election_results"]
    assert topic["partition_result"][0]["error_code"] == PreferredLeaderNotAvailableError.code


def reassigned(*errors):
    results = [
        ReassignablePartitionResponse(partition_index=index, error_code=error, error_message=None)
        for index, error in enumerate(errors)
    ]
    topic = ReassignableTopicResponse(name="orders", partitions=results)
    return AlterPartitionReassignmentsResponse(error_message=None, responses=[topic])


def test_moves_are_started_and_called_off(admin, controller):
    controller.on(
        AlterPartitionReassignmentsRequest, reassigned(0, InvalidReplicaAssignmentError.code)
    )
    assert admin.alter_partition_reassignments({FIRST: [2, 1], SECOND: None}) == {
        FIRST: None,
        SECOND: InvalidReplicaAssignmentError,
    }
    (request,) = controller.received(AlterPartitionReassignmentsRequest)
    (topic,) = request.topics
    assert [(one.partition_index, one.replicas) for one in topic.partitions] == [
        (0, [2, 1]),
        (1, None),
    ]


def test_what_another_controller_has_to_move_is_sent_again(admin, controller):
    refused = AlterPartitionReassignmentsResponse(
        error_code=NotControllerError.code, error_message=None
    )
    controller.on(AlterPartitionReassignmentsRequest, [refused, reassigned(0)])
    assert admin.alter_partition_reassignments({FIRST: [2]}) == {FIRST: None}
    assert len(controller.received(AlterPartitionReassignmentsRequest)) == 2


def test_a_partition_has_to_be_somewhere(admin):
    with pytest.raises(ValueError, match="orders-0 has to be on a broker"):
        admin.alter_partition_reassignments({FIRST: []})


@pytest.mark.parametrize("asked", [{"orders": [0]}, [FIRST], None])
def test_moves_under_way_are_listed(admin, controller, asked):
    move = OngoingPartitionReassignment(
        partition_index=0, replicas=[1, 2], adding_replicas=[2], removing_replicas=[1]
    )
    topic = OngoingTopicReassignment(name="orders", partitions=[move])
    answer = ListPartitionReassignmentsResponse(error_message=None, topics=[topic])
    refused = ListPartitionReassignmentsResponse(
        error_code=NotControllerError.code, error_message=None
    )
    controller.on(ListPartitionReassignmentsRequest, [refused, answer])
    assert admin.list_partition_reassignments(asked) == {
        FIRST: {"replicas": [1, 2], "adding_replicas": [2], "removing_replicas": [1]}
    }
    request = controller.received(ListPartitionReassignmentsRequest)[0]
    assert (request.topics is None) == (asked is None)
