"""Which segments go: by time, by size, by the log's start; and what stays."""

import os
from unittest.mock import Mock

import pytest

from broker_stub.log.cleaning import retention
from broker_stub.log.cleaning.retention import delete_old_segments
from pyclient.errors import KafkaStorageError, OffsetOutOfRangeError
from tests.support.logs import NOW_MS, append, batch, idempotent_batch, open_log, read_values

SIZE = len(batch(b"a"))


def filled(folder, count=6, **values):
    """A log of one batch per segment, a second apart."""
    log = open_log(folder, segment_bytes=SIZE, **values)
    for number in range(count):
        append(log, batch(b"a", timestamps=[NOW_MS + number * 1000]))
    return log


def bases(log):
    return [segment.base_offset for segment in log.segments]


def test_segments_whose_records_are_older_than_retention_ms_go(tmp_path):
    log = filled(tmp_path / "orders-0", retention_ms=2500)
    delete_old_segments(log, NOW_MS + 5000)
    assert bases(log) == [3, 4, 5]
    assert log.log_start_offset == 3


def test_the_latest_record_of_a_segment_decides_its_age(tmp_path):
    log = open_log(tmp_path / "orders-0", segment_bytes=2 * SIZE, retention_ms=1000)
    for later_ms in (5000, 0, 0, 0):
        append(log, batch(b"a", timestamps=[NOW_MS + later_ms]))
    assert delete_old_segments(log, NOW_MS + 6000) == []
    delete_old_segments(log, NOW_MS + 6001)
    assert log.log_start_offset == 4


def test_the_oldest_segments_go_when_the_log_is_larger_than_retention_bytes(tmp_path):
    log = filled(tmp_path / "orders-0", retention_bytes=3 * SIZE + 1)
    delete_old_segments(log, NOW_MS)
    assert bases(log) == [2, 3, 4, 5]


def test_a_log_of_just_its_limit_stays(tmp_path):
    log = filled(tmp_path / "orders-0", retention_bytes=6 * SIZE)
    assert delete_old_segments(log, NOW_MS) == []


def test_when_all_records_are_too_old_the_log_is_empty_and_keeps_its_end(tmp_path):
    log = filled(tmp_path / "orders-0", retention_ms=1000)
    delete_old_segments(log, NOW_MS + 10**9)
    assert (log.log_start_offset, log.log_end_offset) == (6, 6)
    assert bases(log) == [6]
    append(log, batch(b"b"))
    assert read_values(log, 6) == {6: b"b"}


def test_an_empty_active_segment_is_not_replaced_again_and_again(tmp_path):
    log = filled(tmp_path / "orders-0", retention_ms=1000)
    delete_old_segments(log, NOW_MS + 10**9)
    assert delete_old_segments(log, NOW_MS + 2 * 10**9) == []


def test_nothing_goes_that_is_not_replicated(tmp_path):
    log = open_log(tmp_path / "orders-0", segment_bytes=SIZE, retention_ms=1)
    for _ in range(3):
        log.append(batch(b"a"), leader_epoch=0, now_ms=NOW_MS)
    log.advance_high_watermark(1)
    delete_old_segments(log, NOW_MS + 10**9)
    assert bases(log) == [1, 2]


def test_a_log_without_a_folder_has_nothing_to_delete(tmp_path):
    assert delete_old_segments(open_log(tmp_path / "orders-0"), NOW_MS) == []


def test_many_segments_go_a_few_at_a_time(tmp_path, monkeypatch):
    monkeypatch.setattr(retention, "_SEGMENTS_AT_ONCE", 2)
    log = filled(tmp_path / "orders-0", retention_ms=1)
    watched = Mock(detach_oldest=Mock(side_effect=log.detach_oldest))
    paths = delete_old_segments(watched, NOW_MS + 10**9)
    assert watched.detach_oldest.call_count == 4  # the last one found nothing
    assert bases(log) == [6]
    assert sum(path.endswith(".log.deleted") for path in paths) == 6


def test_files_that_are_out_are_told_of_when_the_disk_refuses_the_rest():
    outcomes = [["a.log.deleted"], KafkaStorageError("full"), KafkaStorageError("full")]
    watched = Mock(detach_oldest=Mock(side_effect=outcomes))
    assert delete_old_segments(watched, NOW_MS) == ["a.log.deleted"]
    with pytest.raises(KafkaStorageError):
        delete_old_segments(watched, NOW_MS)


def test_without_limits_nothing_goes(tmp_path):
    log = filled(tmp_path / "orders-0", retention_ms=-1)
    assert delete_old_segments(log, NOW_MS + 10**12) == []


