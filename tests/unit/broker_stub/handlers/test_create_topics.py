"""CreateTopics, and everything that can be wrong with a topic."""

from typing import Any

import pytest

from pyclient.error_codes import (
    InvalidConfigurationError,
    InvalidPartitionsError,
    InvalidReplicaAssignmentError,
    InvalidReplicationFactorError,
    InvalidRequestError,
    InvalidTopicError,
    PolicyViolationError,
    TopicExistsError,
)
from pyclient.protocol.messages.create_topics import (
    CreatableReplicaAssignment,
    CreatableTopic,
    CreatableTopicConfig,
    CreatableTopicResult,
    CreateTopicsRequest,
)
from tests.support.node_harness import NodeHarness


def create(harness: NodeHarness, *topics: CreatableTopic, version: int = 7, **fields: Any):
    response = harness.ask(CreateTopicsRequest(topics=list(topics), **fields), version)
    return response.topics


def topic(name: str = "orders", **fields: Any) -> CreatableTopic:
    configs = fields.pop("configs", {})
    return CreatableTopic(
        name=name,
        **{"num_partitions": 1, "replication_factor": 1, **fields},
        configs=[CreatableTopicConfig(name=key, value=value) for key, value in configs.items()],
    )


def refused(harness: NodeHarness, one: CreatableTopic) -> CreatableTopicResult:
    (result,) = create(harness, one)
    assert harness.node.image.topic(one.name) is None
    return result


@pytest.mark.parametrize("version", range(2, 8))
def test_a_topic_is_there_when_the_answer_comes(harness, version):
    (result,) = create(harness, topic(num_partitions=3), version=version)
    assert result.error_code == 0
    made = harness.node.image.topic("orders")
    assert len(made.partitions) == 3
    if version >= 7:
        assert result.topic_id == made.topic_id


def test_counts_of_minus_1_are_the_brokers_defaults(tmp_path):
    harness = NodeHarness(tmp_path, num_partitions=5)
    (result,) = create(harness, topic(num_partitions=-1, replication_factor=-1))
    assert (result.num_partitions, result.replication_factor) == (5, 1)


def test_its_configuration_comes_back_with_sources(harness):
    (result,) = create(harness, topic(configs={"retention.ms": "1000"}))
    entries = {entry.name: (entry.value, entry.config_source) for entry in result.configs}
    assert entries["retention.ms"] == ("1000", 1)
    assert entries["max.message.bytes"] == ("1048588", 5)


def test_its_configuration_is_in_force(harness):
    create(harness, topic(configs={"retention.ms": "1000"}))
    assert harness.node.replicas.partition("orders", 0).log.config.retention_ms == 1000


def test_validate_only_creates_nothing(harness):
    (result,) = create(harness, topic(num_partitions=3), validate_only=True)
    assert (result.error_code, result.num_partitions) == (0, 3)
    assert harness.node.image.topic("orders") is None


def test_a_topic_that_exists_is_told_so(harness):
    harness.create_topic("orders")
    (result,) = create(harness, topic())
    assert result.error_code == TopicExistsError.code


@pytest.mark.parametrize("name", ["", ".", "..", "white space", "slash/", "x" * 250])
def test_an_illegal_name_is_refused(harness, name):
    assert refused(harness, topic(name)).error_code == InvalidTopicError.code


def test_the_name_of_the_metadata_log_is_taken(harness):
    result = refused(harness, topic("__cluster_metadata"))
    assert result.error_code == InvalidRequestError.code


def test_names_that_differ_in_dots_and_underscores_alone_collide(harness):
    create(harness, topic("a.b"))
    assert refused(harness, topic("a_b")).error_code == InvalidTopicError.code


def test_names_that_collide_within_one_request_do_so_too(harness):
    first, second = create(harness, topic("a.b"), topic("a_b"))
    assert (first.error_code, second.error_code) == (0, InvalidTopicError.code)


def test_a_name_twice_in_one_request_is_refused_and_the_others_are_not(harness):
    results = {one.name: one for one in create(harness, topic("a"), topic("b"), topic("a"))}
    assert results["a"].error_code == InvalidRequestError.code
    assert results["b"].error_code == 0
    assert harness.node.image.topic("a") is None


@pytest.mark.parametrize("count", [0, -2])
def test_an_impossible_number_of_partitions_is_refused(harness, count):
    assert refused(harness, topic(num_partitions=count)).error_code == InvalidPartitionsError.code


@pytest.mark.parametrize("factor", [0, 2, -2])
def test_an_impossible_replication_factor_is_refused(harness, factor):
    result = refused(harness, topic(replication_factor=factor))
    assert result.error_code == InvalidReplicationFactorError.code


@pytest.mark.parametrize(
    "configs",
    [
        {"no.such.key": "1"},
        {"retention.ms": "soon"},
        {"retention.ms": None},
        {"min.compaction.lag.ms": "2", "max.compaction.lag.ms": "1"},
    ],
)
def test_a_wrong_configuration_is_refused_by_name(harness, configs):
    result = refused(harness, topic(configs=configs))
    assert result.error_code == InvalidConfigurationError.code
    assert next(iter(configs)) in result.error_message
    assert result.configs == []


def assigned(*assignments: list[int], first: int = 0, **fields: Any) -> CreatableTopic:
    return topic(
        **{"num_partitions": -1, "replication_factor": -1, **fields},
        assignments=[
            CreatableReplicaAssignment(partition_index=first + index, broker_ids=brokers)
            for index, brokers in enumerate(assignments)
        ],
    )


def test_partitions_can_be_assigned_by_hand(harness):
    (result,) = create(harness, assigned([1], [1]))
    assert (result.error_code, result.num_partitions) == (0, 2)


def test_a_partition_assigned_twice_is_refused(harness):
    twice = assigned([1], [1])
    twice.assignments[1].partition_index = 0
    assert refused(harness, twice).error_code == InvalidReplicaAssignmentError.code


@pytest.mark.parametrize("brokers", [[2], [], [1, 1]])
def test_an_assignment_to_nobody_or_a_stranger_is_refused(harness, brokers):
    result = refused(harness, assigned(brokers))
    assert result.error_code == InvalidReplicaAssignmentError.code


def test_assignments_must_be_of_partitions_from_0_on(harness):
    result = refused(harness, assigned([1], first=1))
    assert result.error_code == InvalidReplicaAssignmentError.code


def test_counts_and_assignments_exclude_each_other(harness):
    result = refused(harness, assigned([1], num_partitions=1))
    assert result.error_code == InvalidRequestError.code


def test_more_partitions_than_one_request_may_make_are_refused_with_the_rest(harness):
    many = [topic(name=f"orders-{index}", num_partitions=5000) for index in range(2)]
    results = create(harness, *many, topic(name="payments", num_partitions=1))
    assert {result.error_code for result in results} == {PolicyViolationError.code}
    assert list(harness.node.image.topics()) == []
    assert {result.error_code for result in create(harness, *many)} == {0}
