"""Opening a folder after a clean stop and after a crash, whatever the crash left."""

import os
import shutil
import struct
import zlib
from pathlib import Path

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from broker_stub.log.batch.append_info import AppendOrigin
from broker_stub.log.batch.batch_checker import BatchChecker
from pyclient.errors import KafkaStorageError
from tests.support.logs import (
    NOW_MS,
    append,
    batch,
    idempotent_batch,
    open_log,
    read_batches,
    read_values,
)

SMALL = {"segment_bytes": 600, "index_interval_bytes": 150}


def fill(folder: Path, count: int = 20, **values: int):
    log = open_log(folder, **(values or SMALL))
    for number in range(count):
        append(log, batch(b"%d" % number, timestamps=[NOW_MS + number]))
    return log


def content(folder: Path) -> dict[str, bytes]:
    return {path.name: path.read_bytes() for path in folder.iterdir()}


# --- after a clean stop --------------------------------------------------------------------------


def test_a_clean_start_finds_all_as_it_was(tmp_path):
    folder = tmp_path / "orders-0"
    log = fill(folder)
    log.close()
    before = content(folder)
    reopened = open_log(folder, clean=True, recovery_point=20, **SMALL)
    assert (reopened.log_start_offset, reopened.log_end_offset) == (0, 20)
    assert read_values(reopened) == {number: b"%d" % number for number in range(20)}
    assert content(folder) == before


def test_a_clean_start_checks_no_batch_and_replays_no_producer(tmp_path, monkeypatch):
    folder = tmp_path / "orders-0"
    log = open_log(folder)
    for sequence in range(50):
        append(log, idempotent_batch(sequence))
    log.close()
    monkeypatch.setattr(BatchChecker, "batch_at", lambda *_: pytest.fail("a batch was checked"))
    reopened = open_log(folder, clean=True)
    entry = reopened.producer_state.get(7)
    assert entry is not None
    assert (entry.last_sequence, len(entry.batches)) == (49, 1)


def test_a_clean_start_goes_on_appending_to_the_last_segment(tmp_path):
    folder = tmp_path / "orders-0"
    fill(folder, 3).close()
    log = open_log(folder, clean=True, **SMALL)
    append(log, batch(b"3", timestamps=[NOW_MS + 3]))
    assert [segment.base_offset for segment in log.segments] == [0]
    assert read_values(log) == {number: b"%d" % number for number in range(4)}


def test_a_torn_tail_is_cut_even_if_the_stop_was_marked_clean(tmp_path):
    folder = tmp_path / "orders-0"
    fill(folder, 3).close()
    with open(folder / "00000000000000000000.log", "ab") as file:
        file.write(batch(b"torn")[:-1])
    assert read_values(open_log(folder, clean=True)) == {0: b"0", 1: b"1", 2: b"2"}


# --- after a crash -------------------------------------------------------------------------------


def test_a_crash_between_writes_loses_nothing(tmp_path):
    folder = tmp_path / "orders-0"
    log = fill(folder)
    log.abandon()
    recovered = open_log(folder, **SMALL)
    assert read_values(recovered) == {number: b"%d" % number for number in range(20)}


def test_recovery_makes_the_same_indexes_as_the_appends_did(tmp_path):
    folder = tmp_path / "orders-0"
    log = fill(folder)
    log.close()
    before = {name: data for name, data in content(folder).items() if "index" in name}
    for name in before:
        (folder / name).write_bytes(b"\xff" * 100)
    log = open_log(folder, **SMALL)
    log.close()
    assert {name: data for name, data in content(folder).items() if "index" in name} == before


def test_only_segments_from_the_recovery_point_on_are_checked(tmp_path):
    folder = tmp_path / "orders-0"
    log = fill(folder)
    bases = [segment.base_offset for segment in log.segments]
    log.close()
    flushed = folder / f"{bases[0]:020d}.log"
    damaged = bytearray(flushed.read_bytes())
    damaged[-1] ^= 1
    flushed.write_bytes(damaged)
    assert open_log(folder, recovery_point=bases[2], **SMALL).log_end_offset == 20
    assert open_log(folder, recovery_point=bases[0], **SMALL).log_end_offset == bases[1] - 1


def test_what_follows_a_damaged_segment_is_removed(tmp_path):
    folder = tmp_path / "orders-0"
    log = fill(folder)
    bases = [segment.base_offset for segment in log.segments]
    log.abandon()
    os.truncate(folder / f"{bases[1]:020d}.log", 100)
    recovered = open_log(folder, **SMALL)
    assert [segment.base_offset for segment in recovered.segments] == bases[:2]
    assert recovered.log_end_offset == bases[1] + 1
    append(recovered, batch(b"new"))
    assert read_values(recovered)[bases[1] + 1] == b"new"