@pytest.mark.parametrize("policy", [["compact"], []])
def test_without_the_policy_nothing_is_deleted_by_age_but_by_the_start(tmp_path, policy):
    log = filled(tmp_path / "orders-0", retention_ms=1, cleanup_policy=policy)
    assert delete_old_segments(log, NOW_MS + 10**9) == []
    log.delete_records(2)
    delete_old_segments(log, NOW_MS + 10**9)
    assert bases(log) == [2, 3, 4, 5]


def test_segments_before_the_start_go_after_delete_records(tmp_path):
    log = open_log(tmp_path / "orders-0", segment_bytes=2 * SIZE)
    for _ in range(6):
        append(log, batch(b"a"))
    log.delete_records(3)
    delete_old_segments(log, NOW_MS)
    assert bases(log) == [2, 4]
    assert log.log_start_offset == 3


def test_records_without_a_time_are_as_old_as_their_file(tmp_path):
    folder = tmp_path / "orders-0"
    log = open_log(folder, segment_bytes=SIZE, retention_ms=1000)
    for _ in range(3):
        append(log, batch(b"a", timestamps=[-1]))
    for number, age_s in enumerate((9, 5, 5)):
        path = folder / f"{number:020d}.log"
        os.utime(path, (NOW_MS / 1000 - age_s,) * 2)
    delete_old_segments(log, NOW_MS - 6500)
    assert bases(log) == [1, 2]


def test_files_are_renamed_at_once_with_their_snapshots_and_named_for_removal(tmp_path):
    folder = tmp_path / "orders-0"
    log = open_log(folder, segment_bytes=SIZE + 10, retention_bytes=SIZE)
    for sequence in range(3):
        append(log, idempotent_batch(sequence))
    (folder / "00000000000000000000.txnindex").write_bytes(b"")
    paths = delete_old_segments(log, NOW_MS)
    assert sorted(os.path.basename(path) for path in paths) == [
        "00000000000000000000.index.deleted",
        "00000000000000000000.log.deleted",
        "00000000000000000000.timeindex.deleted",
        "00000000000000000000.txnindex.deleted",
        "00000000000000000001.index.deleted",
        "00000000000000000001.log.deleted",
        "00000000000000000001.snapshot.deleted",
        "00000000000000000001.timeindex.deleted",
    ]
    assert sorted(os.listdir(folder)) == sorted(
        [
            *(os.path.basename(path) for path in paths),
            "00000000000000000002.index",
            "00000000000000000002.log",
            "00000000000000000002.snapshot",
            "00000000000000000002.timeindex",
            "leader-epoch-checkpoint",
            "partition.metadata",
        ]
    )


def test_a_reader_keeps_what_it_was_given_while_its_segment_is_deleted(tmp_path):
    log = filled(tmp_path / "orders-0", retention_ms=1)
    held = log.read(0, 1 << 20).records
    assert held is not None
    for path in delete_old_segments(log, NOW_MS + 10**9):
        os.unlink(path)
    assert len(held.read()) == SIZE
    with pytest.raises(OffsetOutOfRangeError, match="6 to 6, not 0"):
        log.read(0, 1)


def test_leader_epochs_of_deleted_records_are_forgotten(tmp_path):
    log = open_log(tmp_path / "orders-0", segment_bytes=SIZE, retention_bytes=2 * SIZE)
    for leader_epoch in (0, 1, 1, 1):
        append(log, batch(b"a"), leader_epoch=leader_epoch)
    delete_old_segments(log, NOW_MS)
    assert log.leader_epochs.entries == ((1, 2),)


@pytest.mark.parametrize("refused", range(1, 10))
def test_what_is_deleted_stays_deleted_when_a_rename_fails(tmp_path, monkeypatch, refused):
    folder = tmp_path / "orders-0"
    log = filled(folder, retention_ms=2500)
    renames = 0

    def rename(path, target):
        nonlocal renames
        renames += 1
        if renames >= refused:
            raise OSError(5, "Input/output error")
        os.replace(path, target)

    with monkeypatch.context() as patched:
        patched.setattr(os, "rename", rename)
        try:
            removed = delete_old_segments(log, NOW_MS + 5000)
        except OSError:
            removed = []
    assert all(os.path.exists(path) for path in removed)
    gone = [path for path in folder.glob("*.*") if path.name < f"{bases(log)[0]:020d}"]
    assert {str(path) for path in gone} == set(removed)  # of what went, every file is named
    assert bool(removed) == (log.log_start_offset > 0) == (refused > 1)
    start, end = log.log_start_offset, log.log_end_offset
    assert bases(log) == sorted(int(path.stem) for path in folder.glob("*.log"))
    log.close()
    log = open_log(folder, clean=True, recovery_point=end, segment_bytes=SIZE, retention_ms=2500)
    assert log.log_start_offset == start
    assert list(read_values(log, start)) == list(range(start, end))
    log.advance_high_watermark(end)
    delete_old_segments(log, NOW_MS + 5000)
    assert bases(log) == [3, 4, 5]
