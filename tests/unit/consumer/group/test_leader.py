"""The leader of a group: subscriptions in, assignments out."""

import pytest

from pyclient.consumer.group.assignors import (
    AbstractPartitionAssignor,
    Assignment,
    MemberSubscription,
    RebalanceProtocol,
    configured_assignors,
)
from pyclient.consumer.group.consumer_protocol import decode_assignment, encode_subscription
from pyclient.consumer.group.leader import GroupLeader
from pyclient.errors import KafkaError
from pyclient.metadata import ClusterMetadata, TopicMetadata
from pyclient.protocol.messages.join_group import JoinGroupResponseMember
from pyclient.types import BrokerMetadata, PartitionMetadata

SNAPSHOT = ClusterMetadata(
    brokers={node: BrokerMetadata(node, "h", 1, f"r{node}") for node in range(2)},
    topics={
        "a": TopicMetadata(
            "a",
            bytes(16),
            False,
            tuple(PartitionMetadata("a", n, n, 0, (n,), (n,), ()) for n in range(2)),
            (0, 1),
        )
    },
)


class Fixed(AbstractPartitionAssignor):
    """Decides what it is told to, and keeps what it saw."""

    name = "fixed"

    def __init__(self, decided=None):
        self.decided = decided or {}
        self.seen = None

    def assign(self, topics, members):
        self.seen = topics
        return {name: Assignment({"a": numbers}) for name, numbers in self.decided.items()}


def leader(assignor, protocol=RebalanceProtocol.EAGER, **members):
    joined = [
        JoinGroupResponseMember(member_id=name, metadata=encode_subscription(member))
        for name, member in members.items()
    ]
    return GroupLeader(assignor, joined, protocol)


def owning(*numbers):
    return MemberSubscription(("a",), owned_partitions={"a": numbers}, generation_id=1)


def test_assignments_are_handed_out_by_member_id():
    assigned = leader(Fixed({"m0": [1], "m1": []}), m0=owning(), m1=owning()).assign(SNAPSHOT)
    assert {one.member_id: decode_assignment(one.assignment) for one in assigned} == {
        "m0": Assignment({"a": (1,)}),
        "m1": Assignment({"a": ()}),
    }


def test_an_assignor_sees_racks_only_if_a_member_has_one():
    assignor = Fixed()
    leader(assignor, m0=owning()).assign(SNAPSHOT)
    assert assignor.seen == {"a": [frozenset(), frozenset()]}
    leader(assignor, m0=MemberSubscription(("a", "gone"), rack_id="r0")).assign(SNAPSHOT)
    assert assignor.seen == {"a": [frozenset({"r0"}), frozenset({"r1"})]}


def test_an_assignor_that_gives_away_what_is_owned_is_refused_in_a_cooperative_group():
    takes = Fixed({"m0": [], "m1": [0]})
    members = {"m0": owning(0), "m1": owning(1)}
    assert leader(takes, **members).assign(SNAPSHOT)
    with pytest.raises(KafkaError, match="'fixed' gives partition 0 of topic 'a' to m1"):
        leader(takes, RebalanceProtocol.COOPERATIVE, **members).assign(SNAPSHOT)


@pytest.mark.parametrize("decided", [{"m0": [0], "m1": [1]}, {"m0": [0]}, {}])
def test_an_assignor_may_keep_or_withhold_what_is_owned(decided):
    members = {"m0": owning(0), "m1": owning(1)}
    assert leader(Fixed(decided), RebalanceProtocol.COOPERATIVE, **members).assign(
        SNAPSHOT
    ) == leader(Fixed(decided), **members).assign(SNAPSHOT)


def test_the_cooperative_assignor_is_not_refused():
    (assignor,) = configured_assignors(["cooperative-sticky"])
    members = {"m0": owning(0, 1), "m1": owning()}
    assigned = leader(assignor, RebalanceProtocol.COOPERATIVE, **members).assign(SNAPSHOT)
    assert [decode_assignment(one.assignment).topic_partitions() for one in assigned] == [
        [("a", 0)],
        [],
    ]