def test_a_missing_index_is_rebuilt_also_after_a_clean_stop(tmp_path):
    folder = tmp_path / "orders-0"
    fill(folder).close()
    before = content(folder)
    (folder / "00000000000000000000.index").unlink()
    (folder / "00000000000000000000.timeindex").unlink()
    assert read_values(open_log(folder, clean=True, **SMALL), 1)[1] == b"1"
    assert content(folder) == before


@pytest.mark.parametrize("clean", [True, False])
@pytest.mark.parametrize("at", [8, 90])  # the length of the batch, or a record in it
def test_a_missing_index_is_no_reason_to_cut_what_was_synced(tmp_path, clean, at, caplog):
    folder = tmp_path / "orders-0"
    log = fill(folder)
    bases = [segment.base_offset for segment in log.segments]
    log.close()
    path = folder / f"{bases[1]:020d}.log"
    damaged = bytearray(path.read_bytes())
    damaged[at] ^= 0xFF
    path.write_bytes(damaged)
    path.with_suffix(".index").unlink()
    opened = open_log(folder, clean=clean, recovery_point=log.log_end_offset, **SMALL)
    assert path.read_bytes() == damaged
    assert "they are missing or damaged" in caplog.text
    assert [segment.base_offset for segment in opened.segments] == bases
    assert list(read_values(opened, bases[2])) == list(range(bases[2], log.log_end_offset))


def test_leader_epochs_are_read_around_a_damaged_batch(tmp_path, caplog):
    folder = tmp_path / "orders-0"
    log = fill(folder)
    bases = [segment.base_offset for segment in log.segments]
    append(log, leader_epoch=7)
    log.close()
    path = folder / f"{bases[1]:020d}.log"
    damaged = bytearray(path.read_bytes())
    damaged[8] ^= 0xFF
    path.write_bytes(damaged)
    (folder / "leader-epoch-checkpoint").write_text("damaged")
    opened = open_log(folder, clean=True, recovery_point=log.log_end_offset, **SMALL)
    assert opened.leader_epochs.entries == ((0, 0), (7, 20))
    assert f"{path}: skipping damaged bytes up to" in caplog.text


def test_preallocated_indexes_of_apache_kafka_are_trimmed(tmp_path):
    folder = tmp_path / "orders-0"
    fill(folder, 5).close()
    before = content(folder)
    for name in ("00000000000000000000.index", "00000000000000000000.timeindex"):
        with open(folder / name, "ab") as file:
            file.write(bytes(1200))
    open_log(folder, **SMALL).close()
    assert content(folder) == before


def test_leftovers_of_deletions_and_of_unfinished_compactions_go(tmp_path):
    folder = tmp_path / "orders-0"
    fill(folder, 5).close()
    for name in (
        "00000000000000000000.log.deleted",
        "00000000000000000003.log.cleaned",
        "00000000000000000004.index",
        "00000000000000000002.snapshot",
    ):
        (folder / name).write_bytes(b"x")
    open_log(folder, clean=True, **SMALL)
    assert sorted(os.listdir(folder)) == [
        "00000000000000000000.index",
        "00000000000000000000.log",
        "00000000000000000000.timeindex",
        "00000000000000000005.snapshot",
        "leader-epoch-checkpoint",
        "partition.metadata",
    ]


@pytest.mark.parametrize("size", [0, 40])
@pytest.mark.parametrize("magic", [0, 1])
@pytest.mark.parametrize("clean", [True, False])
@pytest.mark.parametrize("followed", [True, False])
def test_messages_of_the_old_format_are_refused_and_not_cut_off(
    tmp_path, size, magic, clean, followed
):
    folder = tmp_path / "orders-0"
    folder.mkdir()
    time = struct.pack(">q", NOW_MS) if magic else b""
    body = struct.pack(">bb", magic, 0) + time + struct.pack(">ii", -1, size) + bytes(size)
    message = struct.pack(">qiI", 0, len(body) + 4, zlib.crc32(body)) + body
    log_file = folder / "00000000000000000000.log"
    log_file.write_bytes(message)
    log_file.with_suffix(".index").write_bytes(b"")
    log_file.with_suffix(".timeindex").write_bytes(struct.pack(">qi", NOW_MS, 0))
    if followed:  # by what a newer Kafka wrote
        append(open_log(tmp_path / "newer"))
        for path in (tmp_path / "newer").glob("*000.*"):
            path.rename(folder / f"{1:020d}{path.suffix}")
    with pytest.raises(KafkaStorageError, match=f"message format {magic}"):
        open_log(folder, clean=clean, recovery_point=1)
    assert log_file.read_bytes() == message


