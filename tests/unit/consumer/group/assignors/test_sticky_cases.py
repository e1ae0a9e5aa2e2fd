"""Cases of the sticky assignors one by one, and the bytes by which members tell what they had."""

from typing import NamedTuple

import pytest

from pyclient.consumer.group.assignors import (
    Assignment,
    CooperativeStickyAssignor,
    MemberSubscription,
    StickyPartitionAssignor,
)

STICKY = StickyPartitionAssignor
COOPERATIVE = CooperativeStickyAssignor


class Claim(NamedTuple):
    """A member: what it reads, what it had, and in which generation."""

    topics: str
    owned: str = ""
    generation_id: int = 5
    rack_id: str | None = None


def partitions(text):
    """`a0 b12` by topic."""
    found = {}
    for one in text.split():
        found.setdefault(one[0], []).append(int(one[1:]))
    return found


def text(assignment):
    return " ".join(f"{topic}{number}" for topic, number in assignment.topic_partitions())


def subscription(claim):
    assignor = StickyPartitionAssignor()
    assignor.on_assignment(Assignment(partitions(claim.owned)), claim.generation_id)
    return MemberSubscription(
        topics=tuple(claim.topics),
        rack_id=claim.rack_id,
        owned_partitions=partitions(claim.owned),
        generation_id=claim.generation_id,
        user_data=assignor.subscription_user_data(frozenset(claim.topics)),
    )


def decide(assignor, counts, *claims, racks=None):
    topics = {
        topic: [frozenset(racks[number]) if racks else frozenset() for number in range(count)]
        for topic, count in counts.items()
    }
    members = {f"m{n}": subscription(claim) for n, claim in enumerate(claims)}
    if assignor is COOPERATIVE:
        for name, member in members.items():
            members[name] = MemberSubscription(
                member.topics, None, member.rack_id, member.owned_partitions, member.generation_id
            )
    return [text(one) for one in assignor().assign(topics, members).values()]


