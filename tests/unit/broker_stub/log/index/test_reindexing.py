"""A read finds a sparse index damaged: reads go on without it while it is rebuilt."""

import errno
import os
from pathlib import Path
from unittest.mock import patch

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from broker_stub.log.index import index_search
from broker_stub.log.partition_log import PartitionLog
from pyclient.clock import ManualClock
from pyclient.errors import CorruptRecordError, KafkaStorageError
from tests.support.damaged_logs import (
    COUNT,
    EVERY_SECOND,
    VALUES,
    damaged,
    finish,
    flip_middle,
    point_before_the_file,
    point_inside_a_batch,
    remove,
    shorten,
    write,
    zero_out,
)
from tests.support.failing_disk import FailingDisk
from tests.support.logs import (
    NOW_MS,
    append,
    batch,
    config,
    idempotent_batch,
    open_manager,
    read_batches,
    read_values,
)


@pytest.mark.parametrize(
    "damage", [flip_middle(8), point_inside_a_batch, point_before_the_file, remove, shorten]
)
def test_reads_go_on_without_a_damaged_offset_index_and_the_background_rebuilds_it(
    tmp_path, damage, caplog
):
    manager, log, good = damaged(tmp_path, ".index", damage)
    index = tmp_path / "orders-0" / f"{0:020d}.index"
    for offset in range(COUNT):
        assert read_batches(log, offset, 1)[0].base_offset == offset
    assert not index.exists() or index.read_bytes() != good  # nothing was mended by a read
    assert "rebuilding index" not in caplog.text  # nothing is logged under the lock of the log
    finish(manager)
    assert caplog.text.count("rebuilding index") == 1
    assert index.read_bytes() == good
    assert not [name for name in os.listdir(index.parent) if name.endswith(".rebuilt")]
    assert not log.segments[0].offset_index.is_damaged
    assert read_values(log) == VALUES
    manager.close()


def test_a_read_that_would_take_long_is_refused_until_the_index_is_there(tmp_path, monkeypatch):
    monkeypatch.setattr(index_search, "_SCANNED_BATCHES_MAX", 5)
    manager, log, _ = damaged(tmp_path, ".index", zero_out)
    with pytest.raises(KafkaStorageError, match="until its index is rebuilt") as caught:
        log.read(COUNT - 1, 1000)
    assert caught.value.retriable
    assert read_batches(log, 3, 1)[0].base_offset == 3  # near enough to be found
    finish(manager)
    assert read_values(log, COUNT - 1) == {COUNT - 1: VALUES[COUNT - 1]}
    manager.close()


def test_a_long_way_to_a_batch_betrays_an_index_without_entries(tmp_path, monkeypatch):
    monkeypatch.setattr(index_search, "_SCANNED_BATCHES_MAX", 5)
    manager = open_manager(tmp_path, **EVERY_SECOND)
    write(manager)
    manager.close()
    (tmp_path / "orders-0" / f"{0:020d}.index").write_bytes(b"")
    manager = open_manager(tmp_path, **EVERY_SECOND)
    log = manager.get("orders", 0)
    assert log is not None
    with pytest.raises(KafkaStorageError, match="until its index is rebuilt"):
        log.read(COUNT - 1, 1000)
    finish(manager)
    assert len(log.segments[0].offset_index) > 5
    assert read_values(log) == VALUES
    manager.close()


def test_sparse_entries_by_configuration_are_believed_once_they_are_rebuilt(tmp_path, monkeypatch):
    monkeypatch.setattr(index_search, "_SCANNED_BATCHES_MAX", 5)
    manager = open_manager(tmp_path, index_interval_bytes=1 << 20)
    write(manager)
    manager.close()
    manager = open_manager(tmp_path, **EVERY_SECOND)
    log = manager.get("orders", 0)
    assert log is not None
    with pytest.raises(KafkaStorageError, match="until its index is rebuilt"):
        log.read(COUNT - 1, 1000)
    log.update_config(config(index_interval_bytes=1 << 20))
    finish(manager)
    assert read_values(log, COUNT - 1) == {COUNT - 1: VALUES[COUNT - 1]}
    assert manager.run_due() > 0  # nothing more to be made
    manager.close()


def test_entries_are_as_far_apart_as_the_topic_wants(tmp_path, monkeypatch):
    monkeypatch.setattr(index_search, "_SCANNED_BATCHES_MAX", 5)
    manager = open_manager(tmp_path)
    log = write(manager)
    assert read_values(log, COUNT - 1) == {COUNT - 1: VALUES[COUNT - 1]}
    manager.close()
    manager = open_manager(tmp_path)  # which knows no topic, and so not what it wants
    log = write(manager)
    assert len(log.segments[-1].offset_index) == 0
    log.update_config(config(**EVERY_SECOND))
    write(manager)
    assert len(log.segments[-1].offset_index) > COUNT // 4
    manager.close()


