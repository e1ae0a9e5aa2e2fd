"""CreatePartitions: topics grow, or are told why not."""

from typing import Any

import pytest

from broker_stub.metadata.image import CONSUMER_OFFSETS
from pyclient.error_codes import (
    InvalidPartitionsError,
    InvalidReplicaAssignmentError,
    InvalidRequestError,
    InvalidTopicError,
    PolicyViolationError,
    UnknownTopicOrPartitionError,
)
from pyclient.protocol.messages.create_partitions import (
    CreatePartitionsAssignment,
    CreatePartitionsRequest,
    CreatePartitionsTopic,
)
from tests.support.node_harness import NodeHarness, batch, produce_request


def grow(harness: NodeHarness, *topics: CreatePartitionsTopic, version: int = 3, **fields: Any):
    return harness.ask(CreatePartitionsRequest(topics=list(topics), **fields), version).results


def topic(count: int, *assignments: list[int], name: str = "orders") -> CreatePartitionsTopic:
    return CreatePartitionsTopic(
        name=name,
        count=count,
        assignments=[CreatePartitionsAssignment(broker_ids=one) for one in assignments] or None,
    )


def size(harness: NodeHarness, name: str = "orders") -> int:
    return len(harness.node.image.topic(name).partitions)


@pytest.mark.parametrize("version", range(4))
def test_new_partitions_are_there_when_the_answer_comes(harness, version):
    harness.create_topic("orders", 2)
    (result,) = grow(harness, topic(5), version=version)
    assert (result.name, result.error_code, result.error_message) == ("orders", 0, None)
    assert sorted(harness.node.image.topic("orders").partitions) == [0, 1, 2, 3, 4]


def test_new_partitions_take_records_and_the_old_ones_keep_theirs(harness):
    harness.create_topic("orders", 1)
    harness.ask(produce_request("orders", batch(b"old")), 9)
    grow(harness, topic(2))
    harness.ask(produce_request("orders", batch(b"new"), partition=1), 9)
    ends = [harness.node.replicas.partition("orders", index).log_end_offset for index in (0, 1)]
    assert ends == [1, 1]


def test_they_survive_a_restart(harness):
    harness.create_topic("orders", 1)
    grow(harness, topic(3))
    harness.restart(clean=False)
    assert size(harness) == 3


def test_they_can_be_assigned_by_hand(harness):
    harness.create_topic("orders", 1)
    (result,) = grow(harness, topic(3, [1], [1]))
    assert result.error_code == 0
    assert size(harness) == 3


def test_validate_only_makes_nothing(harness):
    harness.create_topic("orders", 1)
    good, bad = grow(harness, topic(3), topic(3, name="missing"), validate_only=True)
    assert (good.error_code, bad.error_code) == (0, UnknownTopicOrPartitionError.code)
    assert size(harness) == 1


@pytest.mark.parametrize("count", [2, 1, 0, -1])
def test_a_count_that_is_no_more_is_refused(harness, count):
    harness.create_topic("orders", 2)
    (result,) = grow(harness, topic(count))
    assert result.error_code == InvalidPartitionsError.code
    assert str(count) in result.error_message
    assert size(harness) == 2


@pytest.mark.parametrize("assignments", [[[1]], [[1], [7]], [[1], []], [[1], [1, 1]], [[1]] * 3])
def test_assignments_must_be_one_per_new_partition_and_to_brokers_that_exist(harness, assignments):
    harness.create_topic("orders", 1)
    (result,) = grow(harness, topic(3, *assignments))
    assert result.error_code == InvalidReplicaAssignmentError.code
    assert size(harness) == 1


def test_a_name_twice_is_refused_and_the_others_are_not(harness):
    harness.create_topic("orders", 1)
    harness.create_topic("payments", 1)
    results = grow(harness, topic(2), topic(2, name="payments"), topic(3))
    assert {one.name: one.error_code for one in results} == {
        "orders": InvalidRequestError.code,
        "payments": 0,
    }
    assert (size(harness), size(harness, "payments")) == (1, 2)


def test_the_brokers_own_topics_keep_their_number_of_partitions(harness):
    harness.create_topic(CONSUMER_OFFSETS, 4)
    (result,) = grow(harness, topic(8, name=CONSUMER_OFFSETS))
    assert result.error_code == InvalidTopicError.code


def test_no_more_partitions_are_made_at_once_than_one_request_may_make(harness):
    harness.create_topic("orders", 1)
    (result,) = grow(harness, topic(10_002))
    assert result.error_code == PolicyViolationError.code
    assert size(harness) == 1
