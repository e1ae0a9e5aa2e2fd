"""Groups on our broker: who reads what, what is committed, who takes over."""

import threading

import pytest

from pyclient import ConsumerRebalanceListener, OffsetAndMetadata, TopicPartition
from pyclient.errors import (
    CommitFailedError,
    CoordinatorLoadInProgressError,
    IllegalStateError,
    NotCoordinatorError,
)
from pyclient.protocol.messages.find_coordinator import FindCoordinatorRequest
from pyclient.protocol.messages.join_group import JoinGroupRequest
from pyclient.protocol.messages.leave_group import LeaveGroupRequest, MemberIdentity
from pyclient.protocol.messages.offset_commit import OffsetCommitRequest
from pyclient.protocol.messages.offset_fetch import OffsetFetchRequest
from pyclient.protocol.messages.sync_group import SyncGroupRequest

P0 = TopicPartition("orders", 0)


class Listener(ConsumerRebalanceListener):
    def __init__(self, on_revoked=None, on_assigned=None):
        self.calls = []
        self.threads = set()
        self._on_revoked = on_revoked
        self._on_assigned = on_assigned

    def on_partitions_revoked(self, revoked):
        self._note("revoked", revoked)
        if self._on_revoked is not None:
            self._on_revoked(revoked)

    def on_partitions_assigned(self, assigned):
        self._note("assigned", assigned)
        if self._on_assigned is not None:
            self._on_assigned(assigned)

    def on_partitions_lost(self, lost):
        self._note("lost", lost)

    def _note(self, what, partitions):
        self.calls.append((what, sorted(number for _, number in partitions)))
        self.threads.add(threading.get_ident())


def poll_until(condition, *consumers, rounds=2_000):
    """Poll in turn until the condition holds: [(partition, number)] of all."""
    found = []
    for _ in range(rounds):
        if condition(found):
            return found
        for consumer in consumers:
            for records in consumer.poll(timeout_ms=20).values():
                found += [(one.partition, int(one.value)) for one in records]
    raise AssertionError("it did not come about")


def shares(*consumers):
    return sorted(sorted(number for _, number in one.assignment()) for one in consumers)


def remove(consumer, remover):
    """Have the group drop a member, as if its session had timed out."""
    who = MemberIdentity(member_id=consumer.group_metadata().member_id)
    request = LeaveGroupRequest(group_id="g", members=[who])
    response = remover._engine.request(request, None, 10_000)
    assert not response.members[0].error_code


def is_member(consumer):
    return consumer.group_metadata().state == "<stable>"


def test_three_members_share_the_partitions_and_read_every_record_once(new_consumer, fill):
    fill("orders", partitions=6, count=50)
    consumers = [new_consumer("orders", group_id="g") for _ in range(3)]
    settled = [[0, 1], [2, 3], [4, 5]]
    first = poll_until(
        lambda found: shares(*consumers) == settled and len(set(found)) == 300, *consumers
    )
    assert {number for _, number in first} == set(range(50))
    fill("orders", partitions=6, count=50, first=50)
    late = poll_until(lambda found: len(found) >= 300, *consumers)
    assert len(set(late)) == len(late)  # in a settled group nothing is read twice
    assert {number for _, number in late} == set(range(50, 100))


def test_a_member_that_closes_hands_its_partitions_and_offsets_over(new_consumer, fill):
    fill("orders", partitions=2, count=10)
    first, second = (new_consumer("orders", group_id="g") for _ in range(2))
    poll_until(
        lambda found: shares(first, second) == [[0], [1]] and len(found) >= 20, first, second
    )
    first.close()
    poll_until(lambda found: shares(second) == [[0, 1]], second)
    fill("orders", partitions=2, count=5, first=10)
    found = poll_until(lambda found: len(found) >= 10, second)
    assert sorted(found) == [(where, number) for where in range(2) for number in range(10, 15)]


def test_a_group_goes_on_where_it_committed(new_consumer, fill, read):
    fill("orders", count=10)
    first = new_consumer("orders", group_id="g", enable_auto_commit=False)
    read(first, 4, max_records=4)
    first.commit()
    read(first, 6)
    first.close()
    second = new_consumer("orders", group_id="g")
    assert read(second, 6) == [(0, number) for number in range(4, 10)]
    assert second.committed(P0) == 4


def test_offsets_are_committed_with_a_note_and_read_by_any_consumer(new_consumer, fill):
    fill("orders", count=10)
    consumer = new_consumer(group_id="g")
    assert consumer.committed(P0) is None
    consumer.assign([P0])
    consumer.commit({P0: OffsetAndMetadata(7, "half way", -1)})
    assert consumer.committed(P0, metadata=True) == OffsetAndMetadata(7, "half way", -1)
    assert consumer.position(P0) == 7


