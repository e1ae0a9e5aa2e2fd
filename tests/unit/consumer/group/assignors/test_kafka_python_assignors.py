"""Assignors of kafka-python programs: the library's classes, and custom ones."""

import struct

import pytest
from kafka.coordinator.assignors.cooperative_sticky import CooperativeStickyAssignor
from kafka.coordinator.assignors.range import RangePartitionAssignor
from kafka.coordinator.assignors.roundrobin import RoundRobinPartitionAssignor
from kafka.coordinator.assignors.sticky.sticky_assignor import StickyPartitionAssignor

from pyclient.consumer.group.assignors import (
    Assignment,
    MemberSubscription,
    RebalanceProtocol,
    configured_assignors,
)
from pyclient.consumer.group.assignors.kafka_python import KafkaPythonAssignor
from pyclient.errors import KafkaError
from pyclient.metadata import ClusterMetadata, TopicMetadata
from pyclient.types import BrokerMetadata, PartitionMetadata, TopicPartition

TOPICS = {"a": [frozenset()] * 3, "b": [frozenset()] * 2}
MEMBERS = {
    "m1": MemberSubscription(("a", "b"), group_instance_id="i1"),
    "m2": MemberSubscription(("a",)),
}


def adapted(assignor):
    (found,) = configured_assignors([assignor])
    assert isinstance(found, KafkaPythonAssignor)
    return found


def decide(assignor, members=None):
    assignment = assignor.assign(TOPICS, members or MEMBERS)
    return {name: one.topic_partitions() for name, one in assignment.items()}


class Encoded:
    """What assignors of version 2 return: a struct with its own encoding."""

    def __init__(self, version, topics, user_data):
        self.topics, self.user_data = topics, user_data
        self.version = version

    def encode(self):
        data = struct.pack(">hi", self.version, len(self.topics))
        for entry in self.topics:
            topic, numbers = entry if isinstance(entry, tuple) else (entry, None)
            data += struct.pack(">h", len(topic)) + topic.encode()
            if numbers is not None:
                data += struct.pack(f">i{len(numbers)}i", len(numbers), *numbers)
        return data + struct.pack(">i", len(self.user_data)) + self.user_data


class VersionTwo:
    """Assigns all to the first member, with version 2's return type."""

    name = "first"
    version = 0
    told = ()

    @classmethod
    def assign(cls, cluster, members):
        everything = [
            (topic, sorted(cluster.partitions_for_topic(topic)))
            for topic in sorted({t for one in members.values() for t in one.subscription})
            if cluster.partitions_for_topic(topic) is not None
        ]
        first = min(members)
        return {
            member_id: Encoded(cls.version, everything if member_id == first else [], b"hello")
            for member_id in members
        }

    @classmethod
    def metadata(cls, topics):
        return Encoded(cls.version, list(topics), b"mine")

    @classmethod
    def on_assignment(cls, assignment):
        cls.told = assignment.partitions()


@pytest.mark.parametrize("given", [VersionTwo, VersionTwo()])
def test_an_assignor_of_version_2_decides(given):
    assignor = adapted(given)
    assert assignor.name == "first"
    assert assignor.supported_protocols() == (RebalanceProtocol.EAGER,)
    members = {**MEMBERS, "m3": MemberSubscription(("missing",))}
    assignments = assignor.assign(TOPICS, members)
    assert len(assignments["m1"].topic_partitions()) == 5
    assert assignments["m2"] == Assignment({}, b"hello")
    assert set(map(type, assignments)) == {str}


def test_an_assignor_of_version_2_tells_and_is_told():
    assignor = adapted(VersionTwo)
    assert assignor.subscription_user_data(frozenset({"a"})) == b"mine"
    assignor.on_assignment(Assignment({"a": [0, 2]}), 7)
    assert VersionTwo.told == [TopicPartition("a", 0), TopicPartition("a", 2)]


