"""The caller's part of a rebalance: bounded polls, interrupts, listeners, slow assignors."""

from contextlib import suppress

import pytest

from pyclient import ConsumerRebalanceListener, TopicPartition
from pyclient.consumer.caller_requests import CallerRequests
from pyclient.consumer.group.assignors import RangePartitionAssignor
from pyclient.consumer.group.membership import RebalanceStep, StepKind
from pyclient.consumer.partition_state import OffsetReset
from pyclient.consumer.pending import Pending
from pyclient.consumer.rebalance import Rebalancer
from pyclient.consumer.subscription_state import SubscriptionState
from pyclient.errors import (
    CoordinatorLoadInProgressError,
    IllegalStateError,
    RebalanceInProgressError,
    UnknownMemberIdError,
    UnknownTopicOrPartitionError,
)
from pyclient.protocol.messages.heartbeat import HeartbeatRequest, HeartbeatResponse
from pyclient.protocol.messages.join_group import JoinGroupRequest
from pyclient.protocol.messages.offset_commit import OffsetCommitRequest
from tests.unit.consumer.group.conftest import Listener
from tests.unit.consumer.offsets.test_commit_calls import refused

P0, P1, P2 = (TopicPartition("orders", number) for number in range(3))


# --- whole consumers -----------------------------------------------------------------------------


def rebalance(network, broker):
    """The next heartbeat says that the group rebalances."""
    once = [HeartbeatResponse(error_code=RebalanceInProgressError.code)]
    broker.on(
        HeartbeatRequest, lambda request, version: once.pop() if once else HeartbeatResponse()
    )
    network.run_for(3_500)


def test_a_poll_returns_in_time_while_the_commit_before_a_revocation_is_not_answered(
    network, broker, group, new_consumer
):
    consumer = new_consumer("orders")
    consumer.poll(timeout_ms=10_000)
    broker.on(OffsetCommitRequest, refused(CoordinatorLoadInProgressError))
    rebalance(network, broker)
    for _ in range(5):
        before_ms = network.clock.monotonic_ms()
        assert consumer.poll(timeout_ms=200) == {}
        assert network.clock.monotonic_ms() - before_ms <= 201
    assert len(broker.received(JoinGroupRequest)) == 1
    broker.on(OffsetCommitRequest, group.commit)
    consumer.poll(timeout_ms=2_000)
    assert group.committed == 3
    assert len(broker.received(JoinGroupRequest)) == 2
    assert consumer.assignment() == {P0}


def test_a_deleted_topic_does_not_hold_up_a_rebalance(network, broker, new_consumer, caplog):
    consumer = new_consumer("orders")
    consumer.poll(timeout_ms=10_000)
    broker.on(OffsetCommitRequest, refused(UnknownTopicOrPartitionError))
    rebalance(network, broker)
    before_ms = network.clock.monotonic_ms()
    consumer.poll(timeout_ms=500)
    assert network.clock.monotonic_ms() - before_ms <= 501
    assert len(broker.received(OffsetCommitRequest)) == 1
    assert len(broker.received(JoinGroupRequest)) == 2
    assert "the automatic commit before the rebalance failed" in caplog.text
    assert "orders-0" in caplog.text


def test_a_commit_that_takes_too_long_is_given_up_before_it_costs_the_membership(
    network, broker, new_consumer, caplog
):
    consumer = new_consumer("orders", max_poll_interval_ms=30_000)
    consumer.poll(timeout_ms=10_000)
    broker.on(OffsetCommitRequest, refused(CoordinatorLoadInProgressError))
    rebalance(network, broker)
    began_ms = network.clock.monotonic_ms()
    while len(broker.received(JoinGroupRequest)) < 2:
        consumer.poll(timeout_ms=500)
    assert network.clock.monotonic_ms() - began_ms < 25_000
    assert "not committed within 20000 ms: the last attempt failed" in caplog.text


class SlowAssignor(RangePartitionAssignor):
    """Takes 1.5 s, during which the I/O thread goes on."""

    name = "slow"

    def __init__(self, network):
        self.network = network
        self.on_io_thread = []

    def assign(self, topics, members):
        self.on_io_thread.append(self.network.on_io_thread())
        self.network.run_for(1_500)
        return super().assign(topics, members)


def test_an_assignor_may_take_longer_than_the_session(network, broker, new_consumer):
    assignor = SlowAssignor(network)
    consumer = new_consumer(
        "orders",
        partition_assignment_strategy=[assignor],
        session_timeout_ms=1_000,
        heartbeat_interval_ms=100,
    )
    polled = consumer.poll(timeout_ms=10_000)
    assert [record.value for record in polled[P0]] == [b"a", b"b", b"c"]
    assert assignor.on_io_thread == [False]
    assert len(broker.received(HeartbeatRequest)) >= 10  # while the assignor was at work
    assert len(broker.received(JoinGroupRequest)) == 1


