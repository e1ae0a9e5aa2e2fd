"""What the golden lines do not say: names, odd groups, properties of every assignment."""

import pytest
from hypothesis import given
from hypothesis import strategies as st

from pyclient.consumer.group.assignors import (
    AbstractPartitionAssignor,
    MemberSubscription,
    RangePartitionAssignor,
    RebalanceProtocol,
    RoundRobinPartitionAssignor,
    configured_assignors,
    rebalance_protocol,
)
from pyclient.errors import KafkaConfigurationError

TOPICS = ["a", "b", "c"]
RACKS = ["r0", "r1", "r2", None]


def without_racks(**counts):
    return {topic: [frozenset()] * count for topic, count in counts.items()}


def reading(*topics, **options):
    return MemberSubscription(topics=topics, **options)


def decide(assignor, topics, members):
    assignment = assignor.assign(topics, members)
    return {name: one.topic_partitions() for name, one in assignment.items()}


def numbers(partitions):
    return [f"{topic}{number}" for topic, number in partitions]


@st.composite
def groups(draw):
    topics = {
        topic: [
            frozenset(draw(st.sets(st.sampled_from(["r0", "r1", "r2"]), max_size=2)))
            for _ in range(count)
        ]
        for topic, count in draw(
            st.dictionaries(st.sampled_from(TOPICS), st.integers(0, 7), min_size=1)
        ).items()
    }
    members = {
        f"m{index}": MemberSubscription(
            topics=tuple(draw(st.lists(st.sampled_from(TOPICS), unique=True))),
            group_instance_id=draw(st.sampled_from([None, f"i{9 - index}"])),
            rack_id=draw(st.sampled_from(RACKS)),
        )
        for index in range(draw(st.integers(1, 5)))
    }
    return topics, members


@pytest.mark.parametrize("assignor", [RangePartitionAssignor(), RoundRobinPartitionAssignor()])
@given(group=groups())
def test_every_partition_that_is_read_goes_to_one_of_its_readers(assignor, group):
    topics, members = group
    assignment = decide(assignor, topics, members)
    assert assignment.keys() == members.keys()
    given_out = [one for partitions in assignment.values() for one in partitions]
    read = {topic for member in members.values() for topic in member.topics}
    expected = [(t, n) for t in topics if t in read for n in range(len(topics[t]))]
    assert sorted(given_out) == sorted(expected)
    for name, partitions in assignment.items():
        assert {topic for topic, _ in partitions} <= set(members[name].topics)


@given(group=groups())
def test_range_shares_each_topic_evenly_among_its_readers(group):
    topics, members = group
    assignment = decide(RangePartitionAssignor(), topics, members)
    for topic in topics:
        shares = [
            sum(one.topic == topic for one in assignment[name])
            for name, member in members.items()
            if topic in member.topics
        ]
        assert not shares or max(shares) - min(shares) <= 1


@given(group=groups())
def test_topics_of_one_size_and_the_same_readers_are_cut_alike(group):
    topics, members = group
    assignment = decide(RangePartitionAssignor(), topics, members)
    for one in topics:
        for other in topics:
            alike = len(topics[one]) == len(topics[other]) and all(
                (one in member.topics) == (other in member.topics) for member in members.values()
            )
            # Racks of their own may pull single topics apart; without them nothing does.
            if alike and not any(topics[one]) and not any(topics[other]):
                for partitions in assignment.values():
                    assert {n for t, n in partitions if t == one} == {
                        n for t, n in partitions if t == other
                    }


def test_range_gives_the_first_readers_one_more():
    members = {"m1": reading("a"), "m2": reading("a")}
    assignment = decide(RangePartitionAssignor(), without_racks(a=3), members)
    assert numbers(assignment["m1"]) == ["a0", "a1"]
    assert numbers(assignment["m2"]) == ["a2"]


def test_static_members_come_first_and_by_their_instance_ids():
    members = {
        "z-member": reading("a", group_instance_id="i1"),
        "a-member": reading("a"),
        "b-member": reading("a", group_instance_id="i0"),
    }
    assignment = decide(RoundRobinPartitionAssignor(), without_racks(a=3), members)
    assert [numbers(assignment[m]) for m in ("b-member", "z-member", "a-member")] == [
        ["a0"],
        ["a1"],
        ["a2"],
    ]


def test_a_reader_takes_what_is_on_its_own_rack_first():
    topics = {"a": [frozenset({"r0"}), frozenset({"r1"})]}
    members = {"m1": reading("a", rack_id="r1"), "m2": reading("a", rack_id="r0")}
    assignment = decide(RangePartitionAssignor(), topics, members)
    assert numbers(assignment["m1"]) == ["a1"]
    assert numbers(assignment["m2"]) == ["a0"]


@pytest.mark.parametrize(
    "value",
    [
        "range",
        "org.apache.kafka.clients.consumer.RangeAssignor",
        RangePartitionAssignor,
        RangePartitionAssignor(),
    ],
)
def test_an_assignor_is_named_or_given(value):
    (assignor,) = configured_assignors([value])
    assert isinstance(assignor, RangePartitionAssignor)


def test_a_programs_own_assignor_is_taken():
    class Everything(AbstractPartitionAssignor):
        name = "everything"

        def assign(self, topics, members):
            return {}

    assert [one.name for one in configured_assignors([Everything, "range"])] == [
        "everything",
        "range",
    ]


@pytest.mark.parametrize(
    ("names", "expected"),
    [
        (["range"], RebalanceProtocol.EAGER),
        (["cooperative-sticky"], RebalanceProtocol.COOPERATIVE),
        (["cooperative-sticky", "range"], RebalanceProtocol.EAGER),
        (["sticky", "cooperative-sticky"], RebalanceProtocol.EAGER),
    ],
)
def test_a_member_is_cooperative_if_all_its_assignors_are(names, expected):
    assert rebalance_protocol(configured_assignors(names)) is expected


@pytest.mark.parametrize("java", ["Range", "RoundRobin", "Sticky", "CooperativeSticky"])
def test_javas_class_names_are_known(java):
    (assignor,) = configured_assignors([f"org.apache.kafka.clients.consumer.{java}Assignor"])
    assert assignor.name.replace("-", "") == java.lower()


class OnlyCooperative(AbstractPartitionAssignor):
    name = "only-cooperative"

    def supported_protocols(self):
        return [RebalanceProtocol.COOPERATIVE]

    def assign(self, topics, members):
        return {}


@pytest.mark.parametrize(
    ("value", "reason"),
    [
        ([], "no assignor"),
        (["rnage"], "'rnage' is not an assignor"),
        (["range", RangePartitionAssignor], "'range' twice"),
        ([dict], "is not an assignor"),
        ([OnlyCooperative, "range"], "only-cooperative, range support no common"),
    ],
)
def test_what_is_no_assignor_is_refused(value, reason):
    with pytest.raises(KafkaConfigurationError, match=reason):
        configured_assignors(value)