FRESH = -1
CASES = {
    "nothing to read": ({}, [Claim("", "", FRESH)], [""], [""]),
    "a topic that does not exist": ({}, [Claim("z", "", FRESH)], [""], [""]),
    "one reads all": ({"a": 3}, [Claim("a", "", FRESH)], ["a0 a1 a2"], ["a0 a1 a2"]),
    "more members than partitions": (
        {"a": 1},
        [Claim("a", "", FRESH), Claim("a", "", FRESH)],
        ["a0", ""],
        ["a0", ""],
    ),
    "two topics are dealt in turn": (
        {"a": 3, "b": 3},
        [Claim("ab", "", FRESH), Claim("ab", "", FRESH)],
        ["a0 a2 b1", "a1 b0 b2"],
        ["a0 a2 b1", "a1 b0 b2"],
    ),
    "different topics": (
        {"a": 3, "b": 2},
        [Claim("a", "", FRESH), Claim("ab", "", FRESH), Claim("a", "", FRESH)],
        ["a0 a1", "b0 b1", "a2"],
        ["a0 a1", "b0 b1", "a2"],
    ),
    "a member joins": (
        {"a": 4},
        [Claim("a", "a0 a1 a2 a3"), Claim("a", "", FRESH)],
        ["a0 a1", "a2 a3"],
        ["a0 a1", ""],
    ),
    "a member has left": ({"a": 3}, [Claim("a", "a1")], ["a0 a1 a2"], ["a0 a1 a2"]),
    "a topic has grown": (
        {"a": 5},
        [Claim("a", "a0 a1"), Claim("a", "a2")],
        ["a0 a1 a4", "a2 a3"],
        ["a0 a1 a4", "a2 a3"],
    ),
    "a topic has shrunk, another is gone": (
        {"a": 2},
        [Claim("az", "a0 a2 a3 z0"), Claim("az", "a1")],
        ["a0", "a1"],
        ["a0", "a1"],
    ),
    "what a member does not read any more goes to another": (
        {"a": 2, "b": 2},
        [Claim("b", "a0 b0"), Claim("ab", "a1 b1")],
        ["b0 b1", "a0 a1"],
        ["b0", "a1"],
    ),
    "the member with the most may keep the odd one": (
        {"a": 5},
        [Claim("a", "a0 a1"), Claim("a", "a2 a3 a4")],
        ["a0 a1", "a2 a3 a4"],
        ["a0 a1", "a2 a3 a4"],
    ),
    "given up are the highest numbers, over all topics": (
        {"a": 2, "b": 2},
        [Claim("ab", "a0 a1 b0 b1"), Claim("ab", "", FRESH)],
        ["a0 b0", "a1 b1"],
        ["a0 b0", ""],
    ),
    "a claim of an older generation does not count": (
        {"a": 3, "b": 3},
        [Claim("ab", "a0 a2 b1", 10), Claim("ab", "a0 a2 b1", 9)],
        ["a0 a2 b1", "a1 b0 b2"],
        ["a0 a2 b1", "a1 b0 b2"],
    ),
    "a claim of no generation does not count against one": (
        {"a": 3, "b": 3},
        [Claim("ab", "a0 a2 b1", -1), Claim("ab", "a0 a2 b1", 10)],
        ["a1 b0 b2", "a0 a2 b1"],
        ["a1 b0 b2", "a0 a2 b1"],
    ),
    "a claim of an older generation counts where there is no other": (
        {"a": 3, "b": 3, "c": 3},
        [
            Claim("abc", "a0 b0 c0", 10),
            Claim("abc", "a1 b1 c1", 9),
            Claim("abc", "b1 c0 c2", 8),
        ],
        ["a0 b0 c0", "a1 b1 c1", "a2 b2 c2"],
        ["a0 b0 c0", "a1 b1 c1", "a2 b2 c2"],
    ),
    "claims of the same generation cancel each other": (
        {"a": 3},
        [Claim("a", "a0 a1"), Claim("a", "a0 a2"), Claim("a")],
        ["a1", "a2", "a0"],
        ["a1", "a2", ""],
    ),
    "a contested partition is withheld from those that claim it, too": (
        {"a": 1},
        [Claim("a", "a0"), Claim("a", "a0")],
        ["a0", ""],
        ["", ""],
    ),
    "two of three claims are of the newest generation": (
        {"a": 2},
        [Claim("a", "a0", 9), Claim("a", "a0", 10), Claim("a", "a0 a1", 10)],
        ["a0", "", "a1"],
        ["", "", "a1"],
    ),
    "claims of three generations among different topics": (
        {"a": 6, "b": 1},
        [
            Claim("a", "a0 a2", 3),
            Claim("a", "a1 a2 a3", 1),
            Claim("a", "a2 a4 a5", 2),
            Claim("b", "b0", 2),
        ],
        ["a0 a2", "a1 a3", "a4 a5", "b0"],
        ["a0 a2", "a1 a3", "a4 a5", "b0"],
    ),
    "a member takes only what makes the group more balanced": (
        {"a": 1, "b": 3},
        [Claim("ab", "a0 b0"), Claim("b", "b1 b2"), Claim("a", "", FRESH)],
        ["b0", "b1 b2", "a0"],
        ["b0", "b1 b2", ""],
    ),
    "what nobody owned moves along a chain": (
        {"a": 2, "b": 4},
        [Claim("b", "", FRESH), Claim("ab", "b3"), Claim("a", "", FRESH)],
        ["b0 b1", "b2 b3", "a0 a1"],
        ["b0 b1", "b2 b3", "a0 a1"],
    ),
}


@pytest.mark.parametrize("name", CASES)
def test_sticky(name):
    counts, claims, expected, _ = CASES[name]
    assert decide(STICKY, counts, *claims) == expected


@pytest.mark.parametrize("name", CASES)
def test_cooperative_sticky(name):
    counts, claims, _, expected = CASES[name]
    assert decide(COOPERATIVE, counts, *claims) == expected


# --- racks ---------------------------------------------------------------------------------------

THREE = ["r0", "r1", "r2"]


def one_each(rack_ids, owned=("", "", "")):
    return [
        Claim("abc", mine, 5 if mine else FRESH, rack)
        for rack, mine in zip(rack_ids, owned, strict=True)
    ]


def misaligned(decided, racks, rack_ids):
    return sum(
        rack not in racks[number]
        for rack, mine in zip(rack_ids, decided, strict=True)
        for numbers in partitions(mine).values()
        for number in numbers
    )


@pytest.mark.parametrize("replicas", [1, 2])
@pytest.mark.parametrize("assignor", [STICKY, COOPERATIVE])
def test_members_read_within_their_racks(assignor, replicas):
    racks = [{f"r{(number + n) % 3}" for n in range(replicas)} for number in range(6)]
    decided = decide(assignor, {"a": 6, "b": 6, "c": 3}, *one_each(THREE), racks=racks)
    assert [len(mine.split()) for mine in decided] == [5, 5, 5]
    assert misaligned(decided, racks, THREE) == 0


