"""The consumer works with any membership: one of another protocol, which the test plays.

It has what KIP-848's will have: member epochs, assignments by topic id that change partition by
partition, a say on refused commits, and a heartbeat interval that the coordinator decides.
"""

from functools import partial

import pytest

from pyclient import TopicPartition
from pyclient.consumer import core
from pyclient.consumer.group.membership import (
    GroupMembership,
    MembershipFigures,
    MembershipStatus,
    OffsetReader,
    RebalanceStep,
    StepKind,
)
from pyclient.consumer.group.protocols import MembershipParts
from pyclient.consumer.offsets.commit import Committer
from pyclient.consumer.rebalance_listener import ConsumerRebalanceListener
from pyclient.errors import FencedMemberEpochError, GroupIdNotFoundError, StaleMemberEpochError
from pyclient.net.request_manager import NOTHING_TO_DO
from pyclient.protocol.messages.offset_commit import OffsetCommitRequest
from pyclient.protocol.messages.offset_fetch import OffsetFetchRequest
from pyclient.types import ConsumerGroupMetadata

P0, P1, P2 = (TopicPartition("orders", number) for number in range(3))


class PlayedMembership(GroupMembership):
    """Takes what `target` says, in steps: first it revokes, then it assigns."""

    def __init__(self, parts: MembershipParts) -> None:
        self._parts = parts
        self._step: RebalanceStep | None = None
        self._owned: set[TopicPartition] = set()
        self.target: set[TopicPartition] = set()
        self.epoch = 1
        self.told: list[object] = []
        self.committers: list[Committer] = [Committer()]

    def reassign(self, *partitions: TopicPartition) -> None:
        self.target = set(partitions)
        self.epoch += 1
        self._parts.inbox.ring()

    def poll(self, now_ms):
        snapshot = self._parts.cluster.snapshot
        if self._step is None and self._owned != self.target and "orders" in snapshot.topics:
            gone = self._owned - self.target
            if gone:  # the coordinator gives these to others only when it hears of it
                self._ask(StepKind.REVOKE, gone)
            else:
                self._ask(StepKind.ASSIGN, self.target)
        return NOTHING_TO_DO

    def _ask(self, kind, partitions):
        ids = {"orders": self._parts.cluster.snapshot.topic_id("orders")}
        self._step = RebalanceStep(kind, tuple(sorted(partitions)), topic_ids=ids)
        self._parts.inbox.post_step(partial(self._parts.run_step, self._step))

    def on_step_done(self, step):
        if step is self._step:
            self._step = None
            self.told.append((step.kind, step.partitions))
            if step.kind is StepKind.REVOKE:
                self._owned -= set(step.partitions)
            else:
                self._owned = set(step.partitions)

    def close(self, error):
        pass

    def on_subscription(self):
        self._parts.interest.refresh()

    def on_metadata(self, snapshot):
        pass

    def enforce_rebalance(self, reason):
        self.told.append(reason)

    def leave(self, reason):
        self.told.append("left")

    def has_left(self):
        return True

    def committer(self):
        return self.committers[0]

    def on_commit_error(self, error, committer):
        self.told.append(type(error))
        return self.committers.pop() if isinstance(error, GroupIdNotFoundError) else error

    def offset_reader(self):
        return OffsetReader("me", self.epoch)

    def on_lookup_error(self, error, reader):
        self.told.append((type(error), reader.member_epoch))
        self.epoch += 1
        return isinstance(error, StaleMemberEpochError)

    def metadata(self):
        return ConsumerGroupMetadata("kitchen", self.epoch, "me", None)

    def figures(self):
        return MembershipFigures(heartbeat_total=42, rebalance_total=7)

    def status(self):
        return MembershipStatus("reconciling", 0.0, is_settled=True, heartbeat_interval_ms=123.0)


class Listener(ConsumerRebalanceListener):
    def __init__(self):
        self.heard = []

    def on_partitions_assigned(self, assigned):
        self.heard.append(("assigned", sorted(assigned)))

    def on_partitions_revoked(self, revoked):
        self.heard.append(("revoked", sorted(revoked)))


@pytest.fixture
def played(monkeypatch):
    """The membership of the next consumer that is made."""
    made: list[PlayedMembership] = []

    def new_membership(parts: MembershipParts) -> GroupMembership:
        made.append(PlayedMembership(parts))
        return made[-1]

    monkeypatch.setattr(core, "new_membership", new_membership)
    return made


@pytest.fixture
def consumer(played, fill, new_consumer):
    fill("orders", partitions=3, count=4)
    listener = Listener()
    consumer = new_consumer(group_id="kitchen", enable_auto_commit=False)
    consumer.subscribe(["orders"], listener=listener)
    consumer.heard = listener.heard
    return consumer


def settle(consumer, *partitions):
    while consumer.assignment() != set(partitions):
        consumer.poll(timeout_ms=50)


def test_partitions_come_and_go_one_by_one_and_the_others_are_read_on(played, consumer, read):
    (membership,) = played
    membership.reassign(P0, P1)
    assert len(read(consumer, 8)) == 8
    membership.reassign(P1, P2)
    assert sorted(read(consumer, 4)) == [(2, number) for number in range(4)]  # nothing of P1 again
    settle(consumer, P1, P2)
    assert consumer.heard == [
        ("assigned", [P0, P1]), ("revoked", [P0]), ("assigned", [P2]),
    ]  # fmt: skip
    assert membership.told == [
        (StepKind.ASSIGN, (P0, P1)), (StepKind.REVOKE, (P0,)), (StepKind.ASSIGN, (P1, P2)),
    ]  # fmt: skip


def test_offsets_are_looked_up_as_the_member_in_its_epoch(kafka_broker, played, consumer, read):
    (membership,) = played
    kafka_broker.faults.fail_next(OffsetFetchRequest, StaleMemberEpochError)
    membership.reassign(P0)
    assert len(read(consumer, 4)) == 4
    lookups = kafka_broker.requests.of(OffsetFetchRequest)
    groups = [one.groups[0] for one in lookups]
    assert [(one.member_id, one.member_epoch) for one in groups] == [("me", 2), ("me", 3)]
    assert (StaleMemberEpochError, 2) in membership.told


def test_a_lookup_that_the_membership_gives_up_is_an_error_of_the_poll(
    kafka_broker, played, consumer, read
):
    kafka_broker.faults.fail_next(OffsetFetchRequest, FencedMemberEpochError)
    played[0].reassign(P0)
    with pytest.raises(FencedMemberEpochError):
        read(consumer, 4)


def test_a_refused_commit_is_made_again_as_the_member_that_is_now(
    kafka_broker, played, consumer, read
):
    (membership,) = played
    membership.reassign(P0)
    assert len(read(consumer, 4)) == 4
    membership.committers = [Committer(7, "me"), Committer()]  # no such group: it has no members
    consumer.commit()
    assert GroupIdNotFoundError in membership.told
    commits = kafka_broker.requests.of(OffsetCommitRequest)
    epochs = [one.generation_id_or_member_epoch for one in commits]
    assert epochs == [7, -1]
    assert consumer.committed(P0) == 4


def test_figures_and_health_are_those_of_the_membership(played, consumer):
    metrics = consumer.metrics()["consumer-coordinator-metrics"]
    assert metrics["heartbeat-total"] == 42
    assert metrics["rebalance-total"] == 7
    membership = consumer.health().membership
    assert (membership.state, membership.member_id) == ("reconciling", "me")
    assert consumer.group_metadata().generation_id == played[0].epoch
    consumer.enforce_rebalance("because")
    consumer.close()
    assert played[0].told == ["because", "left"]
