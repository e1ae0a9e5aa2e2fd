"""A disk that is full, read-only or broken: an error that says so, and nothing acked is lost."""

import errno

import pytest

from broker_stub.log.partition_log import PartitionLog
from pyclient.clock import ManualClock
from pyclient.errors import KafkaStorageError
from tests.support.failing_disk import FailingDisk
from tests.support.logs import (
    NOW_MS,
    append,
    batch,
    config,
    create,
    idempotent_batch,
    open_log,
    open_manager,
    read_values,
)

ERRORS = [errno.ENOSPC, errno.EROFS, errno.EIO]
LOG = "00000000000000000000.log"


@pytest.fixture
def disk(monkeypatch) -> FailingDisk:
    return FailingDisk(monkeypatch)


def values(log: PartitionLog) -> list[bytes]:
    """All values, whose offsets have no holes."""
    found = read_values(log)
    assert list(found) == list(range(log.log_end_offset))
    return list(found.values())


@pytest.mark.parametrize("error", ERRORS)
@pytest.mark.parametrize("written", [0, 1, 61, 70])
def test_a_write_that_fails_in_the_middle_leaves_the_log_as_it_was(tmp_path, disk, error, written):
    folder = tmp_path / "orders-0"
    log = open_log(folder)
    append(log, batch(b"one"))
    size = (folder / LOG).stat().st_size
    disk.refuse(error, "pwrite", suffix=".log", bytes_before=written)
    with pytest.raises(KafkaStorageError, match="cannot append"):
        append(log, batch(b"lost"))
    assert (folder / LOG).stat().st_size == size
    assert values(log) == [b"one"]
    disk.mend()
    assert append(log, batch(b"two")).first_offset == 1
    assert values(log) == [b"one", b"two"]


@pytest.mark.parametrize("error", ERRORS)
def test_a_torn_write_that_can_not_be_cut_now_is_cut_before_the_next_one(tmp_path, disk, error):
    folder = tmp_path / "orders-0"
    log = open_log(folder)
    append(log, batch(b"one"))
    size = (folder / LOG).stat().st_size
    disk.refuse(error, "pwrite", "truncate", "ftruncate", suffix=".log", bytes_before=75)
    with pytest.raises(KafkaStorageError):
        append(log, batch(b"a much longer value, which reaches beyond the next one"))
    assert (folder / LOG).stat().st_size == size + 75
    with pytest.raises(KafkaStorageError):  # it can't be cut yet, so nothing is written over it
        append(log, batch(b"x"))
    assert values(log) == [b"one"]
    disk.mend()
    append(log, batch(b"x"))
    assert values(log) == [b"one", b"x"]
    assert values(open_log(folder)) == [b"one", b"x"]


@pytest.mark.parametrize("clean", [True, False])
def test_a_torn_write_that_was_never_cut_is_cut_at_the_next_start(tmp_path, disk, clean):
    folder = tmp_path / "orders-0"
    log = open_log(folder)
    append(log, batch(b"one"))
    disk.refuse(errno.EIO, "pwrite", "truncate", suffix=".log", bytes_before=70)
    with pytest.raises(KafkaStorageError):
        append(log, batch(b"lost"))
    if clean:
        with pytest.raises(KafkaStorageError, match="cannot write"):
            log.close()  # so the folder does not get the mark of a clean stop
    else:
        log.abandon()
    disk.mend()
    assert values(open_log(folder)) == [b"one"]


def test_an_idempotent_retry_is_written_once_after_the_disk_has_room_again(tmp_path, disk):
    log = open_log(tmp_path / "orders-0")
    append(log, idempotent_batch(0))
    disk.refuse(errno.ENOSPC, "pwrite", bytes_before=30)
    with pytest.raises(KafkaStorageError):
        append(log, idempotent_batch(1))
    disk.mend()
    assert append(log, idempotent_batch(1)).first_offset == 1
    assert append(log, idempotent_batch(1)).duplicate
    assert values(log) == [b"0", b"1"]