def test_an_automatic_commit_is_of_what_earlier_polls_returned(new_consumer, fill, read):
    fill("orders", count=10)
    consumer = new_consumer("orders", group_id="g", auto_commit_interval_ms=0)
    read(consumer, 4, max_records=4)
    assert consumer.committed(P0) in (None, 0)  # the program may still be at work on these
    read(consumer, 2, max_records=2)
    poll_until(lambda _: consumer.committed(P0) == 4, consumer, rounds=1)


def test_an_iteration_commits_what_the_loop_has_seen(new_consumer, fill):
    fill("orders", count=10)
    consumer = new_consumer("orders", group_id="g", enable_auto_commit=False)
    for record in consumer:
        if record.offset == 3:
            consumer.commit()
            break
    assert consumer.committed(P0) == 4


def test_closing_commits_and_leaving_a_with_block_by_an_error_does_not(new_consumer, fill, read):
    fill("orders", count=10)
    with new_consumer("orders", group_id="g") as consumer:
        read(consumer, 4, max_records=4)

    def fail():
        with new_consumer("orders", group_id="g") as consumer:
            assert consumer.committed(P0) == 4
            read(consumer, 2, max_records=2)
            raise ValueError("mine")

    with pytest.raises(ValueError, match="mine"):
        fail()
    assert new_consumer(group_id="g").committed(P0) == 4


def test_an_asynchronous_commit_tells_its_callback_in_a_later_poll(new_consumer, fill, read):
    fill("orders", count=10)
    consumer = new_consumer("orders", group_id="g", enable_auto_commit=False)
    read(consumer, 10)
    calls = []
    future = consumer.commit_async(callback=lambda offsets, error: calls.append((offsets, error)))
    poll_until(lambda _: calls, consumer)
    ((offsets, error),) = calls
    assert error is None
    assert offsets[P0].offset == 10
    assert future.succeeded()
    assert consumer.committed(P0) == 10


def test_closing_waits_for_commits_under_way_and_tells_their_callbacks(new_consumer, fill):
    fill("orders", count=10)
    calls = []
    with new_consumer(group_id="g", enable_auto_commit=False) as consumer:
        consumer.assign([P0])
        consumer.commit_async(
            {P0: OffsetAndMetadata(3)}, lambda offsets, error: calls.append(error)
        )
    assert calls == [None]
    assert new_consumer(group_id="g").committed(P0) == 3


def test_listeners_run_on_the_callers_thread_and_may_use_the_consumer(new_consumer, fill):
    fill("orders", partitions=2, count=10)
    first = new_consumer(group_id="g", enable_auto_commit=False)
    positions = []
    listener = Listener(
        on_revoked=lambda _: first.commit(),
        on_assigned=lambda assigned: positions.append([first.position(one) for one in assigned]),
    )
    first.subscribe(["orders"], listener=listener)
    poll_until(lambda found: len(found) == 20, first)
    second = new_consumer("orders", group_id="g")
    poll_until(lambda _: shares(first, second) == [[0], [1]], first, second)
    assert listener.calls[:2] == [("assigned", [0, 1]), ("revoked", [0, 1])]
    assert listener.threads == {threading.get_ident()}
    assert set(positions[0]) == {0}
    assert set(positions[1]) == {10}  # what the revocation committed
    first.close()
    assert listener.calls[-1][0] == "revoked"


def test_a_listener_may_seek_before_anything_is_fetched(new_consumer, fill, read):
    fill("orders", count=10)
    consumer = new_consumer(group_id="g", auto_offset_reset="none")
    seek = Listener(on_assigned=lambda _: consumer.seek(P0, 8))
    consumer.subscribe(["orders"], listener=seek)
    assert read(consumer, 2) == [(0, 8), (0, 9)]


def test_a_pattern_finds_topics_that_come_later(new_consumer, fill):
    fill("orders-eu", count=5)
    consumer = new_consumer(group_id="g", metadata_max_age_ms=200)
    consumer.subscribe(pattern="^orders-.*")
    poll_until(lambda found: len(found) == 5, consumer)
    assert consumer.subscription() == {"orders-eu"}
    fill("orders-us", count=5)
    poll_until(lambda found: len(found) >= 5, consumer)
    assert consumer.subscription() == {"orders-eu", "orders-us"}


def test_a_group_gets_the_partitions_of_a_topic_that_comes_later(new_consumer, fill, caplog):
    settings = {"group_id": "g", "allow_auto_create_topics": False}
    consumers = [new_consumer("orders", **settings) for _ in range(2)]
    poll_until(lambda _: all(map(is_member, consumers)), *consumers)
    assert "'orders' cannot be read yet" in caplog.text
    fill("orders", partitions=2, count=5)
    poll_until(lambda _: shares(*consumers) == [[0], [1]], *consumers)


