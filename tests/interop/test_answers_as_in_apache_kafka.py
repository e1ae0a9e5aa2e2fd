"""The same requests to our broker and to Apache Kafka: the same answers, texts included.

Ids, addresses, times and the order of results may differ; every other field is compared.
"""

import time
from collections.abc import Iterator, Sequence
from pathlib import Path
from typing import Any

import pytest

from broker_stub import Broker
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
from pyclient.protocol.messages.create_partitions import (
    CreatePartitionsAssignment,
    CreatePartitionsRequest,
    CreatePartitionsTopic,
)
from pyclient.protocol.messages.create_topics import (
    CreatableReplicaAssignment,
    CreatableTopic,
    CreatableTopicConfig,
    CreateTopicsRequest,
)
from pyclient.protocol.messages.delete_records import (
    DeleteRecordsPartition,
    DeleteRecordsRequest,
    DeleteRecordsTopic,
)
from pyclient.protocol.messages.delete_topics import DeleteTopicsRequest, DeleteTopicState
from pyclient.protocol.messages.describe_acls import DescribeAclsRequest
from pyclient.protocol.messages.describe_cluster import DescribeClusterRequest
from pyclient.protocol.messages.describe_configs import (
    DescribeConfigsRequest,
    DescribeConfigsResource,
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
    ListPartitionReassignmentsTopics,
)
from pyclient.protocol.messages.metadata import MetadataRequest, MetadataRequestTopic
from pyclient.protocol.messages.update_features import FeatureUpdateKey, UpdateFeaturesRequest
from pyclient.protocol.primitives import ZERO_UUID
from pyclient.protocol.schema import Message, Struct
from tests.integration.broker_stub.raw_client import RawClient
from tests.interop.answer_cases import CONFIG_CHANGES, NEW_TOPICS, OTHER_CONFIG_CHANGES

TOPIC, BROKER = 2, 4
ANY = "any"  # what may differ
UUID = bytes(range(16))

# Fields that hold ids, addresses and times.
_MAY_DIFFER = {
    "cluster_id",
    "configs",  # compared option by option elsewhere
    "high_watermark",
    "host",
    "last_caught_up_timestamp",
    "last_fetch_timestamp",
    "leader_epoch",
    "listeners",
    "log_end_offset",
    "port",
}


def told(value: Any) -> Any:
    """A response as plain data, without what may differ."""
    if isinstance(value, Struct):
        return {
            one.name: ANY if one.name in _MAY_DIFFER else told(getattr(value, one.name))
            for one in type(value).fields
        }
    if isinstance(value, list):
        return sorted((told(one) for one in value), key=repr)
    if isinstance(value, bytes) and value not in (ZERO_UUID, UUID):
        return ANY
    return value


class Peer:
    """A broker under comparison, and its only log folder."""

    def __init__(self, port: int, folder: Path) -> None:
        self._port = port
        self.folder = str(folder)

    def ask(self, request: Message, version: int) -> Any:
        """What it answers, without what may differ."""
        return told(self.response(request, version))

    def response(self, request: Message, version: int) -> Any:
        """The response itself, over a connection of its own: a hang-up fails one test only."""
        with RawClient(self._port) as client:
            return client.ask(request, version)

    def create(self, *topics: CreatableTopic) -> None:
        """Make topics, and wait until they are there: in Apache Kafka that takes a moment."""
        self.response(CreateTopicsRequest(topics=list(topics), timeout_ms=30_000), 7)
        for topic in topics:
            asked = [MetadataRequestTopic(name=topic.name)]
            request = MetadataRequest(topics=asked, allow_auto_topic_creation=False)
            deadline = time.monotonic() + 20
            while self.response(request, 12).topics[0].error_code:
                assert time.monotonic() < deadline, topic.name


@pytest.fixture(scope="module")
def peers(apache, tmp_path_factory) -> Iterator[tuple[Peer, Peer]]:
    folder = tmp_path_factory.mktemp("ours")
    with Broker(folder) as broker:
        yield Peer(broker.port, folder), Peer(apache.port, apache.folder / "data")


