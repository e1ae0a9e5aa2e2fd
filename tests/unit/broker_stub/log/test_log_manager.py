"""A node's logs over their life: created, stopped, killed, deleted, kept in order."""

import os
import shutil
from pathlib import Path
from unittest.mock import Mock

import pytest

from pyclient.clock import ManualClock
from pyclient.errors import InconsistentClusterIdError, KafkaStorageError
from tests.support.logs import (
    NOW_MS,
    TOPIC_ID,
    append,
    batch,
    create,
    open_manager,
    read_values,
)


def partition_folders(folder: Path) -> list[str]:
    return sorted(path.name for path in folder.iterdir() if path.is_dir())


def test_logs_come_back_after_a_clean_stop(tmp_path):
    manager = open_manager(tmp_path)
    for number in range(3):
        append(create(manager), batch(b"%d" % number))
    manager.close(broker_epoch=5)
    manager = open_manager(tmp_path)
    assert (manager.was_clean, manager.broker_epoch) == (True, 5)
    log = manager.get("orders", 0)
    assert log is not None
    assert log.topic_id == TOPIC_ID
    assert (log.recovery_point, log.high_watermark, log.log_end_offset) == (3, 3, 3)
    assert read_values(log) == {0: b"0", 1: b"1", 2: b"2"}
    manager.abandon()


def test_a_clean_stop_leaves_kafkas_files(tmp_path):
    manager = open_manager(tmp_path)
    append(create(manager))
    append(create(manager, 1))
    manager.close()
    assert sorted(os.listdir(tmp_path)) == [
        ".kafka_cleanshutdown",
        ".lock",
        "cleaner-offset-checkpoint",
        "log-start-offset-checkpoint",
        "meta.properties",
        "orders-0",
        "orders-1",
        "recovery-point-offset-checkpoint",
        "replication-offset-checkpoint",
    ]
    expected = "0\n2\norders 0 1\norders 1 1\n"
    assert (tmp_path / "recovery-point-offset-checkpoint").read_text() == expected
    assert (tmp_path / "replication-offset-checkpoint").read_text() == expected
    assert (tmp_path / "log-start-offset-checkpoint").read_text() == "0\n0\n"


def test_after_a_kill_the_logs_are_recovered(tmp_path):
    manager = open_manager(tmp_path)
    append(create(manager), batch(b"acked"))
    manager.abandon()
    with open(tmp_path / "orders-0" / "00000000000000000000.log", "ab") as file:
        file.write(batch(b"torn")[:50])
    manager = open_manager(tmp_path)
    assert not manager.was_clean
    log = manager.get("orders", 0)
    assert log is not None
    assert read_values(log) == {0: b"acked"}
    manager.abandon()


def test_a_second_manager_is_refused_until_the_first_lets_go(tmp_path):
    manager = open_manager(tmp_path)
    with pytest.raises(KafkaStorageError, match="is in use"):
        open_manager(tmp_path)
    manager.abandon()
    open_manager(tmp_path).close()


def test_a_log_is_made_once_and_without_files(tmp_path):
    manager = open_manager(tmp_path)
    log = create(manager)
    assert create(manager) is log
    assert manager.get("orders", 0) is log
    assert manager.get("orders", 1) is None
    assert dict(manager.logs()) == {("orders", 0): log}
    assert partition_folders(tmp_path) == []
    manager.close()


def test_a_name_with_dashes_is_a_topic_and_a_number(tmp_path):
    manager = open_manager(tmp_path)
    append(create(manager, 12, "a-b-3"))
    manager.close()
    manager = open_manager(tmp_path)
    assert list(manager.logs()) == [("a-b-3", 12)]
    manager.close()


def test_a_deleted_log_is_gone_at_once_and_its_folder_after_the_delay(tmp_path):
    clock = ManualClock(NOW_MS)
    manager = open_manager(tmp_path, clock=clock, file_delete_delay_ms=1000)
    log = create(manager)
    append(log)
    held = log.read(0, 1000).records
    manager.delete("orders", 0)
    assert manager.get("orders", 0) is None
    (doomed,) = partition_folders(tmp_path)
    assert doomed.startswith("orders-0.")
    assert doomed.endswith("-delete")
    again = create(manager)
    append(again, batch(b"new"))
    clock.advance(999)
    manager.run_due()
    assert doomed in partition_folders(tmp_path)
    clock.advance(1)
    manager.run_due()
    assert partition_folders(tmp_path) == ["orders-0"]
    assert held is not None
    assert held.read()
    assert read_values(again) == {0: b"new"}
    manager.close()


def test_the_folder_name_of_a_deleted_log_fits_the_file_system(tmp_path):
    manager = open_manager(tmp_path)
    append(create(manager, 0, "t" * 249))
    manager.delete("t" * 249, 0)
    (doomed,) = partition_folders(tmp_path)
    assert len(doomed) == 255
    manager.close()


