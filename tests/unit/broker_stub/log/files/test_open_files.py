"""The bound on open files, and slices that outlive it."""

import errno
import fcntl
import gc
import os

import pytest

from broker_stub.log.files.file_slice import FileSlice
from broker_stub.log.files.open_files import OpenFiles, SyncFailedError, fsync
from pyclient.errors import KafkaStorageError


def is_open(fd: int) -> bool:
    try:
        os.fstat(fd)
    except OSError:
        return False
    return True


def test_the_least_recently_used_file_makes_room(tmp_path):
    files = OpenFiles(capacity=2)
    paths = [str(tmp_path / name) for name in "abc"]
    descriptors = [files.writer(path).fd for path in paths[:2]]
    files.writer(paths[0])
    files.writer(paths[2])
    assert len(files) == 2
    assert [is_open(fd) for fd in descriptors] == [True, False]


def test_an_evicted_file_stays_open_for_the_slice_that_holds_it(tmp_path):
    path = tmp_path / "a"
    path.write_bytes(b"0123456789")
    files = OpenFiles(capacity=1)
    held = FileSlice(files.reader(str(path)), 2, 3)
    files.writer(str(tmp_path / "b"))
    path.unlink()
    assert held.read() == b"234"
    fd = held.fd
    del held
    gc.collect()
    assert not is_open(fd)


def test_reading_uses_the_writer_where_one_is_open(tmp_path):
    files = OpenFiles()
    path = str(tmp_path / "a")
    assert files.writer(path) is files.reader(path)
    assert len(files) == 1


def test_a_map_after_growth_shows_the_new_bytes(tmp_path):
    files = OpenFiles()
    path = tmp_path / "a"
    path.write_bytes(b"one")
    assert bytes(files.map(str(path)).bytes) == b"one"
    path.write_bytes(b"one two")
    files.forget(str(path))
    assert bytes(files.map(str(path)).bytes) == b"one two"


def test_a_slice_beyond_the_end_of_its_file_is_an_error_that_says_where(tmp_path):
    path = tmp_path / "a"
    path.write_bytes(b"0123456789")
    with pytest.raises(KafkaStorageError, match="ends at byte 10"):
        FileSlice(OpenFiles().reader(str(path)), 8, 5).read()


@pytest.fixture
def synced(monkeypatch):
    """What is asked of a system that has macOS's full sync, in order."""
    calls = []
    monkeypatch.setattr(fcntl, "F_FULLFSYNC", 51, raising=False)
    monkeypatch.setattr(fcntl, "fcntl", lambda fd, command: calls.append(command))
    monkeypatch.setattr(os, "fsync", lambda fd: calls.append("fsync"))
    return calls


def test_a_sync_reaches_the_disk_itself_where_fsync_does_not(tmp_path, synced):
    fsync(str(tmp_path))
    assert synced == [51]


def test_a_file_system_without_a_full_sync_gets_the_plain_one(tmp_path, synced, monkeypatch):
    def refuse(fd, command):
        raise OSError(errno.ENOTSUP, "not supported")

    monkeypatch.setattr(fcntl, "fcntl", refuse)
    fsync(str(tmp_path))
    assert synced == ["fsync"]


def test_a_full_sync_that_fails_is_told(tmp_path, synced, monkeypatch):
    def fail(fd, command):
        raise OSError(errno.EIO, "input/output error")

    monkeypatch.setattr(fcntl, "fcntl", fail)
    with pytest.raises(SyncFailedError):
        fsync(str(tmp_path))
    assert synced == []