def test_leader_epochs_come_back_from_the_batches(tmp_path):
    folder = tmp_path / "orders-0"
    log = open_log(folder)
    for leader_epoch in (0, 0, 3, 5):
        append(log, leader_epoch=leader_epoch)
    log.abandon()
    (folder / "leader-epoch-checkpoint").write_text("0\n1\n0 0\n")
    assert open_log(folder).leader_epochs.entries == ((0, 0), (3, 2), (5, 3))


@pytest.mark.parametrize(
    "damage",
    [
        "0\n9\n0 0\n",
        "7\n1\n0 0\n",
        "0\n1\nzero 0\n",
        "0\n1\n0\n",
        "0\n2\n5 0\n3 1\n",  # the epochs go back
        "0\n2\n0 1\n3 0\n",  # the offsets do
        "0\n2\n0 0\n3 0\n",
    ],
)
def test_a_damaged_leader_epoch_checkpoint_is_repaired_from_the_log(tmp_path, damage):
    folder = tmp_path / "orders-0"
    log = open_log(folder)
    for leader_epoch in (0, 0, 3):
        append(log, leader_epoch=leader_epoch)
    log.close()
    (folder / "leader-epoch-checkpoint").write_text(damage)
    assert open_log(folder, clean=True).leader_epochs.entries == ((0, 0), (3, 2))
    assert (folder / "leader-epoch-checkpoint").read_text() == "0\n2\n0 0\n3 2\n"


def test_a_damaged_leader_epoch_checkpoint_is_repaired_from_all_segments_after_a_crash(tmp_path):
    folder = tmp_path / "orders-0"
    log = open_log(folder, segment_bytes=150)
    for leader_epoch in (1, 3, 5):
        append(log, batch(b"a" * 60), leader_epoch=leader_epoch)
    log.abandon()
    (folder / "leader-epoch-checkpoint").write_text("damaged")
    reopened = open_log(folder, recovery_point=2, segment_bytes=150)
    assert reopened.leader_epochs.entries == ((1, 0), (3, 1), (5, 2))


def test_epochs_after_the_cut_are_forgotten(tmp_path):
    folder = tmp_path / "orders-0"
    log = open_log(folder)
    append(log, leader_epoch=0)
    append(log, leader_epoch=1)
    log.abandon()
    os.truncate(folder / "00000000000000000000.log", len(batch()) + 10)
    assert open_log(folder).leader_epochs.entries == ((0, 0),)


def test_a_start_offset_past_the_recovered_end_is_where_the_log_goes_on(tmp_path):
    folder = tmp_path / "orders-0"
    log = fill(folder, 5)
    log.abandon()
    recovered = open_log(folder, log_start_offset=9, **SMALL)
    assert (recovered.log_start_offset, recovered.log_end_offset) == (9, 9)
    append(recovered, batch(b"nine"))
    assert read_values(recovered, 9) == {9: b"nine"}


def test_a_start_offset_past_a_clean_end_is_a_mistake_and_takes_no_record(tmp_path, caplog):
    log = open_log(tmp_path / "orders-0")
    for _ in range(3):
        append(log)
    log.close()
    log = open_log(tmp_path / "orders-0", clean=True, recovery_point=3, log_start_offset=93)
    assert (log.log_start_offset, log.log_end_offset) == (0, 3)
    assert "ends at 3: ignoring the checkpointed log start offset 93" in caplog.text
    assert len(read_values(log)) == 3


def test_the_start_offset_comes_from_the_checkpoint(tmp_path):
    folder = tmp_path / "orders-0"
    fill(folder, 5).close()
    assert open_log(folder, clean=True, log_start_offset=3, **SMALL).log_start_offset == 3


def test_zeros_at_the_end_as_a_power_cut_leaves_them_are_cut(tmp_path):
    folder = tmp_path / "orders-0"
    fill(folder, 3).abandon()
    with open(folder / "00000000000000000000.log", "ab") as file:
        file.write(bytes(5000))
    assert open_log(folder).log_end_offset == 3