def test_a_member_on_a_rack_without_replicas_still_gets_its_share():
    racks = [{"r0", "r1"}] * 6
    decided = decide(STICKY, {"a": 6}, *one_each(["r0", "r1", "elsewhere"]), racks=racks)
    assert [len(mine.split()) for mine in decided] == [2, 2, 2]


def test_owned_partitions_move_to_the_right_rack():
    racks = [{f"r{number % 3}"} for number in range(6)]
    owned = ["a0 a1 a2 a3 a4", "a5 b0 b1 b2 b3", "b4 b5 c0 c1 c2"]
    claims = one_each(THREE, owned)
    decided = decide(STICKY, {"a": 6, "b": 6, "c": 3}, *claims, racks=racks)
    assert misaligned(decided, racks, THREE) == 0
    withheld = decide(COOPERATIVE, {"a": 6, "b": 6, "c": 3}, *claims, racks=racks)
    assert withheld == ["a0 a3", "b1", "b5 c2"]


def test_racks_are_ignored_where_everything_is_everywhere():
    owned = ["a0 a1 a2", "b0 b1 b2", "c0 c1 c2"]
    counts = {"a": 3, "b": 3, "c": 3}
    claims = one_each(THREE, owned)
    assert decide(STICKY, counts, *claims, racks=[set(THREE)] * 3) == owned


# --- what members tell ---------------------------------------------------------------------------


def test_a_new_member_of_a_sticky_group_tells_nothing():
    assert STICKY().subscription_user_data(frozenset("a")) is None


def test_the_previous_assignment_is_told_as_java_does():
    assignor = STICKY()
    assignor.on_assignment(Assignment({"b": [1], "a": [0, 2]}), 7)
    assert assignor.subscription_user_data(frozenset("ab")) == bytes.fromhex(
        "00000002"  # topics
        "0001 61 00000002 00000000 00000002"
        "0001 62 00000001 00000001"
        "00000007"  # the generation
    )


def test_the_generation_is_told_as_java_does():
    assignor = COOPERATIVE()
    assert assignor.subscription_user_data(frozenset("a")) == b"\xff\xff\xff\xff"
    assignor.on_assignment(Assignment({"a": [0]}), 7)
    assert assignor.subscription_user_data(frozenset("a")) == b"\0\0\0\7"


OWNS_A1 = bytes.fromhex("00000001 0001 61 00000001 00000001")


@pytest.mark.parametrize(
    ("user_data", "generation_id"),
    [(OWNS_A1, -1), (OWNS_A1 + b"\0\0\0\7", 7), (b"\0\1" + OWNS_A1 + b"\0\0\0\7", 7)],
    ids=["before generations", "Java", "kafka-python 3"],
)
def test_the_previous_assignment_is_read(user_data, generation_id):
    told = STICKY().previous_assignment(MemberSubscription(("a",), user_data=user_data))
    assert told == ({"a": (1,)}, generation_id)


@pytest.mark.parametrize("user_data", [None, b"", b"\0\0", b"\x7f\0\0\0garbage", OWNS_A1[:-1]])
def test_what_is_no_assignment_is_none(user_data):
    member = MemberSubscription(("a",), user_data=user_data, owned_partitions={"a": (0,)})
    assert STICKY().previous_assignment(member) == ({}, -1)


@pytest.mark.parametrize(
    ("generation_id", "user_data", "expected"),
    [(6, b"\0\0\0\7", 6), (-1, b"\0\0\0\7", 7), (-1, b"\7", -1), (-1, None, -1)],
)
def test_the_generation_is_read_from_the_subscription_or_else_the_user_data(
    generation_id, user_data, expected
):
    member = MemberSubscription(
        ("a",), owned_partitions={"a": (0,)}, generation_id=generation_id, user_data=user_data
    )
    assert COOPERATIVE().previous_assignment(member) == ({"a": (0,)}, expected)


def test_members_of_version_1_keep_what_they_own():
    members = {
        f"m{n}": MemberSubscription(
            ("a",), owned_partitions={"a": (n,)} if n < 2 else {}, user_data=b"\0\0\0\5"
        )
        for n in range(3)
    }
    decided = COOPERATIVE().assign({"a": [frozenset()] * 3}, members)
    assert [text(one) for one in decided.values()] == ["a0", "a1", "a2"]
