"""The hand-written codec of partitions against the one of messages."""

import pytest
from hypothesis import given
from hypothesis import strategies as st

from pyclient.consumer.group.topic_partitions import (
    by_topic,
    decode_partitions,
    encode_partitions,
    flat,
)
from pyclient.errors import ProtocolError
from pyclient.protocol.messages.consumer_protocol import (
    ConsumerProtocolAssignment,
    TopicPartition,
)

PARTITIONS = st.dictionaries(
    st.text(st.characters(exclude_categories=["Cs"]), max_size=5),
    st.lists(st.integers(0, 2**31 - 1), max_size=3),
    max_size=6,
)
NO_USER_DATA = b"\xff\xff\xff\xff"


@given(PARTITIONS)
def test_partitions_are_written_as_in_a_message(partitions):
    message = ConsumerProtocolAssignment(
        assigned_partitions=[
            TopicPartition(topic=topic, partitions=partitions[topic])
            for topic in sorted(partitions)
        ]
    )
    assert encode_partitions(partitions) + NO_USER_DATA == message.encode_bytes(3)


@given(PARTITIONS, st.binary(max_size=9))
def test_partitions_are_read_as_written_and_no_further(partitions, behind):
    data = encode_partitions(partitions)
    found, end = decode_partitions(b"xy" + data + behind, 2)
    assert {topic: list(numbers) for topic, numbers in found.items()} == partitions
    assert end == 2 + len(data)


@given(PARTITIONS, st.data())
def test_bytes_that_end_early_are_an_error(partitions, data):
    encoded = encode_partitions(partitions)
    end = data.draw(st.integers(0, len(encoded) - 1))
    with pytest.raises(ProtocolError):
        decode_partitions(encoded[:end], 0)


@pytest.mark.parametrize(
    "data",
    [
        b"\xff\xff\xff\xff",
        b"\0\0\0\1\xff\xff\0\0\0\0\0\0",
        b"\0\0\0\1\0\1a\xff\xff\xff\xff",
        b"\0\0\0\1\0\1\xff\0\0\0\1\0\0\0\0",
        b"\x7f\xff\xff\xff\0\1a\0\0\0\1\0\0\0\0",
    ],
    ids=["topics", "name", "partitions", "no UTF-8", "many topics"],
)
def test_lengths_that_make_no_sense_are_an_error(data):
    with pytest.raises(ProtocolError):
        decode_partitions(data, 0)


def test_a_topic_that_comes_twice_is_read_as_one():
    entry = b"\0\1a\0\0\0\1\0\0\0"
    data = b"\0\0\0\4" + entry + b"\1" + entry + b"\2" + b"\0\1b\0\0\0\0" + entry + b"\3"
    assert decode_partitions(data, 0)[0] == {"a": (1, 2, 3), "b": ()}


def test_partitions_are_grouped_in_order():
    grouped = by_topic([("b", 1), ("a", 2), ("b", 0)])
    assert list(grouped.items()) == [("a", [2]), ("b", [0, 1])]
    assert flat(grouped) == [("a", 2), ("b", 0), ("b", 1)]