@pytest.fixture(autouse=True)
def _topics(peers) -> None:
    for peer in peers:
        peer.create(
            new_topic("answers.two", partitions=2),
            new_topic("answers.compacted", {"cleanup.policy": "compact"}),
        )


def new_topic(
    name: str,
    configs: dict[str, str | None] | None = None,
    *,
    partitions: int = 1,
    replicas: int = 1,
    assignments: Sequence[tuple[int, list[int]]] = (),
) -> CreatableTopic:
    return CreatableTopic(
        name=name,
        num_partitions=partitions,
        replication_factor=replicas,
        assignments=[
            CreatableReplicaAssignment(partition_index=index, broker_ids=brokers)
            for index, brokers in assignments
        ],
        configs=[
            CreatableTopicConfig(name=option, value=value)
            for option, value in (configs or {}).items()
        ],
    )


def same_answer(peers: tuple[Peer, Peer], request: Message, version: int) -> Any:
    ours, theirs = (peer.ask(request, version) for peer in peers)
    assert ours == theirs
    return ours


@pytest.mark.parametrize("wanted", NEW_TOPICS, ids=str)
def test_create_topics(peers, wanted):
    topic = new_topic(**wanted)
    request = CreateTopicsRequest(topics=[topic], timeout_ms=30_000, validate_only=True)
    answer = same_answer(peers, request, 7)
    assert answer["topics"][0]["error_code"]


def test_create_topics_with_a_name_twice_or_too_many_partitions(peers):
    twice = CreateTopicsRequest(topics=[new_topic("answers.x")] * 2, timeout_ms=30_000)
    same_answer(peers, twice, 7)
    many = CreateTopicsRequest(topics=[new_topic("answers.x", partitions=10_001)])
    same_answer(peers, many, 7)


@pytest.mark.parametrize(
    "topics",
    [
        [DeleteTopicState(name="none")],
        [DeleteTopicState(name="")],
        [DeleteTopicState(name="none")] * 2,
        [DeleteTopicState(name="answers.two")] * 2,
        [DeleteTopicState(name=None, topic_id=UUID)],
        [DeleteTopicState(name="answers.two", topic_id=UUID)],
        [DeleteTopicState(name=None)],
    ],
    ids=repr,
)
def test_delete_topics(peers, topics):
    answer = same_answer(peers, DeleteTopicsRequest(topics=topics, timeout_ms=30_000), 6)
    assert answer["responses"][0]["error_code"]


@pytest.mark.parametrize(
    ("name", "count", "assignments"),
    [
        ("answers.two", 2, None),
        ("answers.two", 1, None),
        ("answers.two", -1, None),
        ("none", 2, None),
        ("", 2, None),
        ("answers.two", 3, []),
        ("answers.two", 3, [[1], [1]]),
        ("answers.two", 3, [[9]]),
        ("answers.two", 3, [[1, 1]]),
        ("answers.two", 3, [[]]),
        ("answers.two", 3, [[1]]),
    ],
)
def test_create_partitions(peers, name, count, assignments):
    placed = None
    if assignments is not None:
        placed = [CreatePartitionsAssignment(broker_ids=one) for one in assignments]
    wanted = CreatePartitionsTopic(name=name, count=count, assignments=placed)
    request = CreatePartitionsRequest(topics=[wanted], timeout_ms=30_000, validate_only=True)
    same_answer(peers, request, 3)


@pytest.mark.parametrize("request_of", [*CONFIG_CHANGES, *OTHER_CONFIG_CHANGES], ids=str)
def test_changes_of_configurations(peers, request_of):
    same_answer(peers, *request_of.request())


@pytest.mark.parametrize(
    ("kind", "name"),
    [(TOPIC, "none"), (TOPIC, ""), (TOPIC, "a b"), (BROKER, "9"), (BROKER, "x"), (BROKER, "1")],
)
def test_describe_configs(peers, kind, name):
    resource = DescribeConfigsResource(
        resource_type=kind, resource_name=name, configuration_keys=["compression.type"]
    )
    same_answer(peers, DescribeConfigsRequest(resources=[resource]), 4)