@pytest.mark.parametrize("error", ERRORS)
@pytest.mark.parametrize(
    ("call", "suffix"),
    [
        ("mkdir", "orders-0"),
        ("open", "partition.metadata.tmp"),
        ("replace", "leader-epoch-checkpoint.tmp"),
        ("open", ".log"),
        ("open", ".index"),
        ("ftruncate", ".timeindex"),
    ],
)
def test_a_folder_that_can_not_be_made_now_is_made_later(tmp_path, disk, error, call, suffix):
    log = open_log(tmp_path / "orders-0")
    disk.refuse(error, call, suffix=suffix)
    with pytest.raises(KafkaStorageError):
        append(log, batch(b"lost"))
    assert disk.refused == [call]
    assert log.log_end_offset == 0
    disk.mend()
    append(log, batch(b"one"))
    log.close()
    assert values(open_log(tmp_path / "orders-0", clean=True)) == [b"one"]


@pytest.mark.parametrize("error", ERRORS)
@pytest.mark.parametrize(
    ("call", "suffix"),
    [
        ("pwrite", "0.timeindex"),
        ("open", ".index"),
        ("open", ".snapshot"),
        ("open", "3.log"),
        ("ftruncate", "3.index"),
    ],
)
def test_a_segment_that_can_not_be_rolled_goes_on_when_it_can(tmp_path, disk, error, call, suffix):
    folder = tmp_path / "orders-0"
    log = open_log(folder, segment_bytes=250)
    for value in (b"one", b"two", b"three"):
        append(log, batch(value))
    disk.refuse(error, call, suffix=suffix)
    for _ in range(2):
        with pytest.raises(KafkaStorageError):
            append(log, batch(b"lost"))
    assert disk.refused == [call, call]
    assert values(log) == [b"one", b"two", b"three"]
    disk.mend()
    append(log, batch(b"four"))
    assert len(log.segments) == 2
    for clean in (False, True):
        log.abandon() if not clean else log.close()
        log = open_log(folder, clean=clean, segment_bytes=250)
        assert values(log) == [b"one", b"two", b"three", b"four"]


@pytest.mark.parametrize("clean", [True, False])
@pytest.mark.parametrize("error", [*ERRORS, errno.EMFILE])
def test_a_segment_of_which_only_a_part_could_be_made_leaves_nothing_behind(
    tmp_path, disk, error, clean
):
    folder = tmp_path / "orders-0"
    log = open_log(folder, segment_bytes=250)
    for value in (b"one", b"two"):
        append(log, batch(value))
    disk.refuse(error, "open", suffix="00000000000000000002.index")  # its .log comes first
    with pytest.raises(KafkaStorageError):
        append(log, batch(b"too long for the segment, which is to be rolled" * 2))
    disk.mend()
    append(log, batch(b"three"))  # there is room for this one: the segment goes on
    assert len(log.segments) == 1
    log.close() if clean else log.abandon()
    log = open_log(folder, clean=clean, segment_bytes=250)
    assert values(log) == [b"one", b"two", b"three"]
    assert append(log, batch(b"four")).first_offset == 3


@pytest.mark.parametrize("error", ERRORS)
def test_an_index_that_can_not_be_written_waits_in_memory(tmp_path, disk, error, caplog):
    folder = tmp_path / "orders-0"
    log = open_log(folder, index_interval_bytes=1)
    append(log)
    disk.refuse(error, "pwrite", suffix=".index", bytes_before=100)
    for _ in range(600):
        append(log)
    assert "stays in memory" in caplog.text
    assert len(values(log)) == 601
    disk.mend()
    log.close()
    reopened = open_log(folder, clean=True, recovery_point=601, index_interval_bytes=1)
    assert reopened.read(555, 1).next_offset == 556
    assert len(reopened.segments[0].offset_index.entries()) == 600


@pytest.mark.parametrize("error", ERRORS)
def test_records_are_deleted_where_the_epochs_can_not_be_written(tmp_path, disk, error, caplog):
    folder = tmp_path / "orders-0"
    log = open_log(folder)
    append(log, leader_epoch=1)
    append(log, leader_epoch=2)
    append(log, leader_epoch=2)
    disk.refuse(error, "open", "replace")
    assert log.delete_records(2) == 2
    assert "still lists epochs of deleted records" in caplog.text
    disk.mend()
    reopened = open_log(folder, log_start_offset=2)
    assert reopened.leader_epochs.entries == ((2, 2),)


