"""Values that a message can't carry: which field, and why."""

from typing import Any

import pytest

from pyclient.errors import ProtocolError
from pyclient.protocol.messages.alter_client_quotas import (
    AlterClientQuotasRequest,
    EntryData,
    OpData,
)
from pyclient.protocol.messages.broker_registration import BrokerRegistrationRequest, Listener
from pyclient.protocol.messages.fetch import FetchRequest, FetchTopic, ForgottenTopic
from pyclient.protocol.messages.find_coordinator import FindCoordinatorRequest
from pyclient.protocol.messages.init_producer_id import InitProducerIdRequest
from pyclient.protocol.messages.metadata import MetadataRequest, MetadataRequestTopic
from pyclient.protocol.messages.offset_commit import OffsetCommitRequest, OffsetCommitRequestTopic
from pyclient.protocol.messages.produce import (
    PartitionProduceData,
    ProduceRequest,
    TopicProduceData,
)
from pyclient.protocol.messages.sasl_authenticate import SaslAuthenticateRequest
from pyclient.protocol.messages.update_features import UpdateFeaturesRequest
from pyclient.protocol.schema import Message


def refusal(message: Message, version: int) -> ProtocolError:
    with pytest.raises(ProtocolError) as caught:
        message.encode(version)
    assert caught.value.message_name == type(message).__name__
    assert caught.value.version == version
    return caught.value


@pytest.mark.parametrize(
    ("message", "path", "reason"),
    [
        (ProduceRequest(acks="all"), "acks", "wants int, not str 'all'"),  # type: ignore[arg-type]
        (ProduceRequest(acks=1.5), "acks", "wants int, not float 1.5"),  # type: ignore[arg-type]
        (ProduceRequest(acks=None), "acks", "None where this version"),  # type: ignore[arg-type]
        (ProduceRequest(transactional_id=b"t"), "transactional_id", "wants str, not bytes b't'"),  # type: ignore[arg-type]
        (ProduceRequest(topic_data="orders"), "topic_data", "wants a list, not str"),  # type: ignore[arg-type]
        (ProduceRequest(topic_data=5), "topic_data", "wants a list, not int"),  # type: ignore[arg-type]
        (ProduceRequest(topic_data=["orders"]), "topic_data[0]", "wants TopicProduceData"),  # type: ignore[list-item]
        (ProduceRequest(topic_data=[None]), "topic_data[0]", "None where this version"),  # type: ignore[list-item]
    ],
)
def test_wrong_type_names_the_field(message: Message, path: str, reason: str) -> None:
    error = refusal(message, 9)
    assert error.path == path
    assert reason in str(error)


@pytest.mark.parametrize("version", [8, 9, 13])
@pytest.mark.parametrize("records", ["text", 5, [b"piece", "text"]])
def test_records_are_bytes_or_pieces_of_bytes(version: int, records: Any) -> None:
    topic = TopicProduceData(partition_data=[PartitionProduceData(records=records)])
    error = refusal(ProduceRequest(topic_data=[topic]), version)
    assert error.path == "topic_data[0].partition_data[0].records"
    assert "wants bytes" in str(error)


@pytest.mark.parametrize("version", [0, 2])
@pytest.mark.parametrize("auth_bytes", ["token", 5, [1, 2]])
def test_bytes_are_bytes(version: int, auth_bytes: Any) -> None:
    error = refusal(SaslAuthenticateRequest(auth_bytes=auth_bytes), version)
    assert error.path == "auth_bytes"
    assert "wants bytes" in str(error)


@pytest.mark.parametrize("topic_id", [b"short", "x" * 16, bytes(17), None])
def test_uuid_is_sixteen_bytes(topic_id: Any) -> None:
    error = refusal(FetchRequest(topics=[FetchTopic(topic_id=topic_id)]), 13)
    assert error.path == "topics[0].topic_id"


@pytest.mark.parametrize("value", [0, 1, "true", None])
def test_bool_is_a_bool(value: Any) -> None:
    error = refusal(MetadataRequest(allow_auto_topic_creation=value), 4)
    assert error.path == "allow_auto_topic_creation"


def test_float_is_a_number() -> None:
    entry = EntryData(ops=[OpData(key="producer_byte_rate", value="1 MB")])  # type: ignore[arg-type]
    error = refusal(AlterClientQuotasRequest(entries=[entry]), 1)
    assert error.path == "entries[0].ops[0].value"


