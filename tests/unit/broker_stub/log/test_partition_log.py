"""One partition's log: appending, rolling, indexing, reading, and a disk that refuses."""

import base64
import os

import pytest

from broker_stub.log.batch.append_info import AppendOrigin
from broker_stub.log.batch.header import read_header
from broker_stub.log.files.open_files import OpenFiles
from broker_stub.log.partition_log import AppendInfo
from pyclient.errors import KafkaStorageError, OffsetOutOfRangeError, RecordBatchTooLargeError
from tests.support.logs import (
    NOW_MS,
    TOPIC_ID,
    FlushRequests,
    append,
    batch,
    open_log,
    read_batches,
    read_values,
)

# --- appending -----------------------------------------------------------------------------------


def test_append_assigns_offsets_and_leader_epoch_in_the_callers_buffer(tmp_path):
    log = open_log(tmp_path / "orders-0")
    append(log, batch(b"a", b"b"))
    buffer = batch(b"c", b"d", b"e")
    info = append(log, memoryview(buffer), leader_epoch=3)
    assert info == AppendInfo(2, 4, -1, 0)
    header = read_header(buffer)
    assert (header.base_offset, header.leader_epoch) == (2, 3)
    assert (tmp_path / "orders-0" / "00000000000000000000.log").read_bytes()[
        -len(buffer) :
    ] == buffer


def test_append_takes_a_read_only_buffer_too(tmp_path):
    log = open_log(tmp_path / "orders-0")
    append(log)
    append(log, bytes(batch(b"b")))
    assert read_values(log) == {0: b"value", 1: b"b"}


def test_several_batches_of_the_broker_itself_are_one_write(tmp_path):
    log = open_log(tmp_path / "orders-0")
    info = append(log, batch(b"a", b"b") + batch(b"c"), origin=AppendOrigin.COORDINATOR)
    assert (info.first_offset, info.last_offset) == (0, 2)
    assert [found.base_offset for found in read_batches(log)] == [0, 2]


def test_the_folder_comes_with_the_first_append(tmp_path):
    folder = tmp_path / "orders-0"
    log = open_log(folder)
    assert not folder.exists()
    append(log)
    assert sorted(os.listdir(folder)) == [
        "00000000000000000000.index",
        "00000000000000000000.log",
        "00000000000000000000.timeindex",
        "leader-epoch-checkpoint",
        "partition.metadata",
    ]
    topic_id = base64.urlsafe_b64encode(TOPIC_ID).decode().rstrip("=")
    assert (folder / "partition.metadata").read_text() == f"version: 0\ntopic_id: {topic_id}"
    assert (folder / "leader-epoch-checkpoint").read_text() == "0\n1\n0 0\n"


def test_log_append_time_stamps_the_batch_and_renews_its_checksum(tmp_path):
    log = open_log(tmp_path / "orders-0", message_timestamp_type="LogAppendTime")
    info = append(log, batch(b"a", timestamps=[5]), now_ms=NOW_MS + 9)
    assert info.log_append_time_ms == NOW_MS + 9
    (found,) = read_batches(log)
    assert found.crc_is_valid()
    assert [(r.timestamp, r.timestamp_type) for r in found.decode()] == [(NOW_MS + 9, 1)]


def test_batches_larger_than_a_segment_are_refused(tmp_path):
    log = open_log(tmp_path / "orders-0", segment_bytes=100)
    with pytest.raises(RecordBatchTooLargeError, match="100"):
        append(log, batch(bytes(100)))
    assert log.log_end_offset == 0


def test_a_refused_append_leaves_the_log_as_it_was(tmp_path):
    log = open_log(tmp_path / "orders-0")
    append(log)
    damaged = batch(b"a")
    damaged[-1] ^= 1
    with pytest.raises(Exception, match="checksum"):
        append(log, batch(b"b") + damaged, origin=AppendOrigin.COORDINATOR)
    assert read_values(log) == {0: b"value"}
    assert log.log_end_offset == 1


# --- rolling -------------------------------------------------------------------------------------


def test_a_segment_is_rolled_before_it_would_exceed_its_size(tmp_path):
    size = len(batch(b"a"))
    log = open_log(tmp_path / "orders-0", segment_bytes=2 * size)
    for _ in range(5):
        append(log, batch(b"a"))
    assert [segment.base_offset for segment in log.segments] == [0, 2, 4]
    assert [segment.size for segment in log.segments] == [2 * size, 2 * size, size]
    assert read_values(log) == dict.fromkeys(range(5), b"a")


def test_a_segment_is_rolled_when_record_time_has_passed_segment_ms(tmp_path):
    log = open_log(tmp_path / "orders-0", segment_ms=1000)
    for later_ms in (0, 1000, 1001, 1002):
        append(log, batch(b"a", timestamps=[NOW_MS + later_ms]))
    assert [segment.base_offset for segment in log.segments] == [0, 2]


