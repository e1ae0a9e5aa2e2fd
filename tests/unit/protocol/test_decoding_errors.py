"""Bytes that are not the message they claim to be: what is wrong, and where."""

import struct
import tracemalloc

import pytest

from pyclient.errors import ProtocolError
from pyclient.protocol.messages.api_versions import ApiVersionsRequest, ApiVersionsResponse
from pyclient.protocol.messages.consumer_group_heartbeat import ConsumerGroupHeartbeatResponse
from pyclient.protocol.messages.fetch import FetchResponse
from pyclient.protocol.messages.heartbeat import HeartbeatRequest
from pyclient.protocol.messages.metadata import (
    MetadataRequest,
    MetadataRequestTopic,
    MetadataResponse,
    MetadataResponsePartition,
    MetadataResponseTopic,
)
from pyclient.protocol.messages.produce import (
    PartitionProduceResponse,
    ProduceResponse,
    TopicProduceResponse,
)
from pyclient.protocol.schema import Message


def refusal(cls: type[Message], body: bytes, version: int) -> ProtocolError:
    with pytest.raises(ProtocolError) as caught:
        cls.decode(body, version)
    assert caught.value.message_name == cls.__name__
    assert caught.value.version == version
    return caught.value


def test_truncated_integer_names_the_field_and_the_byte() -> None:
    error = refusal(HeartbeatRequest, b"\0\x05group\0\0", 0)
    assert (error.path, error.offset) == ("generation_id", 7)
    assert str(error) == (
        "HeartbeatRequest v0, field generation_id, byte 7: truncated: 4 bytes wanted, 2 left"
    )


def test_empty_body_is_truncated_at_its_first_field() -> None:
    error = refusal(HeartbeatRequest, b"", 0)
    assert (error.path, error.offset) == ("group_id", 0)


def test_every_proper_prefix_of_a_message_is_refused() -> None:
    partition = MetadataResponsePartition(replica_nodes=[1, 2], isr_nodes=[1])
    topic = MetadataResponseTopic(name="orders", partitions=[partition])
    for version in MetadataResponse.versions:
        body = MetadataResponse(topics=[topic]).encode_bytes(version)
        for end in range(len(body)):
            refusal(MetadataResponse, body[:end], version)


@pytest.mark.parametrize(
    ("body", "reason"),
    [
        (b"\0\x09orders", "length 9 is more than the 6 bytes left"),
        (b"\x7f\xfforders", "length 32767 is more than the 6 bytes left"),
        (b"\xff\xfeorders", "negative length -2"),
        (b"\x80\0orders", "negative length -32768"),
        (b"\xff\xfforders", "null where this version allows none"),
    ],
)
def test_length_of_a_string_that_can_not_be(body: bytes, reason: str) -> None:
    error = refusal(HeartbeatRequest, body, 0)
    assert (error.path, error.offset) == ("group_id", 0)
    assert reason in str(error)


@pytest.mark.parametrize(
    ("body", "reason"),
    [
        (b"\x09orders", "length 8 is more than the 6 bytes left"),
        (b"\xff\xff\xff\xff\x0forders", "length 4294967294 is more than the 6 bytes left"),
        (b"\0orders", "null where this version allows none"),
        (b"\x80", "truncated inside a varint"),
        (b"\xff\xff\xff\xff\x1f", "a varint above 32 bits"),
        (b"\xff\xff\xff\xff\xff\x01", "a varint longer than five bytes"),
    ],
)
def test_compact_length_that_can_not_be(body: bytes, reason: str) -> None:
    error = refusal(HeartbeatRequest, body, 4)
    assert (error.path, error.offset) == ("group_id", 0)
    assert reason in str(error)


@pytest.mark.parametrize(
    ("body", "reason"),
    [
        (b"\0\0\0\x03\0\x01a\0\x01", "count 3 is more than the 5 bytes left"),
        (b"\x7f\xff\xff\xff\0\0", "count 2147483647 is more than the 2 bytes left"),
        (b"\xff\xff\xff\xfe\0\0", "negative count -2"),
        (b"\xff\xff\xff\xff", "null where this version allows none"),
    ],
)
def test_count_of_an_array_that_can_not_be(body: bytes, reason: str) -> None:
    error = refusal(MetadataRequest, body, 0)
    assert (error.path, error.offset) == ("topics", 0)
    assert reason in str(error)


def test_count_weighs_the_least_bytes_that_an_element_takes() -> None:
    # An aborted transaction is 16 bytes: 20 bytes can't hold two of them.
    partition = struct.pack(">ihqq", 0, 0, 0, 0) + struct.pack(">i", 2) + bytes(20)
    body = struct.pack(">i", 0) + struct.pack(">ihi", 1, 0, 1) + partition
    error = refusal(FetchResponse, body, 4)
    assert error.path == "responses[0].partitions[0].aborted_transactions"