def test_a_subscription_can_be_replaced_and_ended(new_consumer, fill, kafka_broker):
    fill("orders", count=5)
    fill("bills", count=5)
    consumer = new_consumer("orders", group_id="g")
    poll_until(lambda found: len(found) == 5, consumer)
    consumer.subscribe(["bills"])
    poll_until(lambda found: len(found) == 5, consumer)
    assert {topic for topic, _ in consumer.assignment()} == {"bills"}
    consumer.unsubscribe()
    assert consumer.assignment() == set()
    assert consumer.subscription() is None
    consumer.assign([P0])
    assert consumer.position(P0) == 5  # what was committed on the way out


@pytest.mark.parametrize(
    ("api", "error"),
    [
        (FindCoordinatorRequest, CoordinatorLoadInProgressError),
        (JoinGroupRequest, CoordinatorLoadInProgressError),
        (JoinGroupRequest, NotCoordinatorError),
        (SyncGroupRequest, NotCoordinatorError),
        (OffsetFetchRequest, CoordinatorLoadInProgressError),
        (OffsetCommitRequest, CoordinatorLoadInProgressError),
        (OffsetCommitRequest, NotCoordinatorError),
    ],
)
def test_a_coordinator_in_trouble_is_waited_for(kafka_broker, new_consumer, fill, read, api, error):
    fill("orders", count=5)
    fault = kafka_broker.faults.fail_next(api, error, 2)
    consumer = new_consumer("orders", group_id="g")
    assert len(read(consumer, 5)) == 5
    consumer.commit()
    assert fault.hits == 2
    assert consumer.committed(P0) == 5


def test_a_member_that_the_group_removed_comes_back_and_its_listener_hears_of_it(
    new_consumer, fill
):
    fill("orders", count=5)
    listener = Listener()
    consumer = new_consumer(group_id="g", enable_auto_commit=False)
    consumer.subscribe(["orders"], listener=listener)
    poll_until(lambda found: len(found) == 5, consumer)
    remove(consumer, new_consumer())
    poll_until(lambda _: len(listener.calls) == 3, consumer)
    assert listener.calls == [("assigned", [0]), ("lost", [0]), ("assigned", [0])]
    poll_until(lambda _: is_member(consumer), consumer)


def test_a_commit_after_the_removal_says_what_happened(new_consumer, fill, read):
    fill("orders", count=5)
    consumer = new_consumer(
        "orders", group_id="g", enable_auto_commit=False, heartbeat_interval_ms=5_000
    )
    read(consumer, 5)
    remove(consumer, new_consumer())
    with pytest.raises(CommitFailedError, match=r"max\.poll\.interval\.ms"):
        consumer.commit()
    assert read(consumer, 5) == [(0, number) for number in range(5)]  # back, and from the start


def test_a_group_survives_the_restart_of_its_coordinator(kafka_broker, new_consumer, fill, read):
    fill("orders", count=5)
    consumer = new_consumer("orders", group_id="g", enable_auto_commit=False)
    read(consumer, 5)
    consumer.commit()
    kafka_broker.restart()
    fill("orders", count=5, first=5)
    assert read(consumer, 5) == [(0, number) for number in range(5, 10)]
    consumer.commit()
    assert consumer.committed(P0) == 10


def test_closing_leaves_the_group_and_ends_also_without_a_broker(kafka_broker, new_consumer, fill):
    fill("orders", count=5)
    first, second = (new_consumer("orders", group_id="g") for _ in range(2))
    poll_until(lambda _: is_member(first) and is_member(second), first, second)
    first.close()
    assert kafka_broker.requests.count(LeaveGroupRequest) == 1
    kafka_broker.kill()
    second.close(timeout_ms=500)
    with pytest.raises(IllegalStateError):
        second.poll()


def test_without_a_group_there_are_no_commits(new_consumer, fill):
    fill("orders", count=1)
    consumer = new_consumer("orders")
    for call in (consumer.commit, consumer.commit_async, lambda: consumer.committed(P0)):
        with pytest.raises(IllegalStateError, match="group_id"):
            call()


def test_a_static_member_comes_back_without_a_rebalance_of_the_others(new_consumer, fill):
    fill("orders", partitions=2, count=1)
    listener = Listener()
    first = new_consumer(group_id="g", group_instance_id="one")
    first.subscribe(["orders"], listener=listener)
    second = new_consumer("orders", group_id="g", group_instance_id="two")
    poll_until(lambda _: shares(first, second) == [[0], [1]], first, second)
    before = list(listener.calls)
    second.close()
    again = new_consumer("orders", group_id="g", group_instance_id="two")
    poll_until(lambda _: shares(first, again) == [[0], [1]], first, again)
    assert listener.calls == before
