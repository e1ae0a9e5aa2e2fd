"""Frames and headers around a message, and records that pass through untouched."""

import pytest

from pyclient.errors import ProtocolError
from pyclient.protocol.frame import frame_length, request_frame, response_frame
from pyclient.protocol.header import (
    RequestHeader,
    ResponseHeader,
    request_header_version,
    response_header_version,
)
from pyclient.protocol.messages.api_versions import ApiVersionsRequest, ApiVersionsResponse
from pyclient.protocol.messages.group_records import OffsetCommitKey
from pyclient.protocol.messages.heartbeat import HeartbeatRequest, HeartbeatResponse
from pyclient.protocol.messages.produce import (
    PartitionProduceData,
    ProduceRequest,
    TopicProduceData,
)


class FileRange:
    """Record bytes that are still in a file."""

    nbytes = 1000


def produce(records: object) -> ProduceRequest:
    partition = PartitionProduceData(records=records)  # type: ignore[arg-type]
    return ProduceRequest(topic_data=[TopicProduceData(partition_data=[partition])])


def test_request_frame_is_length_header_and_body() -> None:
    request = HeartbeatRequest(group_id="group", member_id="member")
    frame = b"".join(request_frame(request, 4, 7, "client"))  # type: ignore[arg-type]
    assert frame_length(frame, 0, 1000) == len(frame) - 4
    header, position = RequestHeader.decode_from(frame, 4, 2)
    assert header == RequestHeader(
        request_api_key=12, request_api_version=4, correlation_id=7, client_id="client"
    )
    assert HeartbeatRequest.decode(frame[position:], 4) == request


def test_response_frame_is_length_header_and_body() -> None:
    frame = b"".join(response_frame(HeartbeatResponse(error_code=27), 4, 7))  # type: ignore[arg-type]
    assert frame_length(frame, 0, 1000) == len(frame) - 4
    header, position = ResponseHeader.decode_from(frame, 4, 1)
    assert header.correlation_id == 7
    assert HeartbeatResponse.decode(frame[position:], 4).error_code == 27


def test_header_is_flexible_with_its_message() -> None:
    assert [request_header_version(HeartbeatRequest, version) for version in (3, 4)] == [1, 2]
    assert [response_header_version(HeartbeatResponse, version) for version in (3, 4)] == [0, 1]


def test_api_versions_response_header_is_never_flexible() -> None:
    assert [response_header_version(ApiVersionsResponse, version) for version in (2, 3)] == [0, 0]
    assert [request_header_version(ApiVersionsRequest, version) for version in (2, 3)] == [1, 2]


def test_client_id_is_not_compact_in_a_flexible_header() -> None:
    assert RequestHeader(client_id="me").encode_bytes(2)[8:] == b"\0\x02me" + b"\0"
    assert RequestHeader(client_id=None).encode_bytes(2)[8:] == b"\xff\xff" + b"\0"


def test_a_record_is_no_request() -> None:
    with pytest.raises(ProtocolError, match="OffsetCommitKey is not a request"):
        request_frame(OffsetCommitKey(), 0, 1, None)


@pytest.mark.parametrize("version", [8, 9, 13])
def test_records_are_a_part_of_their_own_and_the_same_object(version: int) -> None:
    records = bytearray(b"batch")
    parts = request_frame(produce(records), version, 1, None)
    assert any(part is records for part in parts)


@pytest.mark.parametrize("version", [8, 9, 13])
def test_pieces_of_records_are_counted_and_kept_apart(version: int) -> None:
    pieces = [b"batch one", memoryview(b"batch two")]
    parts = request_frame(produce(pieces), version, 1, None)
    assert [part for part in parts if any(part is piece for piece in pieces)] == pieces
    whole = request_frame(produce(b"batch onebatch two"), version, 1, None)
    assert b"".join(parts) == b"".join(whole)  # type: ignore[arg-type]


@pytest.mark.parametrize("version", [8, 9, 13])
def test_a_range_of_a_file_counts_into_the_length_unread(version: int) -> None:
    held = FileRange()
    parts = request_frame(produce(held), version, 1, None)
    assert any(part is held for part in parts)
    in_memory = sum(len(part) for part in parts if isinstance(part, bytes))
    assert frame_length(parts[0], 0, 10_000) == in_memory - 4 + 1000  # type: ignore[arg-type]


@pytest.mark.parametrize("version", [8, 9, 13])
def test_decoded_records_are_a_view_of_the_buffer(version: int) -> None:
    buffer = bytearray(produce(b"batch").encode_bytes(version))
    records = ProduceRequest.decode(buffer, version).topic_data[0].partition_data[0].records
    assert isinstance(records, memoryview)
    assert records.obj is buffer
    assert records == b"batch"


def test_length_is_unknown_until_its_four_bytes_are_there() -> None:
    assert frame_length(b"\0\0\0", 0, 100) is None
    assert frame_length(b"\0\0\0\x05", 0, 100) == 5
    assert frame_length(b"skip\0\0\0\x05", 4, 100) == 5


@pytest.mark.parametrize(
    "length", [b"\xff\xff\xff\xff", b"\x80\0\0\0", b"\0\0\0\x65", b"\x7f\xff\xff\xff"]
)
def test_negative_or_too_large_a_frame_is_refused_before_anything_is_read(length: bytes) -> None:
    with pytest.raises(ProtocolError, match="at most 100 are allowed"):
        frame_length(length, 0, 100)
