"""The root of a data folder: its owner, its lock, the mark of a clean stop."""

import os
import subprocess
import sys

import pytest

from broker_stub.log.files.data_dir import DataDir
from pyclient.entropy import Entropy
from pyclient.errors import InconsistentClusterIdError, KafkaStorageError


def identified(folder, node_id=1, cluster_id=None) -> DataDir:
    log_dir = DataDir(str(folder))
    try:
        log_dir.identify(node_id, cluster_id, Entropy(seed=5))
        log_dir.claim()
    finally:
        log_dir.release()
    return log_dir


def test_a_new_folder_gets_ids_and_keeps_them(tmp_path):
    first = identified(tmp_path / "data")
    text = (tmp_path / "data" / "meta.properties").read_text()
    assert text.startswith(f"version=1\nnode.id=1\ncluster.id={first.cluster_id}\ndirectory.id=")
    again = identified(tmp_path / "data")
    assert (again.cluster_id, again.directory_id) == (first.cluster_id, first.directory_id)
    assert first.directory_id != bytes(16)


def test_apache_kafkas_file_is_read(tmp_path):
    (tmp_path / "meta.properties").write_text(
        "#\n#Mon Nov 16 04:53:59 UTC 2026\nnode.id=1\ndirectory.id=4pYp2B-wrybVuRwRgFB5PQ\n"
        "version=1\ncluster.id=KNgKqkj7RuSpUts3O9ADkw\n"
    )
    found = identified(tmp_path)
    assert found.cluster_id == "KNgKqkj7RuSpUts3O9ADkw"
    assert found.directory_id.hex() == "e29629d81fb0af26d5b91c118050793d"


def test_a_folder_without_a_directory_id_gets_one(tmp_path):
    (tmp_path / "meta.properties").write_text("version=1\nnode.id=1\ncluster.id=abc\n")
    first = identified(tmp_path)
    assert identified(tmp_path).directory_id == first.directory_id


@pytest.mark.parametrize(
    ("text", "error", "says"),
    [
        ("version=2\nnode.id=1\ncluster.id=abc\n", KafkaStorageError, "version 2"),
        ("version=1\nnode.id=4\ncluster.id=abc\n", KafkaStorageError, "node 4, not to node 1"),
        ("version=1\nnode.id=1\n", KafkaStorageError, "no cluster.id"),
        ("version=1\nnode.id=1\ncluster.id=xyz\n", InconsistentClusterIdError, "xyz, not to abc"),
        (
            "version=1\nnode.id=1\ncluster.id=abc\ndirectory.id=??\n",
            KafkaStorageError,
            "is not a UUID",
        ),
    ],
)
def test_a_folder_of_another_owner_or_format_is_refused_by_name(tmp_path, text, error, says):
    (tmp_path / "meta.properties").write_text(text)
    with pytest.raises(error, match=says):
        identified(tmp_path, cluster_id="abc")


def test_a_second_broker_is_kept_out_even_in_the_same_process(tmp_path):
    first = DataDir(str(tmp_path))
    with pytest.raises(KafkaStorageError, match="is in use"):
        DataDir(str(tmp_path))
    first.release()
    DataDir(str(tmp_path)).release()


CAN_JAVA_LOCK = """
import fcntl, sys
with open(sys.argv[1], "r+") as file:
    fcntl.lockf(file, fcntl.LOCK_EX | fcntl.LOCK_NB)
"""


def can_java_lock(folder) -> bool:
    """Whether another process gets the lock that Apache Kafka takes."""
    command = [sys.executable, "-c", CAN_JAVA_LOCK, str(folder / ".lock")]
    return subprocess.run(command, stderr=subprocess.DEVNULL, check=False).returncode == 0


def test_a_second_broker_of_this_process_does_not_let_one_of_java_in(tmp_path):
    (tmp_path / "link").symlink_to(tmp_path / "data")
    first = DataDir(str(tmp_path / "data"))
    for name in ("data", "link"):
        with pytest.raises(KafkaStorageError, match="is in use"):
            DataDir(str(tmp_path / name))
        assert not can_java_lock(tmp_path / "data")
    first.release()
    assert can_java_lock(tmp_path / "data")


def test_a_folder_that_could_not_be_locked_can_be_used_later(tmp_path):
    (tmp_path / ".lock").mkdir()
    with pytest.raises(KafkaStorageError, match="cannot use") as kept:
        DataDir(str(tmp_path))
    (tmp_path / ".lock").rmdir()
    DataDir(str(tmp_path)).release()
    assert kept.value.__traceback__  # and with it, what could not lock the folder


def test_a_folder_whose_broker_was_dropped_can_be_used_again(tmp_path):
    log_dir = DataDir(str(tmp_path))
    del log_dir
    DataDir(str(tmp_path)).release()


def test_a_forked_child_is_kept_out_while_its_parent_has_the_folder(tmp_path):
    log_dir = DataDir(str(tmp_path))

    def is_refused_in_a_child() -> bool:
        child = os.fork()
        if not child:
            try:
                DataDir(str(tmp_path))
            except KafkaStorageError:
                os._exit(1)
            finally:
                os._exit(0)
        return os.waitpid(child, 0)[1] != 0

    assert is_refused_in_a_child()
    assert not can_java_lock(tmp_path)
    log_dir.release()
    assert not is_refused_in_a_child()


def test_a_folder_that_cannot_be_made_is_a_storage_error(tmp_path):
    (tmp_path / "file").write_text("")
    with pytest.raises(KafkaStorageError, match="cannot use"):
        DataDir(str(tmp_path / "file" / "data"))


def test_the_clean_mark_is_kafkas_and_serves_once(tmp_path):
    log_dir = DataDir(str(tmp_path))
    assert log_dir.take_clean_shutdown() is None
    log_dir.mark_clean_shutdown(11)
    mark = tmp_path / ".kafka_cleanshutdown"
    assert mark.read_text() == '{"version":0,"brokerEpoch":11}'
    assert log_dir.take_clean_shutdown() == 11
    assert log_dir.take_clean_shutdown() is None
    mark.write_text("")
    assert log_dir.take_clean_shutdown() == -1
    assert ".kafka_cleanshutdown" not in os.listdir(tmp_path)
    log_dir.release()
