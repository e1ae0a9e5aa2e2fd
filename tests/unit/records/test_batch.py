"""Reading batches: the header, whole and cut-off fetches, damage of every kind."""

import struct
from types import ModuleType
from typing import Any

import pytest

from pyclient import _twin
from pyclient.errors import CorruptRecordError
from pyclient.records.batch import RecordBatch, iter_batches
from pyclient.records.compression import Codec
from pyclient.records.header import HEADER, HEADER_SIZE
from tests.support.batches import CODECS, build_batch, facts, numbered_records

COUNT_AT = 57


def resealed(batch: bytes, at: int, layout: str, value: int) -> bytes:
    """The batch with one number of its header changed, and the checksum made right again."""
    changed = bytearray(batch)
    struct.pack_into(layout, changed, at, value)
    struct.pack_into(">I", changed, 17, _twin.crc32c(bytes(changed[21:])))
    return bytes(changed)


def with_records(records: bytes, count: int = 1, **options: Any) -> bytes:
    """A batch whose records are these bytes."""
    batch = bytearray(build_batch([(5, None, None, [])], base_offset=100, **options)[:HEADER_SIZE])
    batch += records
    struct.pack_into(">i", batch, 8, len(batch) - 12)
    return resealed(bytes(batch), COUNT_AT, ">i", count)


def test_the_header_is_read_without_its_records(twin: ModuleType) -> None:
    data = build_batch(numbered_records(4), base_offset=1000, leader_epoch=2, producer_id=3)
    batch = RecordBatch(data)
    assert (batch.magic, batch.position, batch.size_in_bytes) == (2, 0, len(data))
    assert (batch.base_offset, batch.last_offset, batch.next_offset) == (1000, 1003, 1004)
    assert (batch.record_count, batch.leader_epoch, batch.producer_id) == (4, 2, 3)
    assert (batch.codec, batch.timestamp_type, batch.attributes) == (0, 0, 0)
    flags = (batch.is_transactional, batch.is_control, batch.has_delete_horizon)
    assert flags == (False, False, False)
    assert batch.has_producer_id
    assert batch.data == data
    assert "base_offset=1000" in repr(batch)


def test_sequences_wrap_at_31_bits(twin: ModuleType) -> None:
    def last_sequence(base_sequence: int) -> int:
        return RecordBatch(build_batch(base_sequence=base_sequence)).last_sequence

    assert last_sequence(10) == 12
    assert last_sequence(2**31 - 2) == 0
    assert last_sequence(-1) == -1


def test_a_batch_is_found_anywhere_in_a_buffer(twin: ModuleType) -> None:
    data = build_batch(numbered_records(5))
    batch = RecordBatch(b"before" + data + b"after", 6)
    assert batch.crc_is_valid()
    assert facts(batch.decode()) == numbered_records(5)


def test_records_know_where_they_come_from(twin: ModuleType) -> None:
    data = build_batch([(7, b"k", b"vv", [("é", b"123")])], base_offset=9, leader_epoch=4)
    assert RecordBatch(data).decode("orders", 2) == [
        ("orders", 2, 4, 9, 7, 0, b"k", b"vv", [("é", b"123")], None, 1, 2, 5)
    ]


def test_records_below_the_asked_offset_are_left_out(twin: ModuleType) -> None:
    batch = RecordBatch(build_batch(numbered_records(10), base_offset=50))
    assert [record.offset for record in batch.decode(from_offset=57)] == [57, 58, 59]
    assert batch.decode(from_offset=60) == []


@pytest.mark.parametrize("codec", CODECS)
def test_records_are_read_piece_by_piece(codec: Codec, twin: ModuleType) -> None:
    records = numbered_records(10)
    decoder = RecordBatch(build_batch(records, codec=codec)).decoder(from_offset=2)
    assert decoder.remaining == 10
    assert decoder.read(0) == []
    assert facts(decoder.read(3)) == records[2:5]
    assert decoder.remaining == 5
    assert facts(decoder.read(100)) == records[5:]
    assert decoder.remaining == 0
    assert decoder.read() == []