def test_a_batch_whose_offset_no_index_could_hold_is_cut(tmp_path):
    folder = tmp_path / "orders-0"
    log = open_log(folder)
    for _ in range(3):
        append(log)
    log.abandon()
    path = folder / "00000000000000000000.log"
    data = bytearray(path.read_bytes())
    data[2 * len(data) // 3] ^= 0x40  # the first byte of the last batch's base offset
    path.write_bytes(data)
    reopened = open_log(folder)
    assert list(read_values(reopened)) == [0, 1]
    assert append(reopened).first_offset == 2


def test_a_batch_whose_offsets_do_not_follow_is_cut(tmp_path):
    folder = tmp_path / "orders-0"
    fill(folder, 3).abandon()
    with open(folder / "00000000000000000000.log", "ab") as file:
        file.write(batch(b"offset 0 again"))
    assert open_log(folder).log_end_offset == 3


# --- any history, cut at any byte ----------------------------------------------------------------


batches_strategy = st.lists(
    st.tuples(
        st.integers(1, 4),  # records
        st.integers(0, 120),  # bytes each
        st.integers(-50, 200),  # time since the last batch
        st.booleans(),  # of an idempotent producer
    ),
    min_size=1,
    max_size=25,
)


@settings(max_examples=150, deadline=None)
@given(
    history=batches_strategy,
    segment_bytes=st.sampled_from([700, 1500, 100_000]),
    index_interval_bytes=st.sampled_from([0, 100, 400]),
    reopen_after=st.integers(0, 24),
    data=st.data(),
)
def test_recovery_keeps_exactly_the_batches_that_are_whole(
    tmp_path_factory, history, segment_bytes, index_interval_bytes, reopen_after, data
):
    folder = tmp_path_factory.mktemp("log") / "orders-0"
    values = {"segment_bytes": segment_bytes, "index_interval_bytes": index_interval_bytes}
    log = open_log(folder, **values)
    written: list[bytes] = []
    timestamp_ms, sequence = NOW_MS, 0
    for number, (count, size, later_ms, idempotent) in enumerate(history):
        if number == reopen_after:
            log.close()
            log = open_log(folder, clean=True, **values)
        timestamp_ms += later_ms
        header = (
            {"producer_id": 7, "producer_epoch": 0, "base_sequence": sequence} if idempotent else {}
        )
        sequence += count if idempotent else 0
        buffer = batch(*[b"x" * size] * count, timestamps=[timestamp_ms] * count, **header)
        append(log, buffer)
        written.append(bytes(buffer))
    bases = [segment.base_offset for segment in log.segments]
    last_segment = folder / f"{bases[-1]:020d}.log"
    log.abandon()

    cut = data.draw(st.integers(0, last_segment.stat().st_size), label="cut at")
    os.truncate(last_segment, cut)
    for suffix in ("index", "timeindex"):
        fate = data.draw(st.sampled_from(["kept", "gone", "torn", "garbage"]), label=suffix)
        index = last_segment.with_suffix(f".{suffix}")
        if fate == "gone":
            index.unlink()
        elif fate == "torn":
            os.truncate(index, index.stat().st_size // 2)
        elif fate == "garbage":
            index.write_bytes(b"\x7f" * 60)

    expected, position = [], 0
    for one in written:
        if int.from_bytes(one[:8], "big") >= bases[-1]:
            position += len(one)
        if position > cut:
            break
        expected.append(one)
    recovered = open_log(folder, **values)
    found = [bytes(one.data) for one in read_batches(recovered)]
    assert found == expected

    # It goes on as a log that never crashed: the same index entries, producers and offsets.
    again = folder.parent / "again" / "orders-0"
    model = open_log(again, **values)
    for one in expected:
        rewritten = bytearray(one)
        rewritten[:8] = bytes(8)
        append(model, rewritten)
    for one in (recovered, model):
        append(one, batch(b"after"))
    assert read_values(recovered) == read_values(model)
    assert _state(recovered) == _state(model)
    shutil.rmtree(folder.parent)


def _state(log):
    return (
        log.log_end_offset,
        log.leader_epochs.entries,
        [(entry.producer_id, entry.epoch, entry.last_sequence) for entry in log.producer_state],
        max(segment.search.max_timestamp[0] for segment in log.segments),
    )


def test_a_broker_batch_with_several_parts_is_recovered_part_by_part(tmp_path):
    folder = tmp_path / "orders-0"
    log = open_log(folder)
    append(log, batch(b"a") + batch(b"b"), origin=AppendOrigin.COORDINATOR)
    log.abandon()
    os.truncate(folder / "00000000000000000000.log", len(batch(b"a")) + 1)
    assert read_values(open_log(folder)) == {0: b"a"}
