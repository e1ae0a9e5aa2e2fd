"""Snapshots of the cluster and how one follows from another."""

import pytest

from pyclient.errors import (
    InvalidTopicError,
    LeaderNotAvailableError,
    ProtocolError,
    UnknownTopicOrPartitionError,
)
from pyclient.metadata import ClusterMetadata
from pyclient.protocol.messages.metadata import (
    MetadataResponse,
    MetadataResponseBroker,
    MetadataResponsePartition,
    MetadataResponseTopic,
)
from pyclient.protocol.primitives import ZERO_UUID
from pyclient.types import BrokerMetadata, TopicPartition

ORDERS_ID = bytes(range(16))
OTHER_ID = bytes(range(16, 32))


def partition(index: int, leader: int = 1, epoch: int = 0) -> MetadataResponsePartition:
    return MetadataResponsePartition(
        partition_index=index,
        leader_id=leader,
        leader_epoch=epoch,
        replica_nodes=[1, 2],
        isr_nodes=[1],
        offline_replicas=[2],
    )


def topic(
    name: str, *partitions: MetadataResponsePartition, topic_id: bytes = ORDERS_ID, error: int = 0
) -> MetadataResponseTopic:
    return MetadataResponseTopic(
        name=name, topic_id=topic_id, partitions=list(partitions), error_code=error
    )


def response(*topics: MetadataResponseTopic) -> MetadataResponse:
    return MetadataResponse(
        cluster_id="c",
        controller_id=2,
        brokers=[
            MetadataResponseBroker(node_id=1, host="a", port=1, rack="r"),
            MetadataResponseBroker(node_id=2, host="b", port=2),
        ],
        topics=list(topics),
    )


def test_a_response_becomes_a_snapshot():
    snapshot = ClusterMetadata().updated(response(topic("orders", partition(1, -1), partition(0))))
    assert snapshot.version == 1
    assert snapshot.cluster_id == "c"
    assert snapshot.controller_id == 2
    assert snapshot.brokers == {1: BrokerMetadata(1, "a", 1, "r"), 2: BrokerMetadata(2, "b", 2)}
    assert snapshot.partitions_for_topic("orders") == (0, 1)
    assert snapshot.available_partitions_for_topic("orders") == (0,)
    assert snapshot.leader_for_partition(TopicPartition("orders", 0)) == 1
    assert snapshot.leader_for_partition(TopicPartition("orders", 1)) is None
    assert snapshot.topic_id("orders") == ORDERS_ID
    assert snapshot.topic_name(ORDERS_ID) == "orders"
    described = snapshot.partition("orders", 0)
    assert described is not None
    assert (described.replicas, described.isr, described.offline_replicas) == ((1, 2), (1,), (2,))


def test_what_is_not_known_is_said_to_be_unknown():
    snapshot = ClusterMetadata()
    assert snapshot.version == 0
    assert snapshot.partitions_for_topic("orders") is None
    assert snapshot.available_partitions_for_topic("orders") is None
    assert snapshot.partition("orders", 0) is None
    assert snapshot.leader_epoch_for_partition(TopicPartition("orders", 0)) == -1
    assert snapshot.topic_id("orders") == ZERO_UUID
    assert snapshot.topic_name(ORDERS_ID) is None


def test_partitions_out_of_range_are_not_known():
    snapshot = ClusterMetadata().updated(response(topic("orders", partition(0))))
    assert snapshot.partition("orders", 1) is None
    assert snapshot.partition("orders", -1) is None


def test_a_leader_of_an_older_epoch_is_not_believed():
    known = ClusterMetadata().updated(response(topic("orders", partition(0, leader=2, epoch=7))))
    behind = known.updated(response(topic("orders", partition(0, leader=1, epoch=6))))
    assert behind.leader_for_partition(TopicPartition("orders", 0)) == 2
    assert behind.leader_epoch_for_partition(TopicPartition("orders", 0)) == 7
    ahead = behind.updated(response(topic("orders", partition(0, leader=1, epoch=8))))
    assert ahead.leader_for_partition(TopicPartition("orders", 0)) == 1


