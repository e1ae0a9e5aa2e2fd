"""Fsync: which files are durable, and from when on."""

import os
from collections.abc import Sequence
from unittest.mock import Mock

import pytest

from broker_stub.log import log_manager
from broker_stub.log.batch.append_info import AppendOrigin
from broker_stub.log.files.open_files import OpenFiles
from pyclient.errors import KafkaStorageError
from tests.support.logs import (
    FlushRequests,
    append,
    batch,
    config,
    create,
    marker,
    open_log,
    open_manager,
    transactional_batch,
)

INDEX_SUFFIXES = (".index", ".timeindex")


class SyncedFiles(OpenFiles):
    """Records which files were synced, in order."""

    def __init__(self) -> None:
        super().__init__()
        self.synced: list[str] = []

    def sync(self, path: str) -> None:
        self.synced.append(os.path.basename(path))
        super().sync(path)


def test_a_sealed_segment_is_synced_with_its_indexes_also_when_its_records_were_before(tmp_path):
    files = SyncedFiles()
    log = open_log(tmp_path / "orders-0", segment_bytes=150, files=files)
    for _ in range(3):
        append(log, batch(b"a" * 60))
        log.flush()
    for name in (f"{offset:020d}{suffix}" for offset in (0, 1) for suffix in INDEX_SUFFIXES):
        assert name in files.synced


def test_a_clean_stop_syncs_the_indexes_of_the_last_segment_too(tmp_path):
    files = SyncedFiles()
    log = open_log(tmp_path / "orders-0", files=files)
    append(log)
    log.flush()
    files.synced.clear()
    log.close()
    assert {f"{0:020d}{suffix}" for suffix in INDEX_SUFFIXES} <= set(files.synced)
    assert files.synced[-1] == "orders-0"  # with the names of all of them


def test_a_log_that_nothing_came_to_is_closed_as_it_is(tmp_path):
    append(log := open_log(tmp_path / "orders-0"))
    log.close()
    files = SyncedFiles()
    log = open_log(tmp_path / "orders-0", clean=True, recovery_point=1, files=files)
    log.close()
    assert files.synced == []
    log = open_log(tmp_path / "orders-0", clean=True, recovery_point=1, files=files)
    log.assign_leader_epoch(7)
    log.close()
    assert "leader-epoch-checkpoint" in files.synced


def test_records_are_synced_also_when_an_index_of_theirs_was_removed(tmp_path, caplog):
    manager = open_manager(tmp_path, segment_bytes=300, index_interval_bytes=1)
    log = create(manager)
    for _ in range(4):
        append(log, batch(b"a" * 60))  # the third one rolls, and asks for a flush
    indexes = [tmp_path / "orders-0" / f"{0:020d}{suffix}" for suffix in INDEX_SUFFIXES]
    before = [index.read_bytes() for index in indexes]
    for index in indexes:
        index.unlink()
    manager.run_due()
    assert log.recovery_point == 4
    while manager.run_due() == 0:
        pass
    assert caplog.text.count("rebuilding index") == 1
    assert [index.read_bytes() for index in indexes] == before
    manager.close()


@pytest.mark.parametrize("suffix", [".log", ".txnindex"])
def test_a_flush_fails_if_a_file_is_missing_that_cannot_be_rebuilt_while_serving(tmp_path, suffix):
    log = open_log(tmp_path / "orders-0", segment_bytes=150)
    append(log, transactional_batch(b"a"), origin=AppendOrigin.COORDINATOR)
    append(log, marker(committed=False), origin=AppendOrigin.COORDINATOR)
    append(log, batch(b"a" * 60))
    (tmp_path / "orders-0" / f"{0:020d}{suffix}").unlink()
    with pytest.raises(KafkaStorageError, match="cannot sync"):
        log.flush()
    assert log.recovery_point == 0


# --- when a flush is asked for -------------------------------------------------------------------


def test_flush_is_due_after_so_many_messages(tmp_path):
    log = open_log(tmp_path / "orders-0", flush_messages=3)
    assert [append(log, batch(b"a", b"b")).flush_due for _ in range(2)] == [False, True]
    log.flush()
    assert not append(log).flush_due
    assert log.recovery_point == 4


def test_flush_ms_asks_once_for_a_flush_of_unflushed_records(tmp_path):
    requests = FlushRequests()
    log = open_log(tmp_path / "orders-0", flush_ms=500, request_flush=requests)
    append(log)
    append(log)
    assert requests == [(log, 500)]
    log.flush()
    append(log)
    assert requests == [(log, 500), (log, 500)]