def test_without_timestamps_the_wall_clock_rolls(tmp_path):
    log = open_log(tmp_path / "orders-0", segment_ms=1000)
    for later_ms in (0, 1000, 1001):
        append(log, batch(b"a", timestamps=[-1]), now_ms=NOW_MS + later_ms)
    assert [segment.base_offset for segment in log.segments] == [0, 2]


def test_without_timestamps_the_roll_time_restarts_with_the_broker(tmp_path):
    folder = tmp_path / "orders-0"
    log = open_log(folder, segment_ms=1000)
    append(log, batch(b"a", timestamps=[-1]))
    log.close()
    log = open_log(folder, clean=True, segment_ms=1000)
    for later_ms in (5000, 6000, 6001):
        append(log, batch(b"a", timestamps=[-1]), now_ms=NOW_MS + later_ms)
    assert [segment.base_offset for segment in log.segments] == [0, 3]


def test_a_segment_is_rolled_when_its_index_is_full(tmp_path):
    log = open_log(tmp_path / "orders-0", index_interval_bytes=0, segment_index_bytes=24)
    for count in range(5):
        append(log, batch(b"a", timestamps=[NOW_MS + count]))
    assert [segment.base_offset for segment in log.segments] == [0, 2, 4]


def test_a_roll_seals_the_indexes_takes_a_snapshot_and_asks_for_a_flush(tmp_path):
    requests = FlushRequests()
    folder = tmp_path / "orders-0"
    log = open_log(folder, segment_bytes=150, request_flush=requests)
    append(log, batch(b"a" * 60))
    append(log, batch(b"b" * 60))
    assert requests == [(log, 0)]
    assert (folder / "00000000000000000001.snapshot").exists()
    assert (folder / "00000000000000000000.timeindex").stat().st_size == 12


def test_a_flush_syncs_up_to_the_end_and_moves_the_recovery_point(tmp_path):
    log = open_log(tmp_path / "orders-0", segment_bytes=150)
    for _ in range(4):
        append(log, batch(b"a" * 60))
    assert log.recovery_point == 0
    log.flush()
    assert log.recovery_point == 4


# --- indexing ------------------------------------------------------------------------------------


def test_index_entries_follow_kafkas_append_rule(tmp_path):
    size = len(batch(b"a"))
    log = open_log(tmp_path / "orders-0", index_interval_bytes=2 * size)
    for count in range(8):
        append(log, batch(b"a", timestamps=[NOW_MS + count]))
    (segment,) = log.segments
    # An entry is due once more than two batches came since the last: the 4th and 7th get one.
    assert segment.offset_index.entries() == [(3, 3 * size), (6, 6 * size)]
    assert segment.time_index.entries() == [(NOW_MS + 3, 3), (NOW_MS + 6, 6)]


def test_a_batch_in_the_middle_of_an_append_is_indexed_by_its_own_position(tmp_path):
    size = len(batch(b"a"))
    log = open_log(tmp_path / "orders-0", index_interval_bytes=0)
    append(log, batch(b"a") * 3, origin=AppendOrigin.COORDINATOR)
    (segment,) = log.segments
    assert segment.offset_index.entries() == [(1, size), (2, 2 * size)]


# --- reading -------------------------------------------------------------------------------------


def test_a_read_starts_with_the_batch_that_contains_the_offset(tmp_path):
    log = open_log(tmp_path / "orders-0")
    append(log, batch(b"a"))
    append(log, batch(b"b", b"c", b"d"))
    assert [found.base_offset for found in read_batches(log, 2)] == [1]


def test_a_read_returns_whole_batches_within_its_bytes(tmp_path):
    size = len(batch(b"a"))
    log = open_log(tmp_path / "orders-0")
    for _ in range(5):
        append(log, batch(b"a"))
    read = log.read(1, 3 * size - 1)
    assert read.records is not None
    assert (read.records.nbytes, read.next_offset) == (2 * size, 3)


def test_the_first_batch_comes_even_if_it_is_larger_than_asked(tmp_path):
    log = open_log(tmp_path / "orders-0")
    append(log, batch(b"a"))
    append(log, batch(b"b"))
    read = log.read(0, 1)
    assert read.records is not None
    assert (read.records.nbytes, read.next_offset) == (len(batch(b"a")), 1)
    assert log.read(0, 1, min_one_batch=False).records is None


def test_a_read_ends_at_its_limit_offset(tmp_path):
    log = open_log(tmp_path / "orders-0", segment_bytes=400)
    for _ in range(9):
        append(log, batch(b"a"))
    assert log.read(0, 1 << 20, limit_offset=2).next_offset == 2
    assert log.read(2, 1 << 20, limit_offset=2).records is None
    assert log.read(8, 1 << 20, limit_offset=3).records is None


