"""Admin APIs with little to do on a single node: elections, reassignments, quorum, features.

`tests/interop/test_answers_as_in_apache_kafka.py` compares the answers with Apache Kafka's.
"""

import os

import pytest

from pyclient.error_codes import (
    ElectionNotNeededError,
    InvalidReplicaAssignmentError,
    InvalidRequestError,
    InvalidUpdateVersionError,
    LogDirNotFoundError,
    NoReassignmentInProgressError,
    UnknownTopicOrPartitionError,
    UnsupportedVersionError,
)
from pyclient.protocol.messages.alter_partition_reassignments import (
    AlterPartitionReassignmentsRequest,
    ReassignablePartition,
    ReassignableTopic,
)
from pyclient.protocol.messages.alter_replica_log_dirs import (
    AlterReplicaLogDir,
    AlterReplicaLogDirsRequest,
    AlterReplicaLogDirTopic,
)
from pyclient.protocol.messages.describe_quorum import (
    DescribeQuorumRequest,
    PartitionData,
    TopicData,
)
from pyclient.protocol.messages.elect_leaders import ElectLeadersRequest, TopicPartitions
from pyclient.protocol.messages.list_config_resources import ListConfigResourcesRequest
from pyclient.protocol.messages.list_partition_reassignments import (
    ListPartitionReassignmentsRequest,
)
from pyclient.protocol.messages.update_features import FeatureUpdateKey, UpdateFeaturesRequest
from tests.support.node_harness import NodeHarness

NEEDLESS = ElectionNotNeededError.code
UNKNOWN = UnknownTopicOrPartitionError.code


@pytest.fixture
def harness(tmp_path):
    folders = [tmp_path / "a", tmp_path / "b"]
    for folder in folders:
        folder.mkdir()
    made = NodeHarness(*folders)
    made.create_topic("orders", partitions=2)
    yield made
    made.node.abandon()


@pytest.mark.parametrize("version", range(3))
def test_no_partition_needs_a_leader(harness, version):
    asked = [TopicPartitions(topic="orders", partitions=[0, 7])]
    asked.append(TopicPartitions(topic="none", partitions=[0]))
    response = harness.ask(ElectLeadersRequest(topic_partitions=asked), version)
    orders, none = response.replica_election_results
    assert [one.error_code for one in orders.partition_result] == [NEEDLESS, UNKNOWN]
    assert [one.error_code for one in none.partition_result] == [UNKNOWN]
    assert response.error_code == 0


def test_an_election_of_all_leaves_out_what_needs_none(harness):
    response = harness.ask(ElectLeadersRequest(topic_partitions=None), 2)
    (orders,) = response.replica_election_results
    assert (orders.topic, orders.partition_result) == ("orders", [])


def test_an_unknown_kind_of_election_is_refused_throughout(harness):
    asked = [TopicPartitions(topic="orders", partitions=[0])]
    response = harness.ask(ElectLeadersRequest(election_type=5, topic_partitions=asked), 2)
    assert response.error_code == InvalidRequestError.code
    (result,) = response.replica_election_results[0].partition_result
    assert result.error_message == "Unknown election type 5"


@pytest.mark.parametrize(
    ("replicas", "error"),
    [
        ([1], None),
        ([1, 1], InvalidReplicaAssignmentError),
        ([2], InvalidReplicaAssignmentError),
        ([], InvalidReplicaAssignmentError),
        (None, NoReassignmentInProgressError),
    ],
)
def test_a_partition_moves_only_to_where_it_is(harness, replicas, error):
    moved = ReassignablePartition(partition_index=1, replicas=replicas)
    request = AlterPartitionReassignmentsRequest(
        topics=[ReassignableTopic(name="orders", partitions=[moved])]
    )
    (topic,) = harness.ask(request, 1).responses
    assert topic.partitions[0].error_code == (error.code if error else 0)
    assert harness.ask(ListPartitionReassignmentsRequest(), 0).topics == []


def test_a_partition_stays_in_its_folder(harness):
    def codes(path: str) -> list[int]:
        topic = AlterReplicaLogDirTopic(name="orders", partitions=[0, 7])
        request = AlterReplicaLogDirsRequest(dirs=[AlterReplicaLogDir(path=path, topics=[topic])])
        (result,) = harness.ask(request, 2).results
        return [one.error_code for one in result.partitions]

    partition = harness.node.replicas.partition("orders", 0)
    own = os.path.dirname(partition.log.folder)
    (other,) = {*harness.log_dirs} - {own}
    assert codes(own) == [0, UNKNOWN]
    assert codes(other) == [InvalidRequestError.code, UNKNOWN]
    assert codes("/none") == [LogDirNotFoundError.code] * 2


def test_the_quorum_is_this_node(harness):
    partition = PartitionData(partition_index=0)
    topic = TopicData(topic_name="__cluster_metadata", partitions=[partition])
    response = harness.ask(DescribeQuorumRequest(topics=[topic]), 2)
    (described,) = response.topics[0].partitions
    (voter,) = described.current_voters
    assert described.leader_id == voter.replica_id == response.nodes[0].node_id == 1
    assert described.high_watermark == voter.log_end_offset > 0
    assert voter.last_caught_up_timestamp == harness.clock.now_ms()


def test_other_quorums_are_unknown(harness):
    topic = TopicData(topic_name="orders", partitions=[PartitionData(partition_index=0)])
    response = harness.ask(DescribeQuorumRequest(topics=[topic]), 2)
    assert response.topics[0].partitions[0].error_code == UNKNOWN


@pytest.mark.parametrize("version", range(3))
@pytest.mark.parametrize(
    ("feature", "level", "words"),
    [
        ("metadata.version", 30, None),
        ("metadata.version", 29, "only supports versions 30-30"),
        ("transaction.version", 2, None),
        ("transaction.version", 1, "The option transaction.version"),
        ("transaction.version", 3, "only supports versions 0-2"),
        ("group.version", 1, "does not support this feature"),
        ("metadata.version", -1, "cannot be less than 0"),
    ],
)
def test_features_keep_their_levels(harness, version, feature, level, words):
    update = FeatureUpdateKey(feature=feature, max_version_level=level)
    response = harness.ask(UpdateFeaturesRequest(feature_updates=[update]), version)
    if words is None:
        assert response.error_code == 0
    else:
        assert response.error_code == InvalidUpdateVersionError.code
        assert words in response.error_message


def test_brokers_and_topics_have_configurations(harness):
    def listed(*types: int) -> list[tuple[int, str]]:
        request = ListConfigResourcesRequest(resource_types=list(types))
        resources = harness.ask(request, 1).config_resources
        return [(one.resource_type, one.resource_name) for one in resources]

    assert listed() == listed(2, 4) == [(4, "1"), (2, "orders")]
    assert listed(2) == [(2, "orders")]
    assert listed(8) == listed(16) == listed(32) == []
    refused = harness.ask(ListConfigResourcesRequest(resource_types=[3]), 1)
    assert refused.error_code == UnsupportedVersionError.code
    assert harness.ask(ListConfigResourcesRequest(), 0).config_resources == []
