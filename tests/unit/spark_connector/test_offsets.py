"""Offsets as JSON, and what a checkpoint keeps beside them."""

import json

from pyclient import TopicPartition
from spark_connector.offsets import StreamOffset

OFFSETS = {TopicPartition("b", 0): 3, TopicPartition("a", 10): 2, TopicPartition("a", 2): 1}


def test_a_stream_offset_survives_json() -> None:
    offset = StreamOffset(OFFSETS, {"a": "id-a", "b": "id-b"}, {TopicPartition("a", 2): 0})
    assert StreamOffset.from_json(json.loads(json.dumps(offset.to_json()))) == offset


def test_equal_offsets_have_equal_text() -> None:
    turned = dict(reversed(OFFSETS.items()))
    one = StreamOffset(OFFSETS, {"a": "1", "b": "2"}).to_json()
    other = StreamOffset(turned, {"b": "2", "a": "1"}).to_json()
    assert json.dumps(one) == json.dumps(other)


def test_the_jvm_connector_reads_what_is_beside_the_offsets_as_a_topic_without_partitions() -> None:
    nested = StreamOffset(OFFSETS, {"a": "1"}, OFFSETS).to_json()
    assert {topic: of for topic, of in nested.items() if of} == {
        "a": {"2": 1, "10": 2},
        "b": {"0": 3},
    }
    assert list(nested.values()).count({}) == 1


def test_offsets_of_the_jvm_connector_have_nothing_beside_them() -> None:
    assert StreamOffset.from_json({"b": {"0": 3}}) == StreamOffset({TopicPartition("b", 0): 3})
