"""The sparse indexes: Kafka's bytes, lookups over file and memory, when they are full."""

import os
from pathlib import Path

import pytest

from broker_stub.log.files.open_files import OpenFiles
from broker_stub.log.index.index_file import SPILL_BYTES, DamagedIndexError
from broker_stub.log.index.sparse_index import OffsetIndex, TimeIndex

BASE = 1000


def offset_index(folder: Path, stored_bytes: int = 0, max_bytes: int = 1 << 20) -> OffsetIndex:
    path = str(folder / "00000000000000001000.index")
    return OffsetIndex(path, BASE, OpenFiles(), max_bytes=max_bytes, stored_bytes=stored_bytes)


def time_index(folder: Path, stored_bytes: int = 0, max_bytes: int = 1 << 20) -> TimeIndex:
    path = str(folder / "00000000000000001000.timeindex")
    return TimeIndex(path, BASE, OpenFiles(), max_bytes=max_bytes, stored_bytes=stored_bytes)


def test_offset_entries_are_stored_as_kafka_does(tmp_path):
    index = offset_index(tmp_path)
    index.append(1009, 0x1234)
    index.spill()
    assert Path(index.path).read_bytes() == bytes.fromhex("00000009 00001234")


def test_time_entries_are_stored_as_kafka_does(tmp_path):
    index = time_index(tmp_path)
    index.maybe_append(0x0102030405060708, 1009)
    index.spill()
    assert Path(index.path).read_bytes() == bytes.fromhex("0102030405060708 00000009")


@pytest.mark.parametrize("spilled", [0, 1, 2, 3])
def test_lookup_finds_the_last_entry_at_or_before_wherever_entries_are(tmp_path, spilled):
    index = offset_index(tmp_path)
    for count, (offset, position) in enumerate([(1010, 100), (1020, 200), (1030, 300)]):
        index.append(offset, position)
        if count + 1 == spilled:
            index.spill()
    assert index.lookup(1009) is None
    assert index.lookup(1010) == (1010, 100)
    assert index.lookup(1029) == (1020, 200)
    assert index.lookup(5000) == (1030, 300)
    assert index.lookup_position(99) is None
    assert index.lookup_position(299) == (1020, 200)


def test_entries_go_to_the_file_in_pieces_and_stay_findable(tmp_path):
    index = offset_index(tmp_path)
    count = 3 * SPILL_BYTES // 8 + 5
    for number in range(count):
        index.append(BASE + number * 2, number * 10)
    assert Path(index.path).stat().st_size == 3 * SPILL_BYTES
    assert len(index) == count
    for number in range(0, count, 97):
        assert index.lookup(BASE + number * 2 + 1) == (BASE + number * 2, number * 10)


def test_a_reopened_index_goes_on_where_it_was(tmp_path):
    index = offset_index(tmp_path)
    index.append(1010, 100)
    index.spill()
    reopened = offset_index(tmp_path, stored_bytes=8)
    reopened.append(1020, 200)
    reopened.spill()
    assert reopened.entries() == [(10, 100), (20, 200)]
    assert reopened.last() == (1020, 200)


def test_the_time_index_keeps_only_later_timestamps(tmp_path):
    index = time_index(tmp_path)
    for timestamp_ms, offset in [(50, 1001), (50, 1002), (40, 1003), (60, 1004)]:
        index.maybe_append(timestamp_ms, offset)
    assert index.entries() == [(50, 1), (60, 4)]


def test_time_lookup_starts_at_the_entry_that_may_hold_the_record(tmp_path):
    index = time_index(tmp_path)
    index.maybe_append(50, 1001)
    index.maybe_append(60, 1004)
    assert [index.lookup(at) for at in (49, 50, 59, 60, 99)] == [
        (-1, 1000),
        (50, 1001),
        (50, 1001),
        (60, 1004),
        (60, 1004),
    ]


def test_an_empty_time_index_knows_no_time(tmp_path):
    assert time_index(tmp_path).last() == (-1, BASE)


def test_the_time_index_is_full_one_entry_early_because_a_roll_forces_one(tmp_path):
    index = time_index(tmp_path, max_bytes=36)
    index.maybe_append(1, 1001)
    assert not index.is_full
    index.maybe_append(2, 1002)
    assert index.is_full


def test_the_offset_index_is_full_at_its_size(tmp_path):
    index = offset_index(tmp_path, max_bytes=16)
    index.append(1001, 1)
    assert not index.is_full
    index.append(1002, 2)
    assert index.is_full


def test_an_index_that_ends_in_zeros_is_not_ordered(tmp_path):
    (tmp_path / "00000000000000001000.index").write_bytes(
        bytes.fromhex("00000009 00001234") + bytes(8)
    )
    assert not offset_index(tmp_path, stored_bytes=16).is_ordered_at_the_end()


def test_entries_stay_in_memory_when_the_disk_refuses(tmp_path):
    index = offset_index(tmp_path / "missing")
    for number in range(SPILL_BYTES // 8 + 1):
        index.append(BASE + number, number)
    (tmp_path / "missing").mkdir()
    index.append(9999, 9999)
    assert Path(index.path).stat().st_size == SPILL_BYTES + 16
    assert index.lookup(BASE + 3) == (BASE + 3, 3)


def test_a_file_that_is_cut_off_while_it_is_mapped_is_an_error_and_no_crash(tmp_path):
    index = offset_index(tmp_path)
    for number in range(SPILL_BYTES // 8):
        index.append(BASE + number, number)
    assert index.lookup(BASE + 3) == (BASE + 3, 3)
    os.truncate(index.path, 8)
    with pytest.raises(DamagedIndexError, match="has lost entries"):
        index.lookup(BASE + 3)