def test_records_appended_and_rolled_meanwhile_are_indexed_too(tmp_path, monkeypatch):
    monkeypatch.setattr("broker_stub.log.index.reindexing._BATCHES_BETWEEN_PAUSES", 3)
    monkeypatch.setattr("broker_stub.log.index.reindexing._CAUGHT_UP_BYTES", 200)
    manager, log, _ = damaged(tmp_path, ".index", zero_out, segment_bytes=2500)
    read_batches(log, COUNT - 1, 1)
    expected = dict(VALUES)
    for number in range(COUNT, 3 * COUNT):
        append(log, batch(b"%02d" % number, timestamps=[NOW_MS + number]))
        expected[number] = b"%02d" % number
        manager.run_due()
    assert len(log.segments) > 1
    finish(manager)
    first = log.segments[0]
    assert not first.offset_index.is_damaged
    for last_offset, position in first.offset_index.entries():
        assert next(first.records.walk(position))[1].last_offset == last_offset
    assert read_values(log) == expected
    manager.close()
    assert read_values(_reopened(tmp_path)) == expected


def _reopened(folder: Path) -> PartitionLog:
    log = open_manager(folder, **EVERY_SECOND).get("orders", 0)
    assert log is not None
    return log


def test_a_log_deleted_meanwhile_leaves_nothing_behind(tmp_path, monkeypatch, caplog):
    monkeypatch.setattr("broker_stub.log.index.reindexing._BATCHES_BETWEEN_PAUSES", 3)
    manager, log, _ = damaged(tmp_path, ".index", zero_out)
    read_batches(log, COUNT - 1, 1)
    manager.run_due()
    manager.delete("orders", 0)
    finish(manager)
    assert "cannot rebuild indexes" not in caplog.text
    assert not (tmp_path / "orders-0").exists()
    manager.close()


def test_a_disk_that_refuses_the_new_index_is_asked_again_later(tmp_path, monkeypatch, caplog):
    clock = ManualClock(NOW_MS)
    manager, log, good = damaged(tmp_path, ".index", remove, clock=clock)
    disk = FailingDisk(monkeypatch)
    disk.refuse(errno.ENOSPC, "pwrite", suffix=".rebuilt")
    assert read_values(log, 7) == {n: VALUES[n] for n in range(7, COUNT)}
    finish(manager)
    assert "cannot rebuild indexes" in caplog.text
    assert read_batches(log, 7, 1)[0].base_offset == 7
    disk.mend()
    clock.advance(15_000)
    finish(manager)
    assert (tmp_path / "orders-0" / f"{0:020d}.index").read_bytes() == good
    manager.close()


def test_a_start_removes_what_a_crash_left_of_a_new_index(tmp_path):
    manager, _, _ = damaged(tmp_path, ".index", flip_middle(8))
    manager.abandon()
    left = tmp_path / "orders-0" / f"{0:020d}.index.rebuilt"
    left.write_bytes(b"half")
    manager = open_manager(tmp_path, **EVERY_SECOND)
    assert not left.exists()
    manager.close()


def test_the_new_index_goes_on_behind_a_damaged_batch(tmp_path, caplog):
    manager, log, _ = damaged(tmp_path, ".index", remove)
    size = log.size // COUNT
    with open(tmp_path / "orders-0" / f"{0:020d}.log", "r+b") as file:
        file.seek(10 * size + 8)
        file.write(b"\xff\xff\xff\xff")  # the batch's length
    assert log.read(8, 1).next_offset == 9
    finish(manager)
    assert f"is damaged; indexing continues at byte {11 * size}" in caplog.text
    append(log)
    for offset in (*range(10), *range(11, COUNT + 1)):
        assert log.read(offset, 1).next_offset == offset + 1
    with pytest.raises(CorruptRecordError):
        log.read(10, 1)
    manager.abandon()


@pytest.mark.parametrize(
    ("field", "value"), [(8, 3), (4, 65546)], ids=["a wrong length", "an offset too far ahead"]
)
def test_the_new_index_goes_on_behind_a_batch_that_looks_whole(tmp_path, field, value):
    manager, log, _ = damaged(tmp_path, ".index", remove)
    size = log.size // COUNT
    value = value * size + 7 if field == 8 else value  # into the midst of another batch
    with open(tmp_path / "orders-0" / f"{0:020d}.log", "r+b") as file:
        file.seek(10 * size + field)
        file.write(value.to_bytes(4, "big"))
    assert log.read(8, 1).next_offset == 9
    finish(manager)
    for offset in range(11, COUNT):
        assert log.read(offset, 1).next_offset == offset + 1
    manager.abandon()


