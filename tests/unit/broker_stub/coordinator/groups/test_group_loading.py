"""`__consumer_offsets` read back at start: unreadable records do not stop the broker."""

import contextlib
import logging
import struct

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from broker_stub.coordinator.groups.group_log import (
    group_record,
    offset_record,
    read_entry,
    restore_group,
)
from broker_stub.coordinator.groups.group_state import GroupState
from broker_stub.coordinator.groups.offsets import CommittedOffset
from broker_stub.log.internal_batches import build_batch
from pyclient.errors import CorruptRecordError, KafkaError, ProtocolError
from pyclient.protocol.messages.offset_fetch import (
    OffsetFetchRequest,
    OffsetFetchRequestGroup,
)
from pyclient.types import TopicPartition
from tests.support.classic_group_world import GroupWorld
from tests.support.group_member import GroupMember, find_coordinator, stable_pair
from tests.support.node_harness import NodeHarness

ORDERS = TopicPartition("orders", 0)
GOOD_KEY, GOOD_VALUE = offset_record("group", ORDERS, CommittedOffset(7, -1, "", 1_700_000_000_000))
GROUP_KEY = struct.pack(">hh5s", 2, 5, b"group")

UNREADABLE = {
    "no key": (None, b"value"),
    "empty key": (b"", b"value"),
    "short key": (b"\0", b"value"),
    "cut key": (GOOD_KEY[:-3], GOOD_VALUE),
    "longer key": (GOOD_KEY + b"?", GOOD_VALUE),
    "empty value": (GOOD_KEY, b""),
    "short value": (GOOD_KEY, b"\0"),
    "cut value": (GOOD_KEY, (GOOD_VALUE or b"")[:-2]),
    "unknown version": (GOOD_KEY, b"\0\x63" + (GOOD_VALUE or b"")[2:]),
    "negative version": (GOOD_KEY, b"\xff\xff"),
    "cut group": (GROUP_KEY, struct.pack(">hh8si", 3, 8, b"consumer", 4)),
    "unknown group version": (GROUP_KEY, b"\0\x09nonsense"),
    "consumer group of KIP-848": (struct.pack(">hh5s", 3, 5, b"group"), b"\0\0\0\0\0\x01"),
    "kind of a newer Kafka": (struct.pack(">h", 4711) + b"whatever", b"\0\0"),
    "negative kind": (b"\xff\xff", b"\0\0"),
}


def append(harness: NodeHarness, *records: tuple[bytes | None, bytes | None]) -> None:
    """Write records to the group's partition behind the coordinator's back."""
    topic = "__consumer_offsets"
    for partition in range(len(harness.node.image.topic(topic).partitions)):
        log = harness.node.replicas.partition(topic, partition)
        if log.log.log_end_offset:
            harness.node.replicas.append(log, build_batch(records, harness.clock.now_ms()))


def committed(harness: NodeHarness) -> dict[tuple[str, int], int]:
    request = OffsetFetchRequest(groups=[OffsetFetchRequestGroup(group_id="group", topics=None)])
    (group,) = harness.ask(request, 9).groups
    return {
        (topic.name, one.partition_index): one.committed_offset
        for topic in group.topics
        for one in topic.partitions
    }


@pytest.mark.parametrize("name", UNREADABLE)
def test_an_unreadable_record_is_skipped_logged_with_its_place_and_counted(harness, caplog, name):
    harness.create_topic("orders")
    leader, follower = stable_pair(harness)
    assert leader.commit(5) == 0
    append(harness, UNREADABLE[name])
    assert leader.commit(6) == 0
    with caplog.at_level(logging.WARNING, "broker_stub"):
        harness.restart()
    (line,) = [one.getMessage() for one in caplog.records if "unreadable" in one.getMessage()]
    assert "__consumer_offsets-" in line
    assert "at offset " in line
    assert harness.node.coordinator.unreadable_records == 1
    assert committed(harness) == {("orders", 0): 6}
    assert leader.heartbeat() == follower.heartbeat() == 0


def test_many_unreadable_records_are_counted_and_not_all_logged(harness, caplog):
    harness.create_topic("orders")
    find_coordinator(harness)
    assert GroupMember(harness).commit(5) == 0
    append(harness, *[UNREADABLE["short key"]] * 1000)
    with caplog.at_level(logging.WARNING, "broker_stub"):
        harness.restart()
    assert harness.node.coordinator.unreadable_records == 1000
    assert len(caplog.records) == 21
    assert "1000" in caplog.records[-1].getMessage()
    assert committed(harness) == {("orders", 0): 5}


@given(st.binary(max_size=60), st.none() | st.binary(max_size=80), st.integers(0, 3))
def test_any_bytes_are_read_or_refused(key, value, record_type):
    for attempt in (key, struct.pack(">h", record_type) + key):
        with contextlib.suppress(CorruptRecordError, ProtocolError):
            read_entry(attempt, value)


@st.composite
def damaged_groups(draw):
    """A group's record of two members, with some bytes changed."""
    world = GroupWorld()
    world.stable_pair()
    _, value = group_record(world.group)
    damaged = bytearray(value)
    for _ in range(draw(st.integers(0, 3))):
        damaged[draw(st.integers(2, len(damaged) - 1))] = draw(st.integers(0, 255))
    return bytes(damaged)


@settings(max_examples=200, deadline=None)
@given(damaged_groups(), st.booleans())
def test_a_group_restored_from_damaged_bytes_works_or_is_skipped(value, twice):
    with contextlib.suppress(CorruptRecordError, ProtocolError):
        _, restored = read_entry(GROUP_KEY, value)
        if twice:
            restored.members *= 2
        world = GroupWorld()
        restore_group(world.group, restored)
        with contextlib.suppress(KafkaError):
            world.join()
        for _ in range(6):  # sessions, the rebalance, the sync that never comes, and again
            world.advance(2**31)  # the longest timeout that a record can hold
        assert world.group.state is GroupState.EMPTY


def test_a_commit_of_an_old_client_keeps_its_expiry_over_a_restart(harness):
    harness.create_topic("orders")
    find_coordinator(harness)
    member = GroupMember(harness)
    assert member.commit(5, version=3, retention_time_ms=90_000) == 0
    harness.restart()
    offset = harness.node.coordinator.offsets.get("group", ORDERS)
    assert offset.expire_timestamp_ms == offset.commit_timestamp_ms + 90_000


def test_a_group_that_grew_too_large_for_a_lower_limit_rebalances_after_the_restart(tmp_path):
    harness = NodeHarness(tmp_path)
    leader, follower = stable_pair(harness)
    harness.config["group.max.size"] = 1
    harness.restart()
    assert leader.heartbeat() == follower.heartbeat() == 27  # REBALANCE_IN_PROGRESS
    rejoining = leader.start_join()
    refused = follower.start_join().response
    assert (refused.error_code, refused.member_id) == (81, "")  # GROUP_MAX_SIZE_REACHED
    assert leader.joined(rejoining).generation_id == 3