@pytest.mark.parametrize(
    ("message", "path", "reason"),
    [
        (ProduceRequest(acks=2**15), "acks", "32768 is out of range for int16"),
        (ProduceRequest(acks=-(2**15) - 1), "acks", "-32769 is out of range for int16"),
        (ProduceRequest(timeout_ms=2**31), "timeout_ms", "2147483648 is out of range for int32"),
    ],
)
def test_integer_out_of_range_names_the_field(message: Message, path: str, reason: str) -> None:
    error = refusal(message, 9)
    assert error.path == path
    assert reason in str(error)


def test_every_width_has_its_range() -> None:
    error = refusal(FindCoordinatorRequest(key_type=128), 4)
    assert "128 is out of range for int8" in str(error)
    error = refusal(InitProducerIdRequest(producer_id=2**63), 4)
    assert "9223372036854775808 is out of range for int64" in str(error)
    error = refusal(BrokerRegistrationRequest(listeners=[Listener(port=-1)]), 4)
    assert error.path == "listeners[0].port"
    assert "-1 is out of range for uint16" in str(error)


def test_integers_in_an_array_are_checked_one_by_one() -> None:
    forgotten = ForgottenTopic(topic="orders", partitions=[0, 2**31])
    error = refusal(FetchRequest(forgotten_topics_data=[forgotten]), 7)
    assert error.path == "forgotten_topics_data[0].partitions[1]"


def test_none_is_refused_in_versions_that_have_no_null() -> None:
    request = MetadataRequest(topics=None)
    assert request.encode_bytes(1)[:4] == b"\xff\xff\xff\xff"
    error = refusal(request, 0)
    assert error.path == "topics"
    assert "None where this version allows none" in str(error)


@pytest.mark.parametrize("version", [8, 9])
def test_string_is_at_most_32767_bytes_of_utf8(version: int) -> None:
    assert ProduceRequest(transactional_id="x" * 32767).encode(version)
    error = refusal(ProduceRequest(transactional_id="é" * 16384), version)
    assert error.path == "transactional_id"
    assert "32768 bytes of UTF-8, 32767 at most" in str(error)


@pytest.mark.parametrize("version", [8, 9])
def test_string_without_utf8_is_refused(version: int) -> None:
    error = refusal(ProduceRequest(transactional_id="\ud800"), version)
    assert error.path == "transactional_id"
    assert "can't be UTF-8" in str(error)


def test_value_that_the_version_can_not_carry_is_refused() -> None:
    request = FindCoordinatorRequest(coordinator_keys=["group"])
    error = refusal(request, 3)
    assert error.path == "coordinator_keys"
    assert "not in this version" in str(error)
    assert request.encode(4)


def test_ignorable_value_that_the_version_can_not_carry_is_dropped() -> None:
    named = OffsetCommitRequestTopic(name="orders", topic_id=b"\x01" * 16)
    request = OffsetCommitRequest(group_id="group", topics=[named])
    decoded = OffsetCommitRequest.decode(request.encode_bytes(9), 9)
    assert decoded.topics[0].name == "orders"
    assert decoded.topics[0].topic_id == bytes(16)


def test_default_may_stand_in_versions_without_the_field() -> None:
    assert UpdateFeaturesRequest(validate_only=False).encode(0)
    assert refusal(UpdateFeaturesRequest(validate_only=True), 0).path == "validate_only"


@pytest.mark.parametrize("fields", [{"5": b""}, {5: "text"}, {-1: b""}, {2**32: b""}])
def test_unknown_tagged_fields_map_tags_to_bytes(fields: Any) -> None:
    topic = MetadataRequestTopic(name="orders", unknown_tagged_fields=fields)
    error = refusal(MetadataRequest(topics=[topic]), 12)
    assert error.path == "topics[0].unknown_tagged_fields"


@pytest.mark.parametrize("version", [2, 14])
def test_unknown_version_says_which_are_known(version: int) -> None:
    error = refusal(ProduceRequest(), version)
    assert "unknown version: ProduceRequest has versions 3-13" in str(error)


def test_unknown_tagged_fields_are_refused_by_a_version_without_tags() -> None:
    request = MetadataRequest(topics=None, unknown_tagged_fields={7: b"x"})
    with pytest.raises(ProtocolError, match="has no tags"):
        request.encode(1)