def test_a_recreated_topic_starts_with_its_own_epochs():
    known = ClusterMetadata().updated(response(topic("orders", partition(0, leader=2, epoch=7))))
    recreated = known.updated(response(topic("orders", partition(0, epoch=0), topic_id=OTHER_ID)))
    assert recreated.leader_for_partition(TopicPartition("orders", 0)) == 1
    assert recreated.topic_name(ORDERS_ID) is None


def test_a_broker_too_old_for_epochs_is_believed():
    known = ClusterMetadata().updated(response(topic("orders", partition(0, leader=2, epoch=7))))
    old = known.updated(response(topic("orders", partition(0, leader=1, epoch=-1))))
    assert old.leader_for_partition(TopicPartition("orders", 0)) == 1


def test_a_refused_topic_is_kept_with_its_reason():
    snapshot = ClusterMetadata().updated(
        response(topic("bad name", error=17), topic("gone", error=3), topic("new", error=5))
    )
    assert not snapshot.topics
    assert snapshot.topic_errors == {
        "bad name": InvalidTopicError,
        "gone": UnknownTopicOrPartitionError,
        "new": LeaderNotAvailableError,
    }


def test_a_topic_without_partitions_is_not_there_yet():
    known = ClusterMetadata().updated(response(topic("orders", partition(0))))
    snapshot = known.updated(response(topic("orders")))
    assert not snapshot.topics
    assert snapshot.topic_errors == {"orders": LeaderNotAvailableError}
    assert LeaderNotAvailableError.retriable


def test_a_full_response_replaces_all_topics_and_a_partial_one_only_its_own():
    known = ClusterMetadata().updated(response(topic("orders", partition(0)), topic("x", error=3)))
    partial = known.updated(response(topic("x", partition(0), topic_id=OTHER_ID)), partial=True)
    assert set(partial.topics) == {"orders", "x"}
    assert not partial.topic_errors
    full = partial.updated(response(topic("x", partition(0), topic_id=OTHER_ID)))
    assert set(full.topics) == {"x"}


def test_partitions_with_gaps_are_refused():
    with pytest.raises(ProtocolError, match=r"partitions \[0, 2\] of topic 'orders'"):
        ClusterMetadata().updated(response(topic("orders", partition(0), partition(2))))


def test_a_newer_leader_named_by_a_response_is_taken_over():
    known = ClusterMetadata().updated(response(topic("orders", partition(0), partition(1, -1))))
    updated = known.with_leaders({TopicPartition("orders", 1): (3, 1)}, [BrokerMetadata(3, "c", 3)])
    assert updated.version == known.version + 1
    assert updated.leader_for_partition(TopicPartition("orders", 1)) == 3
    assert updated.available_partitions_for_topic("orders") == (0, 1)
    assert updated.brokers[3].host == "c"
    assert known.leader_for_partition(TopicPartition("orders", 1)) is None


@pytest.mark.parametrize(
    ("named", "leader"),
    [
        (TopicPartition("orders", 0), (2, 0)),  # not newer
        (TopicPartition("orders", 0), (9, 1)),  # no address
        (TopicPartition("other", 0), (2, 1)),  # not of interest
    ],
)
def test_a_leader_that_helps_nobody_changes_nothing(named, leader):
    known = ClusterMetadata().updated(response(topic("orders", partition(0))))
    assert known.with_leaders({named: leader}, []) is known


def test_topics_can_be_left_out():
    known = ClusterMetadata().updated(response(topic("orders", partition(0)), topic("x", error=3)))
    rest = known.without_topics(["orders", "x"])
    assert not rest.topics
    assert not rest.topic_errors
    assert rest.topic_name(ORDERS_ID) is None