@pytest.mark.parametrize("number", [0, 4, 5])
def test_a_damaged_batch_hides_no_other_before_or_after_its_index_is_rebuilt(tmp_path, number):
    values = {"index_interval_bytes": 4096, "segment_bytes": 200_000}
    manager = open_manager(tmp_path, **values)
    log = manager.create("orders", 0, topic_id=bytes(range(16)))
    for _ in range(15):
        append(log, batch(b"a" * 16_000))  # every one but the first is indexed
    manager.close()
    path = tmp_path / "orders-0" / f"{0:020d}.log"
    with open(path, "r+b") as file:
        file.seek(path.stat().st_size // 12 * number + 16)
        file.write(b"\x07")

    for finishes in (True, True, False):  # and after the next clean start, and a crash
        manager = open_manager(tmp_path, **values)
        log = manager.get("orders", 0)
        assert log is not None
        for _ in range(2):
            with pytest.raises(CorruptRecordError):
                log.read(number, 1)
            for offset in {*range(15)} - {number}:
                assert log.read(offset, 1).next_offset == offset + 1
            finish(manager)
        manager.close() if finishes else manager.abandon()


def test_what_follows_a_damaged_batch_unindexed_is_found_once_the_index_is_rebuilt(tmp_path):
    manager = open_manager(tmp_path, index_interval_bytes=400)
    log = write(manager)
    size = log.size // COUNT
    with open(tmp_path / "orders-0" / f"{0:020d}.log", "r+b") as file:
        file.seek(10 * size + 16)
        file.write(b"\x07")
    with pytest.raises(CorruptRecordError):
        log.read(10, 1)
    finish(manager)
    for offset in range(11, COUNT):
        assert log.read(offset, 1).next_offset == offset + 1
    with pytest.raises(CorruptRecordError):
        log.read(10, 1)
    assert manager.run_due() != 0  # it is not rebuilt for every read
    manager.abandon()


def test_a_retry_is_recognised_whatever_the_index_says(tmp_path):
    manager = open_manager(tmp_path, **EVERY_SECOND)
    log = manager.create("orders", 0, topic_id=bytes(range(16)))
    for sequence in range(COUNT):
        append(log, idempotent_batch(sequence))
    manager.close()
    manager = open_manager(tmp_path, **EVERY_SECOND)
    again = manager.get("orders", 0)
    assert again is not None
    zero_out(tmp_path / "orders-0" / f"{0:020d}.index")
    with pytest.raises(KafkaStorageError, match="send the batch again"):
        append(again, idempotent_batch(COUNT - 3))
    finish(manager)
    assert append(again, idempotent_batch(COUNT - 3)).duplicate
    manager.close()


@settings(max_examples=60, deadline=None)
@given(data=st.data(), bound=st.sampled_from([3, 4096]), is_restarted=st.booleans())
def test_no_damage_to_indexes_ever_gives_a_wrong_answer(
    tmp_path_factory, data, bound, is_restarted
):
    folder = tmp_path_factory.mktemp("logs")
    values = {"index_interval_bytes": 100, "segment_bytes": 900}
    manager = open_manager(folder, **values)
    write(manager)
    manager.close()
    if not is_restarted:
        manager = open_manager(folder, **values)
    for path in sorted((folder / "orders-0").glob("*index")):
        with path.open("r+b") as file:
            content = bytearray(file.read())
            for _ in range(data.draw(st.integers(0, 3)) if content else 0):
                content[data.draw(st.integers(0, len(content) - 1))] = data.draw(
                    st.integers(0, 255)
                )
            file.seek(0)
            file.write(content)
    if is_restarted:
        manager = open_manager(folder, **values)
    log = manager.get("orders", 0)
    assert log is not None
    refusals = []
    with patch.object(index_search, "_SCANNED_BATCHES_MAX", bound):
        for _ in range(5):
            refusals.append(ask_everything(log))
            finish(manager)
    assert refusals[-1] == 0
    manager.close()


def ask_everything(log: PartitionLog) -> int:
    """Every answer is right or asks for a retry; returns how many are right."""
    refusals = 0
    for offset in range(COUNT):
        try:
            assert log.read(offset, 1).next_offset == offset + 1
            assert log.lookup_timestamp(NOW_MS + offset) == (NOW_MS + offset, offset, 0)
        except KafkaStorageError:
            refusals += 1
    return refusals