def test_flush_ms_that_is_set_or_lowered_asks_for_a_flush_of_what_waits(tmp_path):
    requests = FlushRequests()
    log = open_log(tmp_path / "orders-0", request_flush=requests)
    log.update_config(config(flush_ms=500))
    assert requests == []  # nothing waits
    log.update_config(config())
    append(log)
    for flush_ms in (3_600_000, 100, 200):
        log.update_config(config(flush_ms=flush_ms))
    append(log)
    assert requests == [(log, 3_600_000), (log, 100)]
    log.flush()
    append(log)
    assert requests[2:] == [(log, 200)]


def test_a_flush_is_asked_for_again_when_the_write_of_the_first_batch_failed(tmp_path, monkeypatch):
    requests = FlushRequests()
    log = open_log(tmp_path / "orders-0", flush_ms=500, request_flush=requests)
    with monkeypatch.context() as patched:
        patched.setattr(os, "pwrite", Mock(side_effect=OSError(28, "No space left on device")))
        with pytest.raises(KafkaStorageError):
            append(log)
    append(log)
    assert requests == [(log, 500)]


def test_flush_ms_asks_for_a_flush_of_what_a_crash_left_unsynced(tmp_path):
    append(log := open_log(tmp_path / "orders-0"))
    log.flush()
    append(log)
    log.abandon()
    requests = FlushRequests()
    found = {"request_flush": requests, "flush_ms": 300}
    log = open_log(tmp_path / "orders-0", recovery_point=1, **found)
    assert requests == [(log, 300)]
    log.close()
    requests.clear()
    open_log(tmp_path / "orders-0", clean=True, recovery_point=2, **found)
    assert requests == []


def test_a_flush_of_nothing_is_no_reason_not_to_ask_for_the_next(tmp_path):
    append(log := open_log(tmp_path / "orders-0"))
    log.abandon()
    requests = FlushRequests()
    log = open_log(
        tmp_path / "orders-0", log_start_offset=9, request_flush=requests, flush_ms=300
    )  # it ends before that: it is emptied
    log.flush()
    requests.clear()
    append(log)
    assert requests == [(log, 300)]


def test_what_a_crash_left_unsynced_counts_for_flush_messages(tmp_path):
    append(log := open_log(tmp_path / "orders-0"))
    log.abandon()
    log = open_log(tmp_path / "orders-0", flush_messages=2)
    assert append(log).flush_due


def test_a_sync_that_could_not_begin_is_asked_for_again(tmp_path, monkeypatch):
    requests = FlushRequests()
    files = OpenFiles()
    log = open_log(tmp_path / "orders-0", request_flush=requests, files=files)
    append(log)
    with monkeypatch.context() as patched:
        patched.setattr(files, "sync", Mock(side_effect=OSError(24, "Too many open files")))
        with pytest.raises(KafkaStorageError, match="Too many open files"):
            log.flush()
    ((asked_by, delay_ms),) = requests
    assert (asked_by, delay_ms > 0) == (log, True)
    log.flush()
    assert log.recovery_point == 1


class AtOnceFiles(SyncedFiles):
    """Counts syncs of the whole file system, which work or not."""

    def __init__(self, works: bool) -> None:
        super().__init__()
        self.works = works
        self.syncs_at_once = 0

    def sync_all(self, descriptors: Sequence[int]) -> bool:
        self.syncs_at_once += 1
        return self.works and super().sync_all(descriptors) is not None


@pytest.mark.parametrize("works", [True, False])
def test_a_stop_with_many_changed_logs_syncs_the_file_system_once(tmp_path, monkeypatch, works):
    monkeypatch.setattr(log_manager, "_SYNC_AT_ONCE_MIN", 3)
    files = AtOnceFiles(works)
    manager = open_manager(tmp_path, files=files)
    for partition in range(3):
        append(create(manager, partition=partition))
    files.synced.clear()
    manager.close()
    assert files.syncs_at_once == 1
    logs_synced = files.synced.count(f"{0:020d}.log")
    assert logs_synced == (0 if works else 3)  # one by one, where that did not work
    manager = open_manager(tmp_path)
    assert manager.was_clean
    assert [manager.get("orders", number).log_end_offset for number in range(3)] == [1, 1, 1]


def test_a_stop_that_syncs_at_once_still_notices_a_lost_transaction_index(tmp_path, monkeypatch):
    monkeypatch.setattr(log_manager, "_SYNC_AT_ONCE_MIN", 1)
    manager = open_manager(tmp_path, files=AtOnceFiles(works=True))
    log = create(manager)
    append(log, transactional_batch(b"a"), origin=AppendOrigin.COORDINATOR)
    append(log, marker(committed=False), origin=AppendOrigin.COORDINATOR)
    seal = log.seal

    def seal_and_lose() -> bool:
        changed = seal()
        (tmp_path / "orders-0" / f"{0:020d}.txnindex").unlink()
        return changed

    monkeypatch.setattr(type(log), "seal", lambda self: seal_and_lose())
    with pytest.raises(KafkaStorageError, match="txnindex"):
        manager.close()