@pytest.mark.parametrize(
    ("kind", "name"), [(TOPIC, "answers.two"), (BROKER, "1"), (BROKER, "")], ids=str
)
def test_min_insync_replicas_is_shown_as_set_for_the_cluster(peers, kind, name):
    resource = DescribeConfigsResource(
        resource_type=kind, resource_name=name, configuration_keys=["min.insync.replicas"]
    )
    request = DescribeConfigsRequest(resources=[resource], include_synonyms=True)
    ours, theirs = (peer.response(request, 4).results[0].configs for peer in peers)
    assert ours == theirs
    assert ours[0].config_source == 3


@pytest.mark.parametrize(
    ("name", "index", "offset"),
    [
        ("answers.two", 0, -1),
        ("answers.two", 0, 5),
        ("answers.two", 0, -2),
        ("answers.two", 7, 0),
        ("none", 0, 0),
        ("answers.compacted", 0, 0),
    ],
)
def test_delete_records(peers, name, index, offset):
    partition = DeleteRecordsPartition(partition_index=index, offset=offset)
    topic = DeleteRecordsTopic(name=name, partitions=[partition])
    same_answer(peers, DeleteRecordsRequest(topics=[topic], timeout_ms=30_000), 2)


@pytest.mark.parametrize("types", [[4], [16], [32], [3], [0], [64], [2, 3], [4, 4]], ids=str)
def test_list_config_resources(peers, types):
    same_answer(peers, ListConfigResourcesRequest(resource_types=types), 1)


def test_list_config_resources_of_version_0_knows_client_metrics_only(peers):
    answer = same_answer(peers, ListConfigResourcesRequest(), 0)
    assert answer["config_resources"] == []


@pytest.mark.parametrize("types", [[], [2], [2, 4]], ids=str)
def test_list_config_resources_lists_topics(peers, types):
    """All but the loggers, which can't be described here."""
    for peer in peers:
        listed = peer.ask(ListConfigResourcesRequest(resource_types=types), 1)["config_resources"]
        assert {"resource_name": "answers.two", "resource_type": TOPIC} in listed
        assert ({"resource_name": "1", "resource_type": BROKER} in listed) == (types != [2])


@pytest.mark.parametrize("version", range(3))
def test_describe_quorum(peers, version):
    topic = TopicData(
        topic_name="__cluster_metadata", partitions=[PartitionData(partition_index=0)]
    )
    answer = same_answer(peers, DescribeQuorumRequest(topics=[topic]), version)
    (partition,) = answer["topics"][0]["partitions"]
    assert [voter["replica_id"] for voter in partition["current_voters"]] == [1]


@pytest.mark.parametrize(
    ("name", "indexes"), [("x", [0]), ("__cluster_metadata", [1]), ("__cluster_metadata", [0, 1])]
)
def test_describe_quorum_of_something_else(peers, name, indexes):
    partitions = [PartitionData(partition_index=index) for index in indexes]
    topic = TopicData(topic_name=name, partitions=partitions)
    same_answer(peers, DescribeQuorumRequest(topics=[topic]), 2)


@pytest.mark.parametrize("version", range(3))
@pytest.mark.parametrize(
    ("feature", "level", "upgrade_type"),
    [
        ("metadata.version", 30, 1),
        ("nope", 1, 1),
        ("", 1, 1),
        ("nope", -1, 1),
    ],
)
def test_update_features(peers, version, feature, level, upgrade_type):
    update = FeatureUpdateKey(feature=feature, max_version_level=level, upgrade_type=upgrade_type)
    request = UpdateFeaturesRequest(feature_updates=[update])
    same_answer(peers, request, version)