def test_a_folder_deleted_before_a_crash_goes_with_the_next_run(tmp_path):
    manager = open_manager(tmp_path)
    append(create(manager))
    manager.delete("orders", 0)
    manager.abandon()
    manager = open_manager(tmp_path)
    assert not manager.logs()
    manager.run_due()
    assert partition_folders(tmp_path) == []
    manager.close()


def test_retention_runs_at_its_interval_and_files_go_after_their_delay(tmp_path):
    clock = ManualClock(NOW_MS)
    manager = open_manager(
        tmp_path,
        clock=clock,
        settings={"retention_check_interval_ms": 1000},
        retention_ms=100,
        file_delete_delay_ms=5000,
    )
    append(create(manager))
    clock.advance(999)
    assert manager.run_due() == 1
    clock.advance(1)
    manager.run_due()
    log = manager.get("orders", 0)
    assert log is not None
    assert log.log_start_offset == 1
    assert (tmp_path / "orders-0" / "00000000000000000000.log.deleted").exists()
    clock.advance(5000)
    manager.run_due()
    assert not list((tmp_path / "orders-0").glob("*.deleted"))
    manager.close()


def test_work_that_is_wanted_all_the_time_leaves_time_for_the_rest(tmp_path):
    manager = open_manager(tmp_path, settings={"cleaner_backoff_ms": 0})
    assert 0 < manager.run_due() <= 1
    manager.close()


def test_a_rolled_segment_is_flushed_in_the_background(tmp_path):
    manager = open_manager(tmp_path, segment_bytes=100)
    woken = []
    manager.on_work = lambda: woken.append(True)
    log = create(manager)
    append(log)
    append(log)
    assert woken == [True]
    assert log.recovery_point == 0
    manager.run_due()
    assert log.recovery_point == 2
    manager.close()


def test_flush_ms_flushes_when_its_time_has_come(tmp_path):
    clock = ManualClock(NOW_MS)
    manager = open_manager(tmp_path, clock=clock, flush_ms=200)
    log = create(manager)
    append(log)
    assert manager.run_due() == 200
    clock.advance(200)
    manager.run_due()
    assert log.recovery_point == 1
    manager.close()


def test_recovery_points_and_start_offsets_survive_a_kill_through_checkpoints(tmp_path):
    clock = ManualClock(NOW_MS)
    manager = open_manager(tmp_path, clock=clock)
    log = create(manager)
    for _ in range(5):
        append(log)
    log.flush()
    log.delete_records(2)
    clock.advance(60_000)
    manager.run_due()
    append(log)
    manager.abandon()
    manager = open_manager(tmp_path)
    log = manager.get("orders", 0)
    assert log is not None
    assert (log.recovery_point, log.log_start_offset, log.log_end_offset) == (5, 2, 6)
    assert log.high_watermark == 5
    manager.close()


def test_producers_expire_at_their_interval(tmp_path):
    clock = ManualClock(NOW_MS)
    settings = {
        "producer_id_expiration_ms": 1000,
        "producer_id_expiration_check_interval_ms": 700,
    }
    manager = open_manager(tmp_path, clock=clock, settings=settings)
    log = create(manager)
    append(log, batch(b"a", producer_id=3, producer_epoch=0, base_sequence=0))
    clock.advance(700)
    manager.run_due()
    assert len(log.producer_state) == 1
    clock.advance(700)
    manager.run_due()
    assert len(log.producer_state) == 0
    manager.close()


@pytest.mark.parametrize(
    "name",
    [
        "recovery-point-offset-checkpoint",
        "log-start-offset-checkpoint",
        "replication-offset-checkpoint",
    ],
)
def test_a_damaged_checkpoint_is_reported_and_nothing_is_lost(tmp_path, name, caplog):
    manager = open_manager(tmp_path)
    append(create(manager))
    manager.close()
    (tmp_path / name).write_text("0\n7\norders\n")
    manager = open_manager(tmp_path)
    log = manager.get("orders", 0)
    assert log is not None
    assert read_values(log) == {0: b"value"}
    assert f"{name} has 1 entries" in caplog.text
    manager.close()


def test_partitions_are_spread_over_several_folders(tmp_path):
    folders = [tmp_path / "one", tmp_path / "two"]
    manager = open_manager(*folders)
    one, two = manager.directory_ids.values()
    for partition, directory_id in enumerate((two, one, two, bytes(16))):
        append(manager.create("orders", partition, topic_id=TOPIC_ID, directory_id=directory_id))
    found = [partition_folders(folder) for folder in folders]
    assert found == [["orders-1", "orders-3"], ["orders-0", "orders-2"]]
    manager.close()
    manager = open_manager(*folders)
    assert len(manager.logs()) == 4
    manager.close()


