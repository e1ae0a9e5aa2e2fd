"""Subscriptions and assignments: round trips, and other versions."""

import pytest

from pyclient.consumer.group.assignors import Assignment, MemberSubscription
from pyclient.consumer.group.consumer_protocol import (
    decode_assignment,
    decode_subscription,
    encode_assignment,
    encode_subscription,
)
from pyclient.errors import ProtocolError
from pyclient.protocol.messages.consumer_protocol import ConsumerProtocolSubscription

OWNED = {"a": (0, 1), "b": (0,)}


def test_a_subscription_survives_the_way():
    told = MemberSubscription(
        topics=("a", "b"),
        group_instance_id="i",
        rack_id="r",
        owned_partitions=OWNED,
        generation_id=7,
        user_data=b"u",
    )
    assert decode_subscription(encode_subscription(told), "i") == told


def test_an_assignment_survives_the_way():
    told = Assignment(OWNED, b"u")
    assert decode_assignment(encode_assignment(told)) == told
    assert told.topic_partitions() == [("a", 0), ("a", 1), ("b", 0)]


@pytest.mark.parametrize("version", [0, 1, 2, 3])
def test_older_members_tell_less(version):
    message = ConsumerProtocolSubscription(topics=["a"])
    data = version.to_bytes(2, "big") + message.encode_bytes(version)
    assert decode_subscription(data, None) == MemberSubscription(topics=("a",))


def test_what_a_newer_member_adds_is_not_looked_at():
    data = encode_subscription(MemberSubscription(topics=("a",)))
    newer = (9).to_bytes(2, "big") + data[2:] + b"more"
    assert decode_subscription(newer, None).topics == ("a",)


def test_a_member_that_the_leader_left_out_has_nothing():
    assert decode_assignment(b"") == Assignment()


@pytest.mark.parametrize("data", [b"\0", b"\xff\xff", b"\0\3\0\0\0\7"])
def test_what_is_no_message_is_an_error(data):
    with pytest.raises(ProtocolError):
        decode_assignment(data)


def test_kafka_python_reads_what_we_write():
    from kafka.protocol.consumer.metadata import ConsumerProtocolAssignment as Theirs

    theirs = Theirs.decode(encode_assignment(Assignment(OWNED)))
    assert sorted(theirs.partitions()) == [("a", 0), ("a", 1), ("b", 0)]
