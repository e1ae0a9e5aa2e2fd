"""What the consumer reads, and where."""

import re

import pytest

from pyclient.consumer.partition_state import (
    OffsetReset,
    PartitionEpoch,
    PartitionOffsets,
    PositionMove,
)
from pyclient.consumer.subscription_state import SubscriptionState
from pyclient.errors import IllegalStateError
from pyclient.types import OffsetAndMetadata, TopicPartition
from tests.support.consumer_parts import NO_OFFSETS, epoch_of, started

P0, P1 = TopicPartition("orders", 0), TopicPartition("orders", 1)


@pytest.fixture
def subscription():
    return SubscriptionState(OffsetReset.LATEST)


@pytest.mark.parametrize(
    "second",
    [
        lambda state: state.subscribe_topics(["a"], None),
        lambda state: state.subscribe_pattern(re.compile("a"), None),
    ],
)
def test_topics_and_a_pattern_exclude_assigned_partitions(subscription, second):
    subscription.assign_from_user([P0])
    with pytest.raises(IllegalStateError, match=r"unsubscribe\(\) first"):
        second(subscription)


def test_after_unsubscribe_another_way_of_reading_is_possible(subscription):
    subscription.assign_from_user([P0])
    subscription.unsubscribe()
    subscription.subscribe_topics(["orders"], None)
    assert subscription.topics == {"orders"}
    assert subscription.assigned() == set()


def test_a_pattern_matches_from_the_start_of_the_name(subscription):
    subscription.subscribe_pattern(re.compile("ord"), None)
    assert subscription.match_topics(["orders", "my-orders"])
    assert subscription.topics == {"orders"}
    assert not subscription.match_topics(["orders", "my-orders"])


def test_an_assigned_partition_is_fetched_only_once_it_has_a_position(subscription):
    subscription.assign_from_user([P0])
    subscription.start()
    assert subscription.fetchable() == []
    assert subscription.start_at(subscription.to_initialize()[0], 7, 3)
    assert [target.fetch_offset for target in subscription.fetchable()] == [7]
    assert subscription.positions() == {P0: OffsetAndMetadata(7, "", 3)}


def test_a_partition_waits_for_the_first_poll_before_its_position_is_looked_up(subscription):
    subscription.assign_from_user([P0])
    assert subscription.to_initialize() == []
    assert subscription.start()
    assert [at.partition for at in subscription.to_initialize()] == [P0]
    assert not subscription.start()


def test_the_position_moves_with_what_the_program_got_and_not_with_what_was_fetched(subscription):
    started(subscription, {P0: 0})
    at = epoch_of(subscription, P0)
    assert subscription.fetched(at, 0, 100, NO_OFFSETS)
    assert subscription.position(P0) == 0
    assert [target.fetch_offset for target in subscription.fetchable()] == [100]
    subscription.advance([PositionMove(at, 40, 5)])
    assert subscription.positions() == {P0: OffsetAndMetadata(40, "", 5)}


def test_a_seek_makes_everything_void_that_was_asked_for_before(subscription):
    started(subscription, {P0: 0})
    before = epoch_of(subscription, P0)
    subscription.seek(P0, 50)
    assert not subscription.fetched(before, 0, 100, NO_OFFSETS)
    subscription.advance([PositionMove(before, 40, -1)])
    assert not subscription.start_at(before, 9, -1)
    assert subscription.position(P0) == 50


def test_an_answer_for_another_offset_than_the_next_is_not_taken(subscription):
    started(subscription, {P0: 10})
    at = epoch_of(subscription, P0)
    assert subscription.fetched(at, 10, 20, NO_OFFSETS)
    assert not subscription.fetched(at, 10, 20, NO_OFFSETS)


def test_a_partition_that_comes_back_has_a_new_epoch(subscription):
    subscription.subscribe_topics(["orders"], None)
    subscription.assign_from_group([P0])
    subscription.release([P0])
    before = epoch_of(subscription, P0)
    subscription.assign_from_group([])
    subscription.assign_from_group([P0])
    assert not subscription.is_current(before)


def test_a_partition_that_stays_keeps_its_position(subscription):
    started(subscription, {P0: 10})
    subscription.assign_from_user([P0, P1])
    assert subscription.position(P0) == 10
    assert subscription.position(P1) is None


def test_partitions_of_a_group_are_held_until_the_listener_knows(subscription):
    subscription.subscribe_topics(["orders"], None)
    subscription.assign_from_group([P0])
    assert subscription.to_initialize() == []
    assert subscription.resting() == {P0}
    subscription.release([P0])
    assert [at.partition for at in subscription.to_initialize()] == [P0]
    assert subscription.resting() == frozenset()


def test_a_paused_partition_is_neither_fetched_nor_returned(subscription):
    started(subscription, {P0: 0, P1: 0})
    subscription.pause([P0])
    assert [target.partition for target in subscription.fetchable()] == [P1]
    assert subscription.resting() == subscription.paused() == {P0}
    subscription.resume([P0])
    assert len(subscription.fetchable()) == 2


def test_those_served_last_go_to_the_end_of_the_line(subscription):
    started(subscription, {P0: 0, P1: 0})
    subscription.fetched(epoch_of(subscription, P0), 0, 5, NO_OFFSETS)
    assert [target.partition for target in subscription.fetchable()] == [P1, P0]


