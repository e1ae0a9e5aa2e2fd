"""The tuples of the public contract, compared with kafka-python's."""

import kafka.structs
import pytest
from hypothesis import given
from hypothesis import strategies as st
from kafka.producer.future import RecordMetadata as KafkaPythonRecordMetadata

from pyclient import types


@pytest.mark.parametrize(
    "name",
    [
        "TopicPartition",
        "TopicPartitionReplica",
        "OffsetAndMetadata",
        "OffsetAndTimestamp",
        "ConsumerGroupMetadata",
    ],
)
def test_tuples_have_kafka_pythons_fields(name: str) -> None:
    assert getattr(types, name)._fields == getattr(kafka.structs, name)._fields


def test_record_metadata_has_kafka_pythons_fields() -> None:
    assert types.RecordMetadata._fields == KafkaPythonRecordMetadata._fields


def test_an_offset_needs_neither_metadata_nor_epoch() -> None:
    assert types.OffsetAndMetadata(3) == (3, "", -1)


def test_an_unjoined_member_has_no_generation() -> None:
    assert types.ConsumerGroupMetadata("g") == ("g", -1, "", None, "<unjoined>")
    assert types.ConsumerGroupMetadata("g") == kafka.structs.ConsumerGroupMetadata("g")


def test_a_topic_id_is_written_as_kafka_writes_it() -> None:
    assert types.format_uuid(bytes(15) + b"\x01") == "AAAAAAAAAAAAAAAAAAAAAQ"
    assert types.format_uuid(b"\xfb\xff" + bytes(14)) == "-_8AAAAAAAAAAAAAAAAAAA"


@given(st.binary(min_size=16, max_size=16))
def test_a_topic_id_survives_its_text_form(uuid: bytes) -> None:
    assert types.parse_uuid(types.format_uuid(uuid)) == uuid


@pytest.mark.parametrize("text", ["", "AAAA", "not base64!", "AAAAAAAAAAAAAAAAAAAAAAAAAA", "é"])
def test_text_that_is_no_topic_id_is_refused_with_the_text(text: str) -> None:
    with pytest.raises(ValueError, match="topic id"):
        types.parse_uuid(text)