def test_a_fetch_holds_batches_of_all_kinds_and_may_end_in_half_a_batch(twin: ModuleType) -> None:
    batches = [build_batch(codec=codec, base_offset=3 * codec) for codec in CODECS]
    fetched = b"".join(batches)
    whole = list(iter_batches(fetched))
    assert [batch.base_offset for batch in whole] == [0, 3, 6, 9, 12]
    assert sum(batch.size_in_bytes for batch in whole) == len(fetched)
    last = len(batches[-1])
    for cut in range(1, last + 1):
        assert len(list(iter_batches(fetched[:-cut]))) == 4
    assert [batch.base_offset for batch in iter_batches(fetched, len(batches[0]))] == [3, 6, 9, 12]


def test_an_empty_fetch_has_no_batches(twin: ModuleType) -> None:
    assert list(iter_batches(b"")) == []


def test_every_damaged_bit_behind_the_checksum_is_noticed(twin: ModuleType) -> None:
    data = bytearray(build_batch(base_offset=70))
    for position in range(17, len(data)):
        data[position] ^= 1 << position % 8
        batch = RecordBatch(b"pad" + data, 3)
        assert not batch.crc_is_valid()
        with pytest.raises(CorruptRecordError, match="checksum") as caught:
            batch.check_crc()
        assert (caught.value.base_offset, caught.value.position) == (70, 3)
        data[position] ^= 1 << position % 8
    RecordBatch(data).check_crc()


@pytest.mark.parametrize("length", [-1, 0, 13, 48, -(2**31)])
def test_a_length_that_no_batch_has_is_corrupt(length: int, twin: ModuleType) -> None:
    good = build_batch()
    bad = bytearray(build_batch(base_offset=30))
    struct.pack_into(">i", bad, 8, length)
    batches = iter_batches(good + bad)
    next(batches)
    with pytest.raises(CorruptRecordError) as caught:
        next(batches)
    assert (caught.value.base_offset, caught.value.position) == (30, len(good))


def test_a_later_format_is_corrupt(twin: ModuleType) -> None:
    data = bytearray(build_batch())
    data[16] = 3
    with pytest.raises(CorruptRecordError, match="magic 3"):
        list(iter_batches(data))


def test_half_a_batch_alone_is_corrupt(twin: ModuleType) -> None:
    data = build_batch(base_offset=8)
    with pytest.raises(CorruptRecordError):
        RecordBatch(data[:60])
    with pytest.raises(CorruptRecordError) as caught:
        RecordBatch(data[:-1])
    assert caught.value.base_offset == 8


RECORD = bytes([16, 0, 0, 0, 2, ord("k"), 2, ord("v"), 0])
MAX_VARINT = b"\xff\xff\xff\xff\x0f"  # -2^31
BROKEN_RECORDS = {
    "nothing where a record should be": b"",
    "a length that is cut off": b"\xff",
    "a length that never ends": b"\xff" * 11,
    "a length of more than 32 bits": b"\xff\xff\xff\xff\x1f" + bytes(9),
    "a negative length": b"\x01" + RECORD[1:],
    "a length of zero": b"\x00",
    "a length beyond the data": b"\x12" + RECORD[1:],
    "the largest length": b"\xfe\xff\xff\xff\x0f" + RECORD[1:],
    "a record shorter than its fields": b"\x0e" + RECORD[1:],
    "a record longer than its fields": b"\x12" + RECORD[1:] + b"\x00",
    "a timestamp that never ends": b"\x1e\x00" + b"\xff" * 14,
    "a timestamp of 65 bits": b"\x20\x00" + b"\xff" * 9 + b"\x03" + bytes(5),
    "an offset of more than 32 bits": b"\x1e\x00\x00" + b"\xff" * 5 + b"\x01" + bytes(8),
    "a key longer than its record": b"\x10\x00\x00\x00\x20kvvv\x00",
    "a key of the smallest length": b"\x1a\x00\x00\x00" + MAX_VARINT + b"\x01\x00\x00\x00\x00",
    "a value longer than its record": b"\x10\x00\x00\x00\x02k\x20v\x00",
    "a value of length -2": b"\x10\x00\x00\x00\x02k\x03v\x00",
    "a negative header count": b"\x10\x00\x00\x00\x02k\x02v\x01",
    "more headers than bytes": b"\x10\x00\x00\x00\x02k\x02v\x7e",
    "a header count that is cut off": b"\x10\x00\x00\x00\x02k\x02v\x80",
    "a null header name": b"\x14\x00\x00\x00\x02k\x02v\x02\x01\x01",
    "a header name beyond the record": b"\x14\x00\x00\x00\x02k\x02v\x02\x10\x01",
    "a header value beyond the record": b"\x14\x00\x00\x00\x02k\x02v\x02\x00\x10",
    "bytes behind the headers": b"\x16\x00\x00\x00\x02k\x02v\x02\x00\x01\x00",
    "bytes behind the records": RECORD + b"\x00",
}


