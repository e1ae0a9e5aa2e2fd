"""What is on the disk for good, and when: files that a power loss must not take."""

import os

from broker_stub.log.open_files import OpenFiles
from tests.support.logs import append, batch, open_log

INDEX_SUFFIXES = (".index", ".timeindex")


class SyncedFiles(OpenFiles):
    """Tells which files were synced, in order."""

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