@pytest.mark.parametrize("error", ERRORS)
def test_after_a_failed_sync_nothing_is_believed_until_a_restart(tmp_path, disk, error):
    """The kernel may have dropped the pages, and the next fsync would succeed."""
    manager = open_manager(tmp_path)
    log = create(manager)
    append(log, batch(b"one"))
    disk.refuse(error, "fsync", suffix=".log")
    with pytest.raises(KafkaStorageError, match="cannot sync"):
        log.flush()
    disk.mend()
    for act in (lambda: append(log, batch(b"two")), log.flush):
        with pytest.raises(KafkaStorageError, match="until the broker is restarted"):
            act()
    assert (values(log), log.recovery_point) == ([b"one"], 0)
    with pytest.raises(KafkaStorageError, match="until the broker is restarted"):
        manager.close()
    reopened = open_manager(tmp_path)
    assert not reopened.was_clean
    log = create(reopened)
    append(log, batch(b"two"))
    assert values(log) == [b"one", b"two"]
    reopened.close()


def test_a_file_system_that_does_not_sync_folders_will_do(tmp_path, disk):
    folder = tmp_path / "orders-0"
    log = open_log(folder)
    append(log)
    disk.refuse(errno.EINVAL, "fsync", suffix="orders-0")
    log.flush()
    assert disk.refused == ["fsync"]
    assert log.recovery_point == 1


def test_a_sync_that_found_no_descriptor_is_tried_again(tmp_path, disk, monkeypatch):
    log = open_log(tmp_path / "orders-0")
    append(log)
    with monkeypatch.context() as patched:

        def none_left(path, flags):
            raise OSError(errno.EMFILE, "too many open files", path)

        patched.setattr("broker_stub.log.files.open_files.OpenFile", none_left)
        with pytest.raises(KafkaStorageError, match="too many open files"):
            log.flush()
    append(log)
    log.flush()
    assert log.recovery_point == 2


@pytest.mark.parametrize("error", ERRORS)
def test_checkpoints_that_can_not_be_written_stay_as_they_were(tmp_path, disk, error, caplog):
    manager = open_manager(tmp_path)
    append(create(manager))
    manager.close()
    before = (tmp_path / "recovery-point-offset-checkpoint").read_text()
    clock = ManualClock(NOW_MS)
    manager = open_manager(tmp_path, clock=clock)
    log = create(manager)
    append(log)
    log.flush()
    disk.refuse(error, "open", "replace", suffix="checkpoint.tmp")
    clock.advance(60_000)
    manager.run_due()
    assert "housekeeping failed, will retry" in caplog.text
    with pytest.raises(KafkaStorageError, match="cannot shut down cleanly"):
        manager.close()
    disk.mend()
    assert (tmp_path / "recovery-point-offset-checkpoint").read_text() == before
    manager = open_manager(tmp_path)
    assert len(values(create(manager))) == 2
    manager.close()


@pytest.mark.parametrize("error", ERRORS)
def test_retention_that_the_disk_refuses_loses_no_record(tmp_path, disk, error):
    clock = ManualClock(NOW_MS)
    manager = open_manager(tmp_path, clock=clock, segment_bytes=200)
    log = create(manager)
    for _ in range(6):
        append(log)
    end = log.log_end_offset
    log.update_config(config(segment_bytes=200, retention_bytes=300))
    disk.refuse(error, "rename", suffix=".log")
    clock.advance(300_000)
    manager.run_due()
    assert list(read_values(log)) == list(range(end))
    disk.mend()
    clock.advance(300_000)
    manager.run_due()
    start = log.log_start_offset
    assert 0 < start < end
    assert list(read_values(log, start)) == list(range(start, end))
    manager.abandon()
    reopened = open_manager(tmp_path)
    log = create(reopened)
    assert log.log_end_offset == end
    assert list(read_values(log, start)) == list(range(start, end))
    reopened.close()