def test_a_folder_and_its_copy_are_not_used_together(tmp_path):
    open_manager(tmp_path / "one").close()
    shutil.copytree(tmp_path / "one", tmp_path / "two")
    with pytest.raises(KafkaStorageError, match=r"two of .*one, .*two have one directory\.id"):
        open_manager(tmp_path / "one", tmp_path / "two")


def test_folders_of_different_clusters_do_not_mix(tmp_path):
    open_manager(tmp_path / "one", cluster_id="abc").close()
    open_manager(tmp_path / "two", cluster_id="xyz").close()
    with pytest.raises(InconsistentClusterIdError, match="xyz, not to abc"):
        open_manager(tmp_path / "one", tmp_path / "two")
    open_manager(tmp_path / "one").close()  # nothing stayed locked


def test_a_partition_in_two_folders_is_refused(tmp_path):
    manager = open_manager(tmp_path / "one", tmp_path / "two")
    append(create(manager))
    manager.close()
    shutil.copytree(tmp_path / "one" / "orders-0", tmp_path / "two" / "orders-0")
    with pytest.raises(KafkaStorageError, match="orders-0 is in"):
        open_manager(tmp_path / "one", tmp_path / "two")


def test_thousands_of_partitions_need_few_descriptors(tmp_path):
    manager = open_manager(tmp_path, settings={"open_files_max": 16}, segment_bytes=300)
    before = len(os.listdir("/proc/self/fd"))
    logs = [create(manager, partition) for partition in range(200)]
    for number in range(5):
        for log in logs:
            append(log, batch(b"%d" % number))
    for log in logs:
        assert len(read_values(log)) == 5
    assert len(os.listdir("/proc/self/fd")) - before <= 16
    manager.close()


def test_folders_that_are_no_partitions_are_reported_and_left_alone(tmp_path, caplog):
    (tmp_path / "orders-0.6f0b-future").mkdir()
    (tmp_path / "lost+found").mkdir()
    (tmp_path / "to-delete").mkdir()
    manager = open_manager(tmp_path)
    assert not manager.logs()
    assert "orders-0.6f0b-future: its name is not a partition's" in caplog.text
    manager.run_due()
    manager.close()
    assert partition_folders(tmp_path) == ["lost+found", "orders-0.6f0b-future", "to-delete"]


@pytest.mark.parametrize("refuses", [KafkaStorageError("damaged"), OSError("disk")])
def test_a_start_that_fails_leaves_the_clean_marks_as_they_were(tmp_path, refuses, monkeypatch):
    folders = [tmp_path / name for name in ("one", "two")]
    open_manager(*folders).close(7)
    append(create(manager := open_manager(*folders)))
    manager.close(7)
    with monkeypatch.context() as patched:
        patched.setattr("broker_stub.log.log_manager.load_log", Mock(side_effect=refuses))
        with pytest.raises(KafkaStorageError):
            open_manager(*folders)
    for folder in folders:
        assert (folder / ".kafka_cleanshutdown").read_text() == '{"version":0,"brokerEpoch":7}'
    assert open_manager(*folders).was_clean


def test_a_log_that_cannot_be_closed_leaves_no_clean_mark(tmp_path, monkeypatch):
    manager = open_manager(tmp_path)
    append(create(manager))

    def refuse(fd):
        raise OSError(5, "Input/output error")

    with monkeypatch.context() as patched:
        patched.setattr(os, "fsync", refuse)
        with pytest.raises(KafkaStorageError, match="Input/output error"):
            manager.close()
    assert not (tmp_path / ".kafka_cleanshutdown").exists()
    manager = open_manager(tmp_path)
    assert not manager.was_clean
    manager.close()


@pytest.mark.parametrize("taken", ["partition.metadata", "leader-epoch-checkpoint"])
def test_a_log_can_be_flushed_after_a_power_loss_that_took_its_small_files(tmp_path, taken):
    manager = open_manager(tmp_path)
    append(create(manager), batch(b"kept"))
    manager.abandon()
    (tmp_path / "orders-0" / taken).unlink()
    manager = open_manager(tmp_path)
    log = create(manager)
    log.flush()
    assert (log.topic_id, log.recovery_point) == (TOPIC_ID, 1)
    manager.abandon()
    log = open_manager(tmp_path).get("orders", 0)
    assert log is not None
    assert (log.topic_id, log.leader_epochs.latest_epoch) == (TOPIC_ID, 0)


def test_a_new_log_of_a_deleted_ones_name_is_not_taken_for_flushed(tmp_path):
    manager = open_manager(tmp_path)
    append(create(manager))
    manager.close()
    manager = open_manager(tmp_path)
    manager.delete("orders", 0)
    manager.run_due()
    append(create(manager))
    manager.abandon()
    log = open_manager(tmp_path).get("orders", 0)
    assert log is not None
    assert (log.log_end_offset, log.recovery_point) == (1, 0)
