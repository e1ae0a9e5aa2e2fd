"""What a partition is doing, from the facts."""

import pytest

from pyclient.consumer.health.diagnosis import diagnose
from pyclient.consumer.health.fetch_watch import FetchWatch
from pyclient.consumer.partition_state import OffsetReset, PartitionFacts, PartitionOffsets
from pyclient.errors import UnknownTopicOrPartitionError
from pyclient.types import TopicPartition
from tests.support.consumer_parts import FakeCluster

P0 = TopicPartition("orders", 0)
FACTS = PartitionFacts(P0, 1, 5, 5, None, False, False, False, False, PartitionOffsets(9, 9, 0))
PATIENCE_MS = 5_500


def diagnosis(facts=FACTS, *, leaders=(1,), watch=None, coordinator=None, errors=None, now_ms=0):
    snapshot = FakeCluster().describe({"orders": leaders} if leaders else {}, errors=errors)
    if watch is None:
        watch = FetchWatch()
        watch.on_sent(1, {P0}, now_ms)
    return diagnose(facts, snapshot, watch, coordinator, now_ms, PATIENCE_MS)


@pytest.mark.parametrize(
    ("change", "state"),
    [
        ({}, "reading"),
        ({"position": 9}, "caught up"),
        ({"paused": True}, "paused"),
        ({"held": True}, "held"),
        ({"failed": True}, "failed"),
        ({"position": None}, "starting"),
        ({"position": None, "reset": OffsetReset.LATEST}, "starting"),
        ({"offsets": None}, "reading"),
    ],
)
def test_a_partitions_own_state(change, state):
    found = diagnosis(FACTS._replace(**change))
    assert found.state == state
    assert (found.reason is None) == (state in ("reading", "caught up"))


def test_a_partition_that_starts_says_that_the_coordinator_is_unknown():
    facts = FACTS._replace(position=None)
    assert diagnosis(facts, coordinator="nobody knows it").reason == "nobody knows it"


@pytest.mark.parametrize(
    ("leaders", "errors", "reason"),
    [
        ((-1,), None, "the partition has no leader"),
        ((), None, "the cluster has no topic 'orders'"),
        (
            (),
            {"orders": UnknownTopicOrPartitionError},
            "the cluster has no topic 'orders' (UnknownTopicOrPartitionError)",
        ),
    ],
)
def test_a_partition_without_a_leader_says_why(leaders, errors, reason):
    found = diagnosis(leaders=leaders, errors=errors)
    assert (found.state, found.reason) == ("leaderless", reason)


def test_a_partition_that_the_topic_does_not_have():
    facts = FACTS._replace(partition=TopicPartition("orders", 7))
    assert diagnosis(facts).reason == "topic 'orders' has no partition 7"


def test_a_fetch_that_waits_for_data_is_no_trouble_but_a_longer_one_is():
    watch = FetchWatch()
    watch.on_sent(1, {P0}, 0)
    assert diagnosis(watch=watch, now_ms=PATIENCE_MS).state == "reading"
    late = diagnosis(watch=watch, now_ms=PATIENCE_MS + 1)
    assert (late.state, late.reason) == ("waiting", "node 1 has not answered a fetch for 6 s")


def test_fetches_that_fail_say_why_until_one_is_answered():
    watch = FetchWatch()
    watch.on_sent(1, {P0}, 0)
    watch.on_failed(1, "connection refused", 10)
    assert diagnosis(watch=watch).reason == "fetches from node 1 fail: connection refused"
    watch.on_sent(1, {P0}, 20)
    assert diagnosis(watch=watch).state == "failing"
    watch.on_answered(1, 30)
    assert diagnosis(watch=watch).state == "reading"


def test_an_error_of_the_partition_lasts_until_it_has_data():
    watch = FetchWatch()
    watch.on_sent(1, {P0}, 0)
    watch.on_answered(1, 10)
    watch.on_partition(P0, "NotLeaderOrFollowerError", 10)
    assert diagnosis(watch=watch).reason.endswith("NotLeaderOrFollowerError")
    assert watch.answered_at_ms(P0) is None
    watch.on_partition(P0, None, 20)
    assert diagnosis(watch=watch).state == "reading"
    assert watch.answered_at_ms(P0) == 10


def test_a_partition_that_no_fetch_asks_for():
    watch = FetchWatch()
    assert diagnosis(watch=watch).reason == "no fetch to node 1 asks for it"
    watch.is_full = True
    assert diagnosis(watch=watch).state == "buffered"


def test_only_assigned_partitions_are_remembered():
    watch = FetchWatch()
    watch.on_partition(P0, "SomeError", 0)
    watch.keep({P0})
    assert watch.mentioned
    watch.keep(set())
    assert not watch.mentioned
    assert not watch.partition_failures
