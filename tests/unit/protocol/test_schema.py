"""Declared classes as Python objects."""

import pytest

from pyclient.protocol.messages.fetch import FetchResponse, PartitionData
from pyclient.protocol.messages.heartbeat import HeartbeatRequest, HeartbeatResponse
from pyclient.protocol.messages.metadata import MetadataRequest, MetadataRequestTopic
from pyclient.protocol.primitives import VersionRange
from pyclient.varint import decode_uvarint, encode_uvarint


def test_fields_have_kafkas_defaults() -> None:
    request = MetadataRequest()
    assert request.topics == []
    assert request.allow_auto_topic_creation is True
    assert PartitionData().last_stable_offset == -1
    assert PartitionData().records is None


def test_instances_do_not_share_their_defaults() -> None:
    one, other = MetadataRequest(), MetadataRequest()
    assert one.topics is not None
    one.topics.append(MetadataRequestTopic(name="orders"))
    assert other.topics == []
    first, second = PartitionData(), PartitionData()
    first.current_leader.leader_id = 5
    assert second.current_leader.leader_id == -1


def test_decoded_instances_do_not_share_their_defaults() -> None:
    body = FetchResponse().encode_bytes(4)
    one, other = FetchResponse.decode(body, 4), FetchResponse.decode(body, 4)
    one.node_endpoints.append(None)  # type: ignore[arg-type]
    assert other.node_endpoints == []


def test_fields_are_given_by_name_only() -> None:
    with pytest.raises(TypeError):
        HeartbeatRequest("group")  # type: ignore[misc]
    with pytest.raises(TypeError, match="group"):
        HeartbeatRequest(group="group")  # type: ignore[call-arg]


def test_a_misspelt_attribute_is_refused() -> None:
    with pytest.raises(AttributeError):
        HeartbeatRequest().group = "group"  # type: ignore[attr-defined]


def test_messages_are_equal_by_value_and_class() -> None:
    assert HeartbeatRequest(group_id="a") == HeartbeatRequest(group_id="a")
    assert HeartbeatRequest(group_id="a") != HeartbeatRequest(group_id="b")
    assert HeartbeatRequest() != HeartbeatResponse()
    assert HeartbeatRequest() != HeartbeatRequest(unknown_tagged_fields={9: b""})


def test_messages_can_change_and_so_are_no_keys() -> None:
    with pytest.raises(TypeError, match="unhashable"):
        hash(HeartbeatRequest())


def test_repr_can_be_read_back() -> None:
    request = MetadataRequest(topics=[MetadataRequestTopic(name="orders")])
    names = {"MetadataRequest": MetadataRequest, "MetadataRequestTopic": MetadataRequestTopic}
    assert eval(repr(request), names) == request
    tagged = MetadataRequestTopic(unknown_tagged_fields={9: b"x"})
    assert eval(repr(tagged), names) == tagged


@pytest.mark.parametrize(
    ("text", "inside", "outside"),
    [
        ("0+", [0, 32767], [-1]),
        ("3+", [3, 4], [2]),
        ("3-13", [3, 13], [2, 14]),
        ("12", [12], [11, 13]),
        ("none", [], [-1, 0, 1]),
    ],
)
def test_versions_are_read_as_kafka_writes_them(
    text: str, inside: list[int], outside: list[int]
) -> None:
    versions = VersionRange(text)
    assert [version for version in inside + outside if version in versions] == inside
    assert repr(versions) == text


@pytest.mark.parametrize("value", [0, 1, 127, 128, 300, 1023, 1024, 2**14, 2**21 - 1, 2**32 - 1])
def test_varint_survives_the_round_trip(value: int) -> None:
    encoded = encode_uvarint(value)
    assert decode_uvarint(b"skip" + encoded, 4) == (value, 4 + len(encoded))