@pytest.mark.parametrize(
    ("cls", "version", "body"),
    [
        # Zeros are good elements: without a look at the count, they would be built to the end.
        (MetadataRequest, 0, b"\x7f\xff\xff\xff" + bytes(200_000)),
        (MetadataRequest, 12, b"\xff\xff\xff\xff\x0f" + bytes(200_000)),
        (ApiVersionsResponse, 0, b"\0\0\x7f\xff\xff\xff" + bytes(200_000)),
    ],
)
def test_nothing_is_allocated_for_a_count_whose_bytes_are_not_there(
    cls: type[Message], version: int, body: bytes
) -> None:
    refusal(cls, body, version)  # compiles the decoder
    tracemalloc.start()
    try:
        refusal(cls, body, version)
        _, peak = tracemalloc.get_traced_memory()
    finally:
        tracemalloc.stop()
    assert peak < 100_000


def test_a_long_array_takes_no_more_memory_than_its_values() -> None:
    replicas = list(range(300, 100_300))  # beyond the integers that Python shares
    partition = MetadataResponsePartition(replica_nodes=replicas)
    response = MetadataResponse(topics=[MetadataResponseTopic(partitions=[partition])])
    body = response.encode_bytes(1)
    MetadataResponse.decode(body, 1)  # compiles the decoder
    tracemalloc.start()
    try:
        assert MetadataResponse.decode(body, 1) == response
        _, peak = tracemalloc.get_traced_memory()
    finally:
        tracemalloc.stop()
    assert peak < 60 * len(replicas)  # an int is 28 bytes, its place in a tuple and a list 16


def test_invalid_utf8_is_found_where_it_is() -> None:
    error = refusal(HeartbeatRequest, b"\0\x03ab\xff" + bytes(6), 0)
    assert (error.path, error.offset) == ("group_id", 4)
    assert "invalid UTF-8" in str(error)


def test_path_leads_through_arrays_and_structs() -> None:
    broken = PartitionProduceResponse(index=0, error_message="x")
    good = TopicProduceResponse(name="a")
    bad = TopicProduceResponse(name="b", partition_responses=[broken])
    body = ProduceResponse(responses=[good, bad]).encode_bytes(8).replace(b"\0\x01x", b"\0\x01\xff")
    error = refusal(ProduceResponse, body, 8)
    assert error.path == "responses[1].partition_responses[0].error_message"


def test_path_leads_through_a_nullable_struct() -> None:
    body = ConsumerGroupHeartbeatResponse().encode_bytes(0)[:-2] + b"\x01\x05"
    assert refusal(ConsumerGroupHeartbeatResponse, body, 0).path == "assignment.topic_partitions"


def test_trailing_bytes_are_counted() -> None:
    body = HeartbeatRequest(group_id="group").encode_bytes(0)
    error = refusal(HeartbeatRequest, body + b"\0\0\0", 0)
    assert error.offset == len(body)
    assert "3 trailing bytes" in str(error)


@pytest.mark.parametrize("version", [-1, 5, 1000])
def test_unknown_version_says_which_are_known(version: int) -> None:
    error = refusal(HeartbeatRequest, b"", version)
    assert "unknown version: HeartbeatRequest has versions 0-4" in str(error)


def test_offset_counts_from_the_start_of_the_message_inside_a_larger_buffer() -> None:
    with pytest.raises(ProtocolError) as caught:
        HeartbeatRequest.decode_from(b"frame and header" + b"\0\x05group\0\0", 16, 0)
    assert caught.value.offset == 7


class TestTags:
    """Of ApiVersionsRequest v3: empty strings are 1, then the tagged fields."""

    def test_must_rise(self) -> None:
        error = refusal(ApiVersionsRequest, b"\x01\x01" + b"\x02\x05\0\x05\0", 3)
        assert "tag 5 after tag 5: tags must rise" in str(error)

    def test_longer_than_the_bytes_left(self) -> None:
        error = refusal(ApiVersionsRequest, b"\x01\x01" + b"\x01\x05\x09abc", 3)
        assert error.path == "tag 5"
        assert "length 9 is more than the 3 bytes left" in str(error)

    def test_fewer_than_announced(self) -> None:
        error = refusal(ApiVersionsRequest, b"\x01\x01" + b"\x02\x05\x01a", 3)
        assert error.path == "tagged fields"
        assert "truncated" in str(error)

    @pytest.mark.parametrize("size", [7, 9])
    def test_known_field_of_another_size(self, size: int) -> None:
        # An int64 with tag 1: eight bytes, whatever the size in front says.
        body = b"\0\0\x01" + bytes(4) + b"\x01\x01" + bytes([size]) + bytes(9)
        error = refusal(ApiVersionsResponse, body, 3)
        assert error.path == "finalized_features_epoch"
        assert f"takes 8 bytes, not {size}" in str(error)


def test_the_original_stays_as_the_cause() -> None:
    with pytest.raises(ProtocolError) as caught:
        MetadataRequest.decode(b"\0\0", 0)
    assert isinstance(caught.value.__cause__, struct.error)


def test_a_good_body_still_decodes() -> None:
    request = MetadataRequest(topics=[MetadataRequestTopic(name="orders")])
    assert MetadataRequest.decode(request.encode_bytes(1), 1) == request
