"""Topics without a group: all partitions are this consumer's."""

import re

import pytest

from pyclient.consumer.group.solo import SoloMembership
from pyclient.consumer.partition_state import OffsetReset
from pyclient.consumer.rebalance import Rebalancer
from pyclient.consumer.subscription_state import SubscriptionState
from pyclient.consumer.topic_interest import TopicInterest
from pyclient.errors import IllegalStateError, UnknownTopicOrPartitionError
from tests.support.consumer_parts import FakeCluster, new_inbox
from tests.unit.consumer.group.conftest import Listener


class NoCommits:
    def before_revocation(self, partitions):
        return None


class World:
    def __init__(self):
        self.subscription = SubscriptionState(OffsetReset.LATEST)
        self.cluster = FakeCluster()
        self.inbox = new_inbox()
        self.listener = Listener()
        rebalancer = Rebalancer(
            self.subscription, lambda: NoCommits(), lambda step: self.member.on_step_done(step)
        )
        interest = TopicInterest(self.subscription, self.cluster, self.inbox, True)
        self.member = SoloMembership(
            self.subscription, self.cluster, interest, self.inbox, rebalancer.run
        )

    def subscribe(self, *topics):
        self.subscription.subscribe_topics(topics, self.listener)
        self.member.on_subscription()

    def describe(self, **topics):
        self.member.on_metadata(self.cluster.describe(topics))
        self.inbox.run()

    def assigned(self):
        return sorted(f"{topic}{number}" for topic, number in self.subscription.assigned())


@pytest.fixture
def world():
    return World()


def test_all_partitions_of_the_topics_are_assigned(world):
    world.subscribe("a", "b")
    assert world.cluster.topics == {"a", "b"}
    world.describe(a=[1, 1], b=[1])
    assert world.assigned() == ["a0", "a1", "b0"]
    assert world.listener.calls == [("assigned", [0, 0, 1])]


def test_new_partitions_are_added_and_the_others_go_on(world):
    world.subscribe("a")
    world.describe(a=[1])
    world.subscription.seek(next(iter(world.subscription.assigned())), 7)
    world.describe(a=[1, 1])
    assert world.assigned() == ["a0", "a1"]
    assert [offset.offset for offset in world.subscription.positions().values()] == [7]
    assert world.listener.calls[-1] == ("assigned", [1])


def test_other_topics_replace_the_first(world):
    world.subscribe("a")
    world.describe(a=[1], b=[1])
    world.subscribe("b")
    world.inbox.run()
    assert world.assigned() == ["b0"]
    assert world.listener.calls[-2:] == [("revoked", [0]), ("assigned", [0])]


def test_what_was_not_taken_yet_is_void_after_leaving(world):
    world.subscribe("a")
    world.member.on_metadata(world.cluster.describe({"a": [1]}))
    world.member.leave("enough")
    world.inbox.run()
    assert world.assigned() == []


def test_nobody_can_commit(world):
    assert isinstance(world.member.committer(), IllegalStateError)
    assert world.member.has_left()
    assert world.member.metadata().group_id is None


@pytest.mark.parametrize("topics", [{}, {"a": []}, {"a": [-1, -1]}])
def test_a_bad_metadata_answer_loses_no_position(world, topics):
    world.subscribe("a")
    world.describe(a=[1, 1])
    for partition in world.subscription.assigned():
        world.subscription.seek(partition, 7)
    if topics.get("a") == []:
        snapshot = world.cluster.describe({}, errors={"a": UnknownTopicOrPartitionError})
        world.member.on_metadata(snapshot)
        world.inbox.run()
    else:
        world.describe(**topics)
    world.describe(a=[1, 1])
    assert [offset.offset for offset in world.subscription.positions().values()] == [7, 7]


def test_a_topic_of_a_pattern_is_given_up_when_it_stays_away(world):
    world.subscription.subscribe_pattern(re.compile("a.*"), world.listener)
    world.member.on_subscription()
    for known, assigned in [("ab", ["a0", "ab0"]), (None, ["a0", "ab0"]), ("ab", ["a0", "ab0"])]:
        world.subscription.match_topics(["a", known] if known else ["a"])
        world.describe(a=[1], **({known: [1]} if known else {}))
        assert world.assigned() == assigned
    world.subscription.match_topics(["a"])
    for assigned in (["a0", "ab0"], ["a0", "ab0"], ["a0", "ab0"], ["a0"]):
        world.describe(a=[1])
        assert world.assigned() == assigned