def test_closing_after_the_membership_was_lost_says_lost(network, broker, new_consumer):
    listener = Listener()
    consumer = new_consumer()
    consumer.subscribe(["orders"], listener=listener)
    consumer.poll(timeout_ms=10_000)
    broker.on(HeartbeatRequest, HeartbeatResponse(error_code=UnknownMemberIdError.code))
    network.run_for(4_000)
    consumer.close()
    assert listener.calls == [("assigned", [0]), ("lost", [0])]
    assert broker.received(OffsetCommitRequest) == []


def test_an_interrupt_while_it_leaves_does_not_keep_the_subscription(new_consumer, monkeypatch):
    consumer = new_consumer()
    consumer.subscribe(["orders"])
    consumer.poll(timeout_ms=10_000)

    def interrupted(*_):
        raise KeyboardInterrupt

    with monkeypatch.context() as patch:
        patch.setattr(CallerRequests, "leave", interrupted)
        with pytest.raises(KeyboardInterrupt):
            consumer.unsubscribe()
    assert consumer.subscription() is None
    assert consumer.assignment() == set()


def test_closing_as_a_member_says_revoked(new_consumer):
    listener = Listener()
    consumer = new_consumer()
    consumer.subscribe(["orders"], listener=listener)
    consumer.poll(timeout_ms=10_000)
    consumer.close()
    assert listener.calls == [("assigned", [0]), ("revoked", [0])]


def test_a_commit_in_a_listener_does_not_outlive_close(network, broker, new_consumer):
    class Committing(Listener):
        def on_partitions_revoked(self, revoked):
            consumer.commit()

    consumer = new_consumer(enable_auto_commit=False)
    consumer.subscribe(["orders"], listener=Committing())
    consumer.poll(timeout_ms=10_000)
    broker.on(OffsetCommitRequest, None)
    before_ms = network.clock.monotonic_ms()
    with pytest.raises(Exception, match="has not answered"):
        consumer.close(timeout_ms=3_000)
    assert network.clock.monotonic_ms() - before_ms <= 5_000


def test_a_poll_in_a_listener_is_refused_and_the_rebalance_goes_on(network, broker, new_consumer):
    refusals = []

    class Polling(Listener):
        def _note(self, what, partitions):
            super()._note(what, partitions)
            try:
                consumer.poll()
            except IllegalStateError as refusal:
                refusals.append(str(refusal))

    listener = Polling()
    consumer = new_consumer()
    consumer.subscribe(["orders"], listener=listener)
    assert consumer.poll(timeout_ms=10_000)
    rebalance(network, broker)
    consumer.poll(timeout_ms=10_000)
    assert listener.calls == [("assigned", [0]), ("revoked", [0]), ("assigned", [0])]
    assert ["inside a rebalance" in refusal for refusal in refusals] == [True] * 3


@pytest.mark.parametrize("end", ["unsubscribe", "close"])
def test_a_listener_that_ends_it_all_is_told_once_of_the_revocation(
    network, broker, new_consumer, end
):
    class Ending(Listener):
        def on_partitions_revoked(self, revoked):
            super().on_partitions_revoked(revoked)
            getattr(consumer, end)()

    listener = Ending()
    consumer = new_consumer()
    consumer.subscribe(["orders"], listener=listener)
    consumer.poll(timeout_ms=10_000)
    rebalance(network, broker)
    with suppress(IllegalStateError):  # it is closed
        consumer.poll(timeout_ms=1_000)
    assert listener.calls == [("assigned", [0]), ("revoked", [0])]
    assert consumer.assignment() == set()


# --- steps ---------------------------------------------------------------------------------------


class World:
    """A rebalancer, and commits that a test completes."""

    def __init__(self):
        self.subscription = SubscriptionState(OffsetReset.LATEST)
        self.listener = Listener()
        self.subscription.subscribe_topics(["orders"], self.listener)
        self.committed = []
        self.commit = None
        self.done = []
        self.rebalancer = Rebalancer(self.subscription, lambda: self, self.done.append)

    def before_revocation(self, partitions):
        self.committed.append(sorted(partitions))
        return self.commit

    def revocation_done(self, commit):
        self.commit = None

    def own(self, *partitions):
        self.run(RebalanceStep(StepKind.ASSIGN, partitions))
        self.listener.calls.clear()
        self.done.clear()
        return self

    def run(self, step):
        return self.rebalancer.run(step)

    def owned(self):
        return sorted(self.subscription.assigned())


@pytest.fixture
def world():
    return World()


def test_only_what_changes_is_committed_and_told(world):
    world.own(P0, P1)
    step = RebalanceStep(StepKind.ASSIGN, (P1, P2))
    assert world.run(step)
    assert world.committed == [[P0]]
    assert world.listener.calls == [("revoked", [0]), ("assigned", [2])]
    assert world.owned() == [P1, P2]
    assert step.has_revoked
    assert world.done == [step]


