"""Which topics are asked about, and what is said when they cannot be read."""

import re

import pytest

from pyclient.consumer.partition_state import OffsetReset
from pyclient.consumer.subscription_state import SubscriptionState
from pyclient.consumer.topic_interest import TopicInterest
from pyclient.errors import TopicAuthorizationError, UnknownTopicOrPartitionError
from pyclient.types import TopicPartition
from tests.support.consumer_parts import FakeCluster, new_inbox


class World:
    def __init__(self, *, exclude_internal=True):
        self.subscription = SubscriptionState(OffsetReset.LATEST)
        self.cluster = FakeCluster()
        self.inbox = new_inbox()
        self.interest = TopicInterest(self.subscription, self.cluster, self.inbox, exclude_internal)


def test_topics_that_are_subscribed_to_are_asked_about():
    world = World()
    world.subscription.subscribe_topics(["orders"], None)
    world.interest.refresh()
    assert world.cluster.topics == {"orders"}
    assert world.interest.is_resolved()


def test_topics_of_assigned_partitions_are_asked_about():
    world = World()
    world.subscription.assign_from_user([TopicPartition("orders", 1)])
    world.interest.refresh()
    assert world.cluster.topics == {"orders"}


def test_a_leader_asks_about_the_topics_of_others_too():
    world = World()
    world.subscription.subscribe_topics(["orders"], None)
    world.interest.add_others(["bills"])
    assert world.cluster.topics == {"orders", "bills"}
    world.interest.add_others(())
    assert world.cluster.topics == {"orders"}


@pytest.mark.parametrize(
    ("exclude_internal", "expected"),
    [(True, {"offers"}), (False, {"offers", "offsets"})],
)
def test_a_pattern_asks_about_all_topics_and_keeps_those_that_match(exclude_internal, expected):
    world = World(exclude_internal=exclude_internal)
    world.cluster.describe({"offline": [1]})
    world.subscription.subscribe_pattern(re.compile("off[^l]"), None)
    world.interest.refresh()
    assert world.cluster.topics is None
    assert not world.interest.is_resolved()  # what is known is not all there is
    snapshot = world.cluster.describe(
        {"offers": [1], "offsets": [1], "other": [1]}, internal={"offsets"}
    )
    assert world.interest.on_metadata(snapshot)
    assert world.interest.is_resolved()
    assert world.subscription.topics == expected
    assert not world.interest.on_metadata(snapshot)


def test_a_topic_that_does_not_exist_is_said_once(caplog):
    world = World()
    world.subscription.subscribe_topics(["ordres"], None)
    missing = {"ordres": UnknownTopicOrPartitionError}
    for _ in range(2):
        world.interest.on_metadata(world.cluster.describe({}, errors=missing))
    assert len(caplog.records) == 1
    assert "'ordres'" in caplog.text
    assert "create the topic" in caplog.text
    world.interest.on_metadata(world.cluster.describe({"ordres": [1]}))
    world.interest.on_metadata(world.cluster.describe({}, errors=missing))
    assert len(caplog.records) == 2


def test_a_topic_that_may_not_be_read_is_raised_once():
    world = World()
    world.subscription.subscribe_topics(["secret"], None)
    refused = {"secret": TopicAuthorizationError}
    for _ in range(2):
        world.interest.on_metadata(world.cluster.describe({}, errors=refused))
    with pytest.raises(TopicAuthorizationError, match="secret"):
        world.inbox.run()
    world.inbox.run()
