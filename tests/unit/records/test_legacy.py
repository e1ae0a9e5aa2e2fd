"""The formats before 0.11: what golden bytes do not show, damage above all."""

import gzip
import struct
import zlib
from types import ModuleType

import lz4.frame
import pytest

from pyclient.errors import CorruptRecordError
from pyclient.records.batch import iter_batches
from pyclient.records.compression import Codec
from pyclient.records.legacy import LegacyBatch


def message(
    offset: int,
    value: bytes | None,
    *,
    key: bytes | None = None,
    magic: int = 1,
    attributes: int = 0,
    timestamp: int = 1000,
) -> bytes:
    """One message in an old format."""
    body = struct.pack(">bb", magic, attributes)
    if magic == 1:
        body += struct.pack(">q", timestamp)
    for payload in (key, value):
        body += (
            struct.pack(">i", -1) if payload is None else struct.pack(">i", len(payload)) + payload
        )
    return struct.pack(">qiI", offset, len(body) + 4, zlib.crc32(body)) + body


def wrapper(offset: int, inner: bytes, *, magic: int = 1, attributes: int = 0) -> bytes:
    """A compressed message that holds others."""
    return message(offset, gzip.compress(inner), magic=magic, attributes=attributes | Codec.GZIP)


def test_a_message_is_a_batch_of_its_own(twin: ModuleType) -> None:
    data = message(5, b"value", key=b"key", timestamp=77)
    (batch,) = iter_batches(data + message(6, b"cut off")[:-1])
    batch.check_crc()
    assert (batch.magic, batch.base_offset, batch.last_offset, batch.next_offset) == (1, 5, 5, 6)
    assert (batch.size_in_bytes, batch.max_timestamp, batch.timestamp_type) == (len(data), 77, 0)
    assert (batch.producer_id, batch.is_control, batch.is_transactional) == (-1, False, False)
    crc = struct.unpack_from(">I", data, 12)[0]
    assert batch.decode("topic", 4) == [
        ("topic", 4, -1, 5, 77, 0, b"key", b"value", [], crc, 3, 5, -1)
    ]


def test_the_first_format_has_no_timestamps(twin: ModuleType) -> None:
    (record,) = LegacyBatch(message(5, None, magic=0)).decode()
    assert (record.timestamp, record.timestamp_type, record.value) == (-1, -1, None)


def test_inner_offsets_are_relative_in_the_second_format(twin: ModuleType) -> None:
    inner = b"".join(message(index, b"%d" % index) for index in (0, 2, 3))  # 1 was compacted away
    batch = LegacyBatch(wrapper(103, inner))
    assert [record.offset for record in batch.decode()] == [100, 102, 103]
    assert (batch.base_offset, batch.last_offset) == (100, 103)
    assert [record.offset for record in batch.decode(from_offset=102)] == [102, 103]


def test_a_producers_wrapper_has_no_offset_yet(twin: ModuleType) -> None:
    inner = b"".join(message(index, b"x") for index in range(3))
    assert [record.offset for record in LegacyBatch(wrapper(0, inner)).decode()] == [0, 1, 2]


def test_inner_offsets_are_absolute_in_the_first_format(twin: ModuleType) -> None:
    inner = b"".join(message(index, b"x", magic=0) for index in (100, 102))
    batch = LegacyBatch(wrapper(102, inner, magic=0))
    assert [record.offset for record in batch.decode()] == [100, 102]


def test_under_append_time_the_wrappers_stamp_counts(twin: ModuleType) -> None:
    inner = message(0, b"a", timestamp=1) + message(1, b"b", timestamp=2)
    records = LegacyBatch(wrapper(1, inner, attributes=0x08)).decode()
    assert [(record.timestamp, record.timestamp_type) for record in records] == [(1000, 1)] * 2


def test_messages_are_read_piece_by_piece(twin: ModuleType) -> None:
    inner = b"".join(message(index, b"x") for index in range(5))
    decoder = LegacyBatch(wrapper(4, inner)).decoder(from_offset=1)
    assert decoder.remaining == 4
    assert [record.offset for record in decoder.read(3)] == [1, 2, 3]
    assert [record.offset for record in decoder.read()] == [4]
    assert decoder.read() == []
    assert decoder.remaining == 0


def test_the_first_formats_wrong_lz4_checksum_is_accepted(twin: ModuleType) -> None:
    frame = bytearray(lz4.frame.compress(message(9, b"value", magic=0), store_size=False))
    frame[6] ^= 0x55  # its producers took the magic into the sum
    data = message(9, bytes(frame), magic=0, attributes=Codec.LZ4)
    assert [record.value for record in LegacyBatch(data).decode()] == [b"value"]
    with pytest.raises(CorruptRecordError, match="lz4"):
        LegacyBatch(message(9, bytes(frame), magic=1, attributes=Codec.LZ4)).decode()


def test_a_wrong_checksum_is_noticed(twin: ModuleType) -> None:
    data = bytearray(message(5, b"value"))
    data[-1] ^= 1
    with pytest.raises(CorruptRecordError, match="checksum") as caught:
        LegacyBatch(b"pad" + data, 3).check_crc()
    assert (caught.value.base_offset, caught.value.position) == (5, 3)


def test_a_bomb_is_refused(twin: ModuleType) -> None:
    batch = LegacyBatch(wrapper(0, message(0, bytes(1 << 20))))
    with pytest.raises(CorruptRecordError, match="more than 1000 bytes"):
        batch.decode(max_expanded=1000)


BROKEN = {
    "an empty set": wrapper(5, b""),
    "no set at all": message(5, None, attributes=Codec.GZIP),
    "a message cut off": wrapper(5, message(0, b"x")[:-1]),
    "a header cut off": wrapper(5, message(0, b"x")[:10]),
    "another format inside": wrapper(5, message(0, b"x", magic=0)),
    "a wrapper in a wrapper": wrapper(5, wrapper(0, message(0, b"x"))),
    "messages before offset 0": wrapper(5, message(9, b"x")),
    "a negative offset inside": wrapper(5, message(-1, b"x")),
    "messages beyond the last offset": wrapper(5, message(2**63 - 1, b"x") + message(1, b"y")),
    "zstd": message(5, b"x", attributes=Codec.ZSTD),
    "an unknown codec": message(5, b"x", attributes=7),
    "damaged data": message(5, b"\x1f\x8bnonsense", attributes=Codec.GZIP),
}


@pytest.mark.parametrize("name", BROKEN)
def test_a_broken_wrapper_is_corrupt(name: str, twin: ModuleType) -> None:
    batch = LegacyBatch(b"pad" + BROKEN[name], 3)
    with pytest.raises(CorruptRecordError) as caught:
        batch.decode()
    assert caught.value.position == 3


@pytest.mark.parametrize("size", [-2, 100, 2**31 - 1])
def test_a_payload_longer_than_its_message_is_corrupt(size: int, twin: ModuleType) -> None:
    data = bytearray(message(5, b"value"))
    struct.pack_into(">i", data, 26, size)  # the key's length
    with pytest.raises(CorruptRecordError) as caught:
        LegacyBatch(data)
    assert caught.value.base_offset == 5


def test_a_message_longer_than_its_payloads_is_corrupt(twin: ModuleType) -> None:
    data = bytearray(message(5, b"value") + b"\0")
    struct.pack_into(">i", data, 8, len(data) - 12)
    with pytest.raises(CorruptRecordError, match="1 bytes lie behind"):
        LegacyBatch(data)