def test_a_batch_that_the_limit_cuts_is_not_returned(tmp_path):
    log = open_log(tmp_path / "orders-0")
    append(log, batch(b"a"))
    append(log, batch(b"b", b"c"))
    read = log.read(0, 1 << 20, limit_offset=2)
    assert read.next_offset == 1
    assert log.read(1, 1 << 20, limit_offset=2).records is None


def test_a_read_at_the_end_is_empty_and_beyond_it_out_of_range(tmp_path):
    log = open_log(tmp_path / "orders-0")
    assert log.read(0, 100).records is None
    append(log)
    assert log.read(1, 100).records is None
    with pytest.raises(OffsetOutOfRangeError, match="0 to 1, not 2"):
        log.read(2, 100)


@pytest.mark.parametrize("max_bytes", [1, 100, 333, 5000])
def test_reading_on_gives_every_record_once_across_segments(tmp_path, max_bytes):
    log = open_log(tmp_path / "orders-0", segment_bytes=1000, index_interval_bytes=200)
    for count in range(50):
        append(log, batch(*[b"x" * (count % 7 * 20)] * (count % 3 + 1)))
    found = read_batches(log, 0, max_bytes)
    assert len(found) == 50
    assert [one.base_offset for one in found[1:]] == [one.next_offset for one in found[:-1]]
    assert found[-1].next_offset == log.log_end_offset


def test_every_offset_is_found_through_the_index(tmp_path):
    log = open_log(tmp_path / "orders-0", segment_bytes=2000, index_interval_bytes=150)
    for count in range(60):
        append(log, batch(*[b"x"] * (count % 4 + 1)))
    for offset in range(log.log_end_offset):
        first = read_batches(log, offset, 1)[0]
        assert first.base_offset <= offset <= first.last_offset


def test_a_read_survives_with_one_open_file(tmp_path):
    log = open_log(tmp_path / "orders-0", files=OpenFiles(capacity=1), segment_bytes=300)
    for count in range(12):
        append(log, batch(b"%d" % count))
    assert read_values(log) == {count: b"%d" % count for count in range(12)}


# --- offsets -------------------------------------------------------------------------------------


def test_the_high_watermark_moves_forward_and_not_past_the_end(tmp_path):
    log = open_log(tmp_path / "orders-0")
    log.append(batch(b"a", b"b"), leader_epoch=0, now_ms=NOW_MS)
    assert log.high_watermark == 0
    assert log.advance_high_watermark(9)
    assert log.high_watermark == 2
    assert not log.advance_high_watermark(1)
    assert log.high_watermark == 2


def test_delete_records_moves_the_start_up_to_the_high_watermark(tmp_path):
    log = open_log(tmp_path / "orders-0")
    for _ in range(5):
        append(log)
    assert log.delete_records(2) == 2
    with pytest.raises(OffsetOutOfRangeError):
        log.read(1, 100)
    with pytest.raises(OffsetOutOfRangeError, match="up to 5, not 6"):
        log.delete_records(6)
    assert log.delete_records(1) == 2
    assert log.delete_records(-1) == 5


def test_a_new_leader_epoch_is_noted_with_its_first_offset(tmp_path):
    folder = tmp_path / "orders-0"
    log = open_log(folder)
    append(log, leader_epoch=0)
    append(log, leader_epoch=0)
    append(log, leader_epoch=4)
    assert log.leader_epochs.entries == ((0, 0), (4, 2))
    assert (folder / "leader-epoch-checkpoint").read_text() == "0\n2\n0 0\n4 2\n"


def test_a_leader_epoch_can_be_noted_before_its_first_batch(tmp_path):
    log = open_log(tmp_path / "orders-0")
    log.assign_leader_epoch(2)
    assert log.leader_epochs.end_offset_for(2, log.log_end_offset) == (2, 0)
    append(log, leader_epoch=2)
    assert log.leader_epochs.entries == ((2, 0),)


# --- trouble -------------------------------------------------------------------------------------


def test_a_closed_log_refuses_by_name(tmp_path):
    log = open_log(tmp_path / "orders-0")
    append(log)
    log.close()
    with pytest.raises(KafkaStorageError, match="orders-0 is closed"):
        append(log)
    with pytest.raises(KafkaStorageError, match="orders-0 is closed"):
        log.read(0, 1)


def test_a_folder_that_cannot_be_made_is_a_storage_error(tmp_path):
    (tmp_path / "file").write_text("no folder")
    log = open_log(tmp_path / "file" / "orders-0")
    with pytest.raises(KafkaStorageError, match="cannot create"):
        append(log)
    assert log.log_end_offset == 0