def test_a_reset_looks_for_a_position_and_starts_there(subscription):
    started(subscription, {P0: 3})
    subscription.request_reset([P0], OffsetReset.EARLIEST)
    assert subscription.position(P0) is None
    ((at, reset),) = subscription.to_reset().items()
    assert reset is OffsetReset.EARLIEST
    assert subscription.start_at(at, 1, -1)
    assert subscription.to_reset() == {}
    assert subscription.position(P0) == 1


def test_without_a_committed_offset_the_default_reset_applies(subscription):
    subscription.assign_from_user([P0])
    subscription.start()
    assert subscription.start_by_default(subscription.to_initialize()[0])
    assert list(subscription.to_reset().values()) == [OffsetReset.LATEST]


def test_without_a_default_reset_the_partition_stops_until_the_error_is_seen():
    subscription = SubscriptionState(None)
    subscription.assign_from_user([P0])
    subscription.start()
    at = subscription.to_initialize()[0]
    assert not subscription.start_by_default(at)
    assert subscription.to_initialize() == []
    assert subscription.retry_any([at])
    assert subscription.to_initialize() == [at]


def test_a_failed_partition_is_not_fetched_until_the_error_is_seen(subscription):
    started(subscription, {P0: 0})
    at = epoch_of(subscription, P0)
    assert subscription.fail(at)
    assert subscription.fetchable() == []
    subscription.seek(P0, 9)
    assert not subscription.retry_any([at])
    assert len(subscription.fetchable()) == 1


def test_lag_is_what_lies_between_position_and_high_watermark(subscription):
    started(subscription, {P0: 4, P1: 0})
    subscription.fetched(epoch_of(subscription, P0), 4, 10, PartitionOffsets(10, 10, 0))
    assert subscription.lags() == {P0: 6}
    assert subscription.offsets(P1) is None


def test_every_change_that_the_io_thread_acts_on_is_a_new_version(subscription):
    changes = [
        lambda: subscription.assign_from_user([P0]),
        subscription.start,
        lambda: subscription.seek(P0, 0),
        lambda: subscription.pause([P0]),
        lambda: subscription.resume([P0]),
        lambda: subscription.request_reset([P0], OffsetReset.LATEST),
        subscription.hold,
        lambda: subscription.release([P0]),
        subscription.unsubscribe,
    ]
    for change in changes:
        before = subscription.version
        change()
        assert subscription.version != before


def test_what_is_not_assigned_cannot_be_moved(subscription):
    for move in (
        lambda: subscription.seek(P0, 0),
        lambda: subscription.pause([P0]),
        lambda: subscription.position(P0),
        lambda: subscription.request_reset([P0], OffsetReset.LATEST),
    ):
        with pytest.raises(IllegalStateError, match="not assigned"):
            move()
    subscription.advance([PositionMove(PartitionEpoch(P0, 1), 0, 0)])
    assert subscription.positions() == {}


def test_another_topic_id_voids_the_position(subscription):
    started(subscription, {P0: 7})
    assert subscription.update_topic_ids({"orders": b"1" * 16}) == []
    assert subscription.position(P0) == 7  # the id was not known before
    assert subscription.update_topic_ids({}) == []
    before = epoch_of(subscription, P0)
    (recreated,) = subscription.update_topic_ids({"orders": b"2" * 16})
    assert recreated.partition == P0
    assert subscription.position(P0) is None
    assert not subscription.is_current(before)
    assert subscription.update_topic_ids({"orders": b"2" * 16}) == []


def test_a_new_partition_belongs_to_the_topic_of_the_present_id(subscription):
    subscription.update_topic_ids({"orders": b"1" * 16})
    started(subscription, {P0: 7})
    assert len(subscription.update_topic_ids({"orders": b"2" * 16})) == 1


def test_offsets_to_commit_belong_to_the_topic_in_which_they_were_read(subscription):
    old, new = b"1" * 16, b"2" * 16
    subscription.update_topic_ids({"orders": old})
    started(subscription, {P0: 7})
    five, seven = {P0: OffsetAndMetadata(5)}, {P0: OffsetAndMetadata(7)}
    assert subscription.topic_ids_of(seven) == {P0: old}
    assert subscription.topic_ids_of({P1: OffsetAndMetadata(5)}) == {}  # not assigned
    (at,) = subscription.update_topic_ids({"orders": new})
    assert subscription.topic_ids_of(seven) == {P0: old}
    subscription.start_at(at, 5, -1)
    assert subscription.topic_ids_of(seven) == {P0: old}
    assert subscription.topic_ids_of(five) == {P0: new}  # its first position
    subscription.advance([PositionMove(epoch_of(subscription, P0), 6, -1)])
    assert subscription.topic_ids_of(five) == {P0: new}


def test_a_partition_that_was_not_read_yet_looks_up_its_offset_in_the_recreated_topic(subscription):
    subscription.update_topic_ids({"orders": b"1" * 16})
    subscription.assign_from_user([P0])
    subscription.start()
    before = subscription.to_initialize()
    assert subscription.update_topic_ids({"orders": b"2" * 16}) == []
    assert subscription.to_initialize() != before
    assert subscription.to_reset() == {}


def test_the_lag_ends_at_the_last_stable_offset_for_committed_records():
    for read_committed, lag in [(False, 90), (True, 40)]:
        subscription = started(SubscriptionState(None, read_committed), {P0: 10})
        assert subscription.lag(P0) is None
        assert subscription.lags() == {}
        subscription.fetched(epoch_of(subscription, P0), 10, 10, PartitionOffsets(100, 50, 3))
        assert subscription.lag(P0) == lag
        assert subscription.lags() == {P0: lag}
        assert subscription.leads() == {P0: 7}