def test_what_stays_is_read_on_while_the_commit_of_the_rest_is_on_its_way(world):
    world.own(P0, P1)
    for partition in (P0, P1):
        world.subscription.seek(partition, 5)
    world.commit = Pending(lambda: None)
    step = RebalanceStep(StepKind.ASSIGN, (P1,))
    assert not world.run(step)
    assert [target.partition for target in world.subscription.fetchable()] == [P1]
    assert world.listener.calls == []
    assert not world.run(step)
    world.commit.complete(None)
    assert world.run(step)
    assert world.listener.calls == [("revoked", [0]), ("assigned", [])]


def test_a_step_that_is_cancelled_before_the_caller_begins_does_nothing(world):
    world.own(P0)
    step = RebalanceStep(StepKind.ASSIGN, (P1,))
    assert step.cancel()
    assert world.run(step)
    assert world.owned() == [P0]
    assert world.done == []


def test_a_step_that_the_caller_has_begun_stops_where_it_is(world):
    world.own(P0)
    abandoned = []
    world.commit = Pending(lambda: None)
    world.commit.on_abandon = lambda: abandoned.append(True)
    step = RebalanceStep(StepKind.REVOKE, (P0,))
    assert not world.run(step)
    assert not step.cancel()
    assert world.run(step)
    assert world.listener.calls == []
    assert world.done == []
    assert abandoned == [True]


def test_what_the_listener_was_told_is_done_though_the_step_is_cancelled_meanwhile(world):
    world.own(P0)
    step = RebalanceStep(StepKind.ASSIGN, (P1,))
    tell = world.listener.on_partitions_revoked

    def tell_and_cancel(revoked):
        tell(revoked)
        step.cancel()

    world.listener.on_partitions_revoked = tell_and_cancel
    assert world.run(step)
    assert world.owned() == []
    world.run(RebalanceStep(StepKind.LOSE))
    assert world.listener.calls == [("revoked", [0])]


def test_partitions_that_were_taken_are_told_though_the_step_is_cancelled_meanwhile(world):
    assign = world.subscription.assign_from_group
    step = RebalanceStep(StepKind.ASSIGN, (P1,))

    def assign_and_cancel(*arguments):
        assign(*arguments)
        step.cancel()

    world.subscription.assign_from_group = assign_and_cancel
    assert world.run(step)
    assert world.owned() == [P1]
    world.run(RebalanceStep(StepKind.LOSE))
    assert world.listener.calls == [("assigned", [1]), ("lost", [1])]


@pytest.mark.parametrize("error", [ValueError("mine"), KeyboardInterrupt()])
def test_the_first_exception_of_a_listener_comes_out_at_the_end_of_the_step(world, error):
    world.own(P0)
    world.listener.raises = error
    step = RebalanceStep(StepKind.ASSIGN, (P1,))
    with pytest.raises(type(error)) as caught:
        world.run(step)
    assert caught.value is error
    assert world.listener.calls == [("revoked", [0]), ("assigned", [1])]
    assert world.owned() == [P1]
    assert world.done == [step]
    assert world.run(step)  # over


@pytest.mark.parametrize("phase", range(10))
@pytest.mark.parametrize("when", ["before", "after"])
def test_an_interrupt_anywhere_in_a_step_is_made_good_by_the_next_poll(world, phase, when):
    world.own(P0, P1)
    worked = []
    step = RebalanceStep(StepKind.ASSIGN, (P1, P2), lambda: worked.append(True))
    phases = list(world.rebalancer._phases)
    original = phases[phase]
    interrupts = [KeyboardInterrupt()]

    def interrupted(step, progress):
        if when == "after":
            original(step, progress)
        if interrupts:
            raise interrupts.pop()
        return original(step, progress)

    phases[phase] = interrupted
    world.rebalancer._phases = tuple(phases)
    with pytest.raises(KeyboardInterrupt):
        world.run(step)
    assert world.run(step)
    assert world.owned() == [P1, P2]
    assert world.listener.calls == [("revoked", [0]), ("assigned", [2])]
    assert worked == [True]
    assert set(world.done) == {step}


def test_a_listener_that_knows_no_loss_hears_of_a_revocation(world):
    class Simple(ConsumerRebalanceListener):
        def __init__(self):
            self.revoked = []

        def on_partitions_revoked(self, revoked):
            self.revoked.append(revoked)

        def on_partitions_assigned(self, assigned):
            pass

    listener = Simple()
    world.subscription.subscribe_topics(["orders"], listener)
    world.own(P0)
    world.run(RebalanceStep(StepKind.LOSE))
    assert listener.revoked == [{P0}]
    assert world.committed == []  # it would be refused