@pytest.mark.parametrize("name", BROKEN_RECORDS)
def test_broken_records_are_corrupt(name: str, twin: ModuleType) -> None:
    batch = RecordBatch(b"pad" + with_records(BROKEN_RECORDS[name]), 3)
    assert batch.crc_is_valid()
    with pytest.raises(CorruptRecordError) as caught:
        batch.decode()
    assert caught.value.base_offset == 100
    behind = len(RECORD) if name == "bytes behind the records" else 0
    assert caught.value.position == 3 + HEADER_SIZE + behind


def test_the_same_record_unbroken_is_read(twin: ModuleType) -> None:
    (record,) = RecordBatch(with_records(RECORD)).decode()
    assert (record.offset, record.key, record.value) == (100, b"k", b"v")


def test_the_second_records_damage_is_placed_where_it_is(twin: ModuleType) -> None:
    with pytest.raises(CorruptRecordError, match="record 1 of 2, byte 9") as caught:
        RecordBatch(with_records(RECORD + b"\xff", 2)).decode()
    assert caught.value.position == HEADER_SIZE + len(RECORD)


@pytest.mark.parametrize("count", [2, 2**31 - 1, -1, -(2**31)])
def test_a_count_that_lies_is_corrupt_and_allocates_nothing(count: int, twin: ModuleType) -> None:
    batch = RecordBatch(with_records(RECORD, count))
    with pytest.raises(CorruptRecordError) as caught:
        batch.decode()
    assert caught.value.base_offset == 100


def test_a_batch_that_compaction_emptied_has_no_records(twin: ModuleType) -> None:
    batch = RecordBatch(with_records(b"", 0))
    assert batch.decode() == []
    assert batch.next_offset == 101


def test_damage_in_a_compressed_batch_is_placed_at_its_records(twin: ModuleType) -> None:
    data = bytearray(build_batch(numbered_records(50), codec=Codec.GZIP, base_offset=11))
    data[HEADER_SIZE + 20] ^= 0xFF
    with pytest.raises(CorruptRecordError, match="gzip") as caught:
        RecordBatch(data).decode()
    assert (caught.value.base_offset, caught.value.position) == (11, HEADER_SIZE)


def test_a_header_name_that_is_not_utf8_does_not_stop_a_partition(twin: ModuleType) -> None:
    record = b"\x18\x00\x00\x00\x02k\x02v\x02\x04\xffa\x01"
    (read,) = RecordBatch(with_records(record)).decode()
    assert read.headers == [("\ufffda", None)]  # as Java reads it
    assert read.serialized_header_size == 2


def test_offsets_and_timestamps_wrap_as_in_java(twin: ModuleType) -> None:
    record = b"\x10\x00\x02\x02\x02k\x02v\x00"  # both deltas are 1
    largest = 2**63 - 1
    data = bytearray(with_records(record))
    struct.pack_into(">q", data, 0, largest)
    data = bytearray(resealed(bytes(data), 27, ">q", largest))
    (read,) = RecordBatch(data).decode(from_offset=-(2**63))
    assert (read.offset, read.timestamp) == (-(2**63), -(2**63))