@pytest.mark.parametrize(
    ("theirs", "expected"),
    [
        (RangePartitionAssignor, {"m1": ["a0", "a1", "b0"], "m2": ["a2", "b1"]}),
        (RoundRobinPartitionAssignor, {"m1": ["a0", "a2", "b1"], "m2": ["a1", "b0"]}),
    ],
)
def test_kafka_pythons_assignors_decide_as_there(theirs, expected):
    members = {"m1": MEMBERS["m1"], "m2": MemberSubscription(("a", "b"))}
    decided = decide(adapted(theirs), members)
    assert {m: [f"{t}{n}" for t, n in found] for m, found in decided.items()} == expected


@pytest.mark.parametrize("theirs", [StickyPartitionAssignor, StickyPartitionAssignor()])
def test_kafka_pythons_sticky_assignor_keeps_what_was_assigned(theirs):
    assignor = adapted(theirs)
    assert assignor.subscription_user_data(frozenset(TOPICS)) == b""
    first = assignor.assign(TOPICS, dict.fromkeys(("m1", "m2"), MemberSubscription(("a", "b"))))
    members = {}
    for name, assignment in first.items():
        assignor.on_assignment(assignment, 4)
        user_data = assignor.subscription_user_data(frozenset(TOPICS))
        members[name] = MemberSubscription(("a", "b"), user_data=user_data)
    again = decide(assignor, members)
    assert again == {name: one.topic_partitions() for name, one in first.items()}


def test_kafka_pythons_cooperative_assignor_withholds_what_is_owned():
    assignor = adapted(CooperativeStickyAssignor)
    assert assignor.supported_protocols() == (RebalanceProtocol.COOPERATIVE,)
    members = {
        "m1": MemberSubscription(("a",), owned_partitions={"a": (0, 1, 2)}, generation_id=3),
        "m2": MemberSubscription(("a",)),
    }
    decided = decide(assignor, members)
    assert len(decided["m1"]) == 2
    assert decided["m2"] == []


def test_the_cluster_tells_what_kafka_pythons_does():
    seen = []

    class Curious(VersionTwo):
        @classmethod
        def assign(cls, cluster, members):
            seen.append(cluster)
            return {}

    def partition(number, leader):
        return PartitionMetadata("a", number, leader, 5, (1, 2), (1,), ())

    snapshot = ClusterMetadata(
        brokers={1: BrokerMetadata(1, "h", 9092, "r1")},
        topics={
            "a": TopicMetadata("a", bytes(16), False, (partition(0, 1), partition(1, -1)), (0,)),
            "unread": TopicMetadata("unread", bytes(16), False, (), ()),
        },
    )
    assert adapted(Curious).assign_from(snapshot, MEMBERS) == {}
    (cluster,) = seen
    assert cluster.topics() == {"a"}
    assert cluster.partitions_for_topic("a") == {0, 1}
    assert cluster.partitions_for_topic("b") is None
    assert cluster.available_partitions_for_topic("a") == {0}
    assert cluster.available_partitions_for_topic("b") is None
    assert cluster.leader_for_partition(TopicPartition("a", 0)) == 1
    assert cluster.leader_for_partition(TopicPartition("a", 1)) == -1
    assert cluster.leader_for_partition(TopicPartition("a", 2)) is None
    assert cluster.leader_epoch_for_partition(TopicPartition("a", 1)) == 5
    assert cluster.partitions_for_broker(1) == {("a", 0)}
    assert {one.node_id for one in cluster.brokers()} == {1}
    assert cluster.broker_metadata(1).rack == "r1"
    assert cluster.broker_metadata(2) is None


def test_what_does_not_encode_is_named():
    class Odd(VersionTwo):
        @classmethod
        def metadata(cls, topics):
            return "text"

    with pytest.raises(KafkaError, match="'first' returned 'text'"):
        adapted(Odd).subscription_user_data(frozenset({"a"}))