@pytest.mark.parametrize("upgrade_type", [0, 9])
def test_update_features_in_an_unknown_way(peers, upgrade_type):
    update = FeatureUpdateKey(
        feature="metadata.version", max_version_level=30, upgrade_type=upgrade_type
    )
    request = UpdateFeaturesRequest(feature_updates=[update], validate_only=True)
    answer = same_answer(peers, request, 2)
    assert "upgrade type" in answer["error_message"]


@pytest.mark.parametrize("version", range(3))
@pytest.mark.parametrize(
    ("election_type", "name", "indexes"),
    [
        (0, "answers.two", [0, 1]),
        (0, "answers.two", [5]),
        (0, "answers.two", []),
        (0, "none", [0]),
        (1, "answers.two", [0]),
        (5, "answers.two", [0]),
    ],
)
def test_elect_leaders(peers, version, election_type, name, indexes):
    if election_type and not version:
        pytest.skip("version 0 has preferred elections only")
    request = ElectLeadersRequest(
        election_type=election_type,
        topic_partitions=[TopicPartitions(topic=name, partitions=indexes)],
    )
    same_answer(peers, request, version)


@pytest.mark.parametrize("election_type", [0, 1])
def test_elect_leaders_of_all_partitions_names_their_topics_only(peers, election_type):
    request = ElectLeadersRequest(election_type=election_type, topic_partitions=None)
    for peer in peers:
        answer = peer.ask(request, 2)
        assert {"topic": "answers.two", "partition_result": []} in answer[
            "replica_election_results"
        ]


@pytest.mark.parametrize("version", range(2))
@pytest.mark.parametrize(
    ("name", "index", "replicas"),
    [
        ("answers.two", 0, [1]),
        ("answers.two", 0, None),
        ("answers.two", 0, []),
        ("answers.two", 0, [1, 1]),
        ("answers.two", 0, [1, 2]),
        ("answers.two", 0, [-1]),
        ("answers.two", 5, [1]),
        ("none", 0, [1]),
        ("none", 0, None),
    ],
)
def test_alter_partition_reassignments(peers, version, name, index, replicas):
    partition = ReassignablePartition(partition_index=index, replicas=replicas)
    topic = ReassignableTopic(name=name, partitions=[partition])
    same_answer(peers, AlterPartitionReassignmentsRequest(topics=[topic]), version)


@pytest.mark.parametrize("name", [None, "answers.two", "none"])
def test_list_partition_reassignments(peers, name):
    topics = name and [ListPartitionReassignmentsTopics(name=name, partition_indexes=[0])]
    answer = same_answer(peers, ListPartitionReassignmentsRequest(topics=topics), 0)
    assert answer["topics"] == []


@pytest.mark.parametrize("version", [1, 2])
@pytest.mark.parametrize(
    ("name", "indexes", "folder"),
    [
        ("answers.two", [0, 1], None),
        ("answers.two", [7], None),
        ("none", [0], None),
        ("answers.two", [0], "/none"),
        ("answers.two", [0], "relative"),
        ("answers.two", [0], ""),
    ],
)
def test_alter_replica_log_dirs(peers, version, name, indexes, folder):
    def request(peer: Peer) -> AlterReplicaLogDirsRequest:
        topic = AlterReplicaLogDirTopic(name=name, partitions=indexes)
        path = peer.folder if folder is None else folder
        return AlterReplicaLogDirsRequest(dirs=[AlterReplicaLogDir(path=path, topics=[topic])])

    ours, theirs = (peer.ask(request(peer), version) for peer in peers)
    assert ours == theirs


@pytest.mark.parametrize("endpoint_type", [1, 2, 3])
def test_describe_cluster(peers, endpoint_type):
    same_answer(peers, DescribeClusterRequest(endpoint_type=endpoint_type), 2)


def test_describe_acls(peers):
    everything = DescribeAclsRequest(
        resource_type_filter=1,
        resource_name_filter=None,
        pattern_type_filter=1,
        principal_filter=None,
        host_filter=None,
        operation=1,
        permission_type=1,
    )
    same_answer(peers, everything, 3)