def test_an_unknown_codec_is_corrupt(twin: ModuleType) -> None:
    data = resealed(build_batch(), 21, ">h", 7)
    with pytest.raises(CorruptRecordError, match="codec 7"):
        RecordBatch(data).decode()


def test_the_header_is_61_bytes() -> None:
    assert HEADER.size == HEADER_SIZE == 61


# --- what a producer wrote -----------------------------------------------------------------------


def verify(batch: bytes) -> None:
    RecordBatch(batch).decoder().verify_produced()


@pytest.mark.parametrize("codec", CODECS)
@pytest.mark.parametrize("count", [1, 3000])
def test_records_as_a_producer_writes_them_pass(codec: Codec, count: int, twin: ModuleType) -> None:
    verify(build_batch(numbered_records(count), codec=codec))


def test_some_may_have_been_read_before(twin: ModuleType) -> None:
    decoder = RecordBatch(build_batch(numbered_records(10), base_offset=50)).decoder()
    assert len(decoder.read(4)) == 4
    decoder.verify_produced()
    assert decoder.remaining == 0


@pytest.mark.parametrize("announced", [0, 2, 4])
def test_a_count_that_is_not_theirs_is_found(announced: int, twin: ModuleType) -> None:
    with pytest.raises(CorruptRecordError):
        verify(resealed(build_batch(numbered_records(3)), COUNT_AT, ">i", announced))


@pytest.mark.parametrize("deltas", [(1,), (0, 0), (0, 2), (1, 0), (-1, 0), (0, 1, 3)])
def test_offsets_that_do_not_follow_each_other_are_found(
    deltas: tuple[int, ...], twin: ModuleType
) -> None:
    # Length, attributes, timestamp, offset, no key, no value, no headers; -1 is 1 in zigzag.
    zigzag = [2 * delta if delta >= 0 else 1 for delta in deltas]
    records = b"".join(bytes([12, 0, 0, delta, 1, 1, 0]) for delta in zigzag)
    with pytest.raises(CorruptRecordError, match="another's offset"):
        verify(with_records(records, len(deltas)))


@pytest.mark.parametrize(
    ("times", "latest"),
    [
        ([5], 5),
        ([5, 9, 7], 9),
        ([9, 5], 9),
        ([-1, -1], -1),
        ([-1, 3], 3),
        ([2**63 - 1, 0], 2**63 - 1),
        ([*range(3000), 0], 2999),
    ],
)
@pytest.mark.parametrize("codec", [Codec.NONE, Codec.GZIP])
def test_the_latest_timestamp_is_told(
    times: list[int], latest: int, codec: Codec, twin: ModuleType
) -> None:
    records = [(time, b"k", b"v", []) for time in times]
    batch = bytearray(build_batch(records, codec=codec))
    struct.pack_into(">q", batch, 35, 123)  # whatever the header says
    assert RecordBatch(batch).decoder().verify_produced() == latest


def test_the_latest_timestamp_wraps_as_consumers_read_it(twin: ModuleType) -> None:
    record = b"\x10\x00\x02\x00\x02k\x02v\x00"  # the delta of its time is 1
    data = resealed(with_records(record), 27, ">q", 2**63 - 1)
    assert RecordBatch(data).decoder().verify_produced() == -1
    assert RecordBatch(data).decode()[0].timestamp == -(2**63)


def test_the_latest_timestamp_is_of_the_records_that_are_left(twin: ModuleType) -> None:
    records = [(time, b"k", b"v", []) for time in (9, 5, 7)]
    decoder = RecordBatch(build_batch(records)).decoder()
    decoder.read(1)
    assert decoder.verify_produced() == 7


def test_records_that_the_broker_stamped_have_its_time(twin: ModuleType) -> None:
    records = [(time, b"k", b"v", []) for time in (9, 5)]
    batch = build_batch(records, log_append_time_ms=3)
    assert RecordBatch(batch).decoder().verify_produced() == 3
