"""Cooperative groups on our broker: what stays is read on, the rest changes hands once."""

import threading
from collections import Counter

import pytest

from pyclient.protocol.messages.join_group import JoinGroupRequest
from tests.integration.consumer.test_groups import Listener, poll_until, shares

COOPERATIVE = {"partition_assignment_strategy": ["cooperative-sticky"]}


def sorted_shares(*consumers):
    return sorted(len(one.assignment()) for one in consumers)


def test_a_second_member_takes_half_and_the_first_never_stops(new_consumer, fill):
    fill("orders", partitions=4, count=10)
    listener = Listener()
    first = new_consumer(group_id="g", **COOPERATIVE)
    first.subscribe(["orders"], listener=listener)
    poll_until(lambda found: len(found) == 40, first)
    second = new_consumer("orders", group_id="g", **COOPERATIVE)
    poll_until(lambda _: sorted_shares(first, second) == [2, 2], first, second)
    revoked = [numbers for what, numbers in listener.calls if what == "revoked"]
    assert len(revoked) == 1
    assert len(revoked[0]) == 2
    assert ("lost", [0, 1, 2, 3]) not in listener.calls
    fill("orders", partitions=4, count=10, first=10)
    found = poll_until(lambda found: len(found) >= 40, first, second)
    assert sorted(found) == [(where, number) for where in range(4) for number in range(10, 20)]


def test_a_member_that_leaves_hands_over_and_the_others_keep_theirs(new_consumer, fill):
    fill("orders", partitions=6, count=5)
    listener = Listener()
    consumers = [new_consumer(group_id="g", **COOPERATIVE) for _ in range(3)]
    consumers[0].subscribe(["orders"], listener=listener)
    for one in consumers[1:]:
        one.subscribe(["orders"])
    poll_until(lambda _: sorted_shares(*consumers) == [2, 2, 2], *consumers)
    listener.calls.clear()
    kept = consumers[0].assignment()
    consumers[2].close()
    poll_until(lambda _: sorted_shares(*consumers[:2]) == [3, 3], *consumers[:2])
    assert consumers[0].assignment() > kept
    assert all(what == "assigned" for what, _ in listener.calls)


def test_a_rolling_change_from_eager_to_cooperative(new_consumer, fill):
    """As Java's documentation says: first both assignors, then the cooperative one alone."""
    fill("orders", partitions=4, count=5)
    found = []

    def settle(*consumers):
        found.extend(poll_until(lambda _: sorted_shares(*consumers) == [2, 2], *consumers))

    both = {"partition_assignment_strategy": ["range", "cooperative-sticky"]}
    eager = {"partition_assignment_strategy": ["range"]}
    members = [new_consumer("orders", group_id="g", **eager) for _ in range(2)]
    settle(*members)
    for strategy in (both, COOPERATIVE):
        for index in range(2):
            members[index].close()
            members[index] = new_consumer("orders", group_id="g", **strategy)
            settle(*members)
    fill("orders", partitions=4, count=5, first=5)
    found += poll_until(lambda late: len({*found, *late}) >= 40, *members)
    assert set(found) == {(where, number) for where in range(4) for number in range(10)}


def test_records_under_way_survive_members_that_come_and_go(new_consumer, fill):
    """Nothing is lost, and what stays is not read again, while the group changes all the time."""
    partitions, rounds = 6, 5
    fill("orders", partitions=partitions, count=20)
    members = [new_consumer("orders", group_id="g", **COOPERATIVE)]
    seen = Counter()
    for turn in range(1, rounds + 1):
        members.append(new_consumer("orders", group_id="g", **COOPERATIVE))
        if turn > 2:
            members.pop(0).close()
        fill("orders", partitions=partitions, count=20, first=turn * 20)
        wanted = partitions * 20 * (turn + 1)
        seen.update(poll_until(lambda found, w=wanted: len({*seen, *found}) >= w, *members))
    assert len(seen) == partitions * 20 * (rounds + 1)


def test_a_rebalance_can_be_enforced(kafka_broker, new_consumer, fill):
    fill("orders", partitions=1, count=5)
    consumer = new_consumer("orders", group_id="g", **COOPERATIVE)
    poll_until(lambda found: len(found) == 5, consumer)
    joins = kafka_broker.requests.count(JoinGroupRequest)
    consumer.enforce_rebalance("just because")
    poll_until(lambda _: kafka_broker.requests.count(JoinGroupRequest) > joins, consumer)
    assert shares(consumer) == [[0]]


@pytest.mark.parametrize("strategy", ["range", "cooperative-sticky"])
def test_members_on_threads_of_their_own_settle(new_consumer, fill, strategy):
    fill("orders", partitions=8, count=50)
    consumers = [
        new_consumer(
            "orders", group_id="g", partition_assignment_strategy=[strategy], client_id=f"c{n}"
        )
        for n in range(4)
    ]
    seen = [[] for _ in consumers]
    enough = threading.Event()

    def read(index):
        while not enough.is_set():
            for records in consumers[index].poll(timeout_ms=50).values():
                seen[index] += [(one.partition, one.offset) for one in records]
            everything = {one for share in seen for one in list(share)}
            settled = sorted(len(one.assignment()) for one in consumers) == [2, 2, 2, 2]
            if settled and len(everything) == 400:
                enough.set()

    threads = [threading.Thread(target=read, args=(n,), daemon=True) for n in range(4)]
    for thread in threads:
        thread.start()
    assert enough.wait(60)
    for thread in threads:
        thread.join(30)
