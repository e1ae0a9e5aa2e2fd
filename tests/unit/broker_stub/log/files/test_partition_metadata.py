"""The file that says which topic a partition's folder belongs to."""

import pytest

from broker_stub.log.files.open_files import OpenFiles
from broker_stub.log.files.partition_metadata import (
    metadata_path,
    read_partition_metadata,
    write_partition_metadata,
)
from pyclient.errors import KafkaStorageError
from tests.support.batches import build_batch
from tests.support.logs import open_log

TOPIC_ID = bytes(range(16))


def test_what_is_written_is_read_back(tmp_path):
    write_partition_metadata(str(tmp_path), TOPIC_ID)
    assert read_partition_metadata(str(tmp_path)) == TOPIC_ID


def test_apache_kafkas_own_is_read(tmp_path):
    (tmp_path / "partition.metadata").write_text(
        "version: 0\ntopic_id: AAECAwQFBgcICQoLDA0ODw\n", encoding="utf-8"
    )
    assert read_partition_metadata(str(tmp_path)) == TOPIC_ID


def test_a_folder_without_one_has_no_id(tmp_path):
    assert read_partition_metadata(str(tmp_path)) is None


@pytest.mark.parametrize("length", range(43))
@pytest.mark.parametrize("padding", [b"", bytes(5)])
def test_a_torn_one_counts_as_none(tmp_path, length, padding):
    write_partition_metadata(str(tmp_path), TOPIC_ID)
    path = tmp_path / "partition.metadata"
    path.write_bytes(path.read_bytes()[:length] + padding)
    assert read_partition_metadata(str(tmp_path)) is None


def test_one_of_another_version_is_not_guessed_at(tmp_path):
    (tmp_path / "partition.metadata").write_text("version: 1\ntopic: x\n", encoding="utf-8")
    with pytest.raises(KafkaStorageError, match="another version"):
        read_partition_metadata(str(tmp_path))


def test_the_first_flush_of_a_log_syncs_it_before_the_folder(tmp_path):
    synced: list[str] = []

    class Files(OpenFiles):
        def sync(self, path: str) -> None:
            synced.append(path)

    folder = tmp_path / "orders-0"
    log = open_log(folder, files=Files())
    log.append(build_batch(), leader_epoch=0, now_ms=1_700_000_000_000)
    log.flush()
    assert metadata_path(str(folder)) in synced
    assert synced.index(metadata_path(str(folder))) < synced.index(str(folder))
