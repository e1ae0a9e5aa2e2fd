"""Opening a folder whose records are damaged where they were synced, or missing: nothing is cut."""

import os
import struct

import pytest

from broker_stub.log.batch.append_info import AppendOrigin
from pyclient.errors import CorruptRecordError, KafkaStorageError
from tests.support.logs import (
    NOW_MS,
    append,
    batch,
    create,
    idempotent_batch,
    marker,
    open_log,
    open_manager,
    read_values,
)

FIRST = f"{0:020d}.log"


def damage(path, number: int, field: int = 8, value: int = -5) -> bytes:
    """Write a number into the header of a batch; the length, unless told otherwise."""
    data = bytearray(path.read_bytes())
    at = 0
    for _ in range(number):
        at += struct.unpack_from(">i", data, at + 8)[0] + 12
    struct.pack_into(">i", data, at + field, value)
    path.write_bytes(data)
    return bytes(data)


def filled(folder, count: int = 5, **values):
    log = open_log(folder, **values)
    for number in range(count):
        append(log, batch(b"%d" % number, b"and more"))
    return log


# --- what is damaged -----------------------------------------------------------------------------


@pytest.mark.parametrize("clean", [True, False])
@pytest.mark.parametrize("number", [0, 2])
@pytest.mark.parametrize(
    ("field", "value"),
    [(8, -5), (8, 100), (8, 1 << 30), (16, 0), (70, 0)],
    ids=["no length", "a wrong length", "too long", "another format", "a record"],
)
def test_what_was_synced_stays_behind_a_damaged_batch(
    tmp_path, clean, number, field, value, caplog
):
    folder = tmp_path / "orders-0"
    filled(folder).close()
    data = damage(folder / FIRST, number, field, value)
    log = open_log(folder, clean=clean, recovery_point=10)
    assert (log.log_end_offset, (folder / FIRST).read_bytes()) == (10, data)
    if field != 70:  # else a clean start has no reason to look
        assert f"from offset {2 * number} on, are damaged. They were synced" in caplog.text
    for offset in range(2 * number + 2, 10):
        assert list(read_values(log, offset)) == list(range(offset, 10))
    with pytest.raises(CorruptRecordError):
        read_values(log, 2 * number)
    assert append(log).first_offset == 10


def test_the_next_start_finds_what_is_behind_the_damage_as_well(tmp_path):
    folder = tmp_path / "orders-0"
    filled(folder).close()
    damage(folder / FIRST, 1)
    open_log(folder, clean=True, recovery_point=10).close()
    log = open_log(folder, clean=True, recovery_point=10)
    for offset in range(4, 10):
        assert list(read_values(log, offset)) == list(range(offset, 10))


def test_what_was_never_synced_is_cut_from_a_damaged_batch_on(tmp_path):
    folder = tmp_path / "orders-0"
    filled(folder).abandon()
    damage(folder / FIRST, 3)
    assert open_log(folder, recovery_point=6).log_end_offset == 6


@pytest.mark.parametrize("clean", [True, False])
@pytest.mark.parametrize("size", [20, 20_000])
def test_what_is_whole_is_read_up_to_a_damaged_batch(tmp_path, size, clean):
    folder = tmp_path / "orders-0"
    log = open_log(folder)
    for number in range(12):
        append(log, batch(b"%02d" % number * size))
    log.close()
    damage(folder / FIRST, 5, field=16, value=0)
    log = open_log(folder, clean=clean, recovery_point=12)
    each = log.size // 12
    for offset in range(5):
        read = log.read(offset, each * (11 - 2 * offset) // 2)  # ends in the damaged batch
        assert (read.next_offset, read.records.nbytes) == (5, (5 - offset) * each)


def test_a_wrong_length_misleads_no_read_of_what_follows(tmp_path):
    folder = tmp_path / "orders-0"
    filled(folder).close()
    damage(folder / FIRST, 1, value=100)
    log = open_log(folder, recovery_point=10)
    assert log.read(2, 1).next_offset == 4  # for its reader to find out
    assert (log.read(4, 1).next_offset, log.read(6, 1).next_offset) == (6, 8)


def test_a_read_up_to_an_offset_behind_damage_ends_before_it(tmp_path):
    folder = tmp_path / "orders-0"
    log = filled(folder)
    damage(folder / FIRST, 2)
    for offset in (0, 2):
        read = log.read(offset, 1 << 20, limit_offset=8)
        assert (read.next_offset, read.records.nbytes) == (4, (4 - offset) // 2 * (log.size // 5))
    with pytest.raises(CorruptRecordError):
        log.read(4, 1 << 20, limit_offset=8)


@pytest.mark.parametrize("is_next_damaged", [False, True])
def test_a_base_offset_too_far_ahead_costs_no_other_batch(tmp_path, is_next_damaged):
    folder = tmp_path / "orders-0"
    filled(folder).abandon()
    data = damage(folder / FIRST, 1, field=4, value=65538)  # which the checksum does not cover
    if is_next_damaged:
        data = damage(folder / FIRST, 2, field=70)
    log = open_log(folder, recovery_point=10)
    assert (log.log_end_offset, (folder / FIRST).read_bytes()) == (10, data)
    first = 6 if is_next_damaged else 4
    assert list(read_values(log, first)) == list(range(first, 10))


def test_the_base_offset_of_a_segments_last_batch_is_not_past_the_next_segments(tmp_path):
    folder = tmp_path / "orders-0"
    values = {"segment_bytes": 300}
    filled(folder, 9, **values).abandon()
    last = len((folder / FIRST).read_bytes()) // 85 - 1
    damage(folder / FIRST, last, field=4, value=65538)
    log = open_log(folder, recovery_point=18, **values)
    assert log.log_end_offset == 18


def test_a_batch_in_a_damaged_record_is_none_of_the_logs(tmp_path):
    folder = tmp_path / "orders-0"
    inner = bytearray(batch(b"inner"))
    struct.pack_into(">q", inner, 0, 1000)
    log = open_log(folder)
    for value in (b"a", bytes(inner), *(b"%d" % number for number in range(8))):
        append(log, batch(value))
    log.flush()
    log.abandon()
    for field, value in ((16, 7), (8, -5)):  # the format; then the length, too
        data = damage(folder / FIRST, 1, field, value)
        log = open_log(folder, recovery_point=10)
        assert (log.log_end_offset, (folder / FIRST).read_bytes()) == (10, data)
        assert list(read_values(log, 2)) == list(range(2, 10))
        log.abandon()


def test_producers_are_remembered_from_behind_the_damage(tmp_path):
    folder = tmp_path / "orders-0"
    log = open_log(folder)
    for sequence in range(5):
        append(log, idempotent_batch(sequence))
    log.close()
    damage(folder / FIRST, 0)
    log = open_log(folder, clean=True, recovery_point=5)
    assert append(log, idempotent_batch(4)).duplicate
    assert append(log, idempotent_batch(5)).first_offset == 5


def test_a_damaged_marker_makes_nobody_forget_the_producers_behind_it(tmp_path, caplog):
    folder = tmp_path / "orders-0"
    log = open_log(folder)
    append(log, idempotent_batch(0, producer_id=1))
    append(log, marker(committed=True, producer_id=9), origin=AppendOrigin.COORDINATOR)
    append(log, idempotent_batch(0, producer_id=2))
    append(log, idempotent_batch(1, producer_id=1))
    log.flush()
    log.abandon()
    damage(folder / FIRST, 1, field=64, value=-1)  # in its record
    log = open_log(folder, recovery_point=4)
    assert "ignoring a damaged batch for producer state" in caplog.text
    assert append(log, idempotent_batch(0, producer_id=2)).duplicate
    assert append(log, idempotent_batch(1, producer_id=1)).duplicate


@pytest.mark.parametrize(
    ("field", "value", "is_believed"),
    [(53, 0x7F000002, False), (4, 65538, False), (65, -1, True)],
    ids=["the sequence", "the base offset", "a record"],
)
def test_a_damaged_header_says_nothing_of_its_producer(tmp_path, field, value, is_believed):
    folder = tmp_path / "orders-0"
    log = open_log(folder)
    for sequence in range(3):
        append(log, idempotent_batch(sequence))
    append(log)
    log.flush()
    log.abandon()
    damage(folder / FIRST, 2, field, value)
    log = open_log(folder, recovery_point=4)
    (entry,) = log.producers()
    assert entry.last_sequence == (2 if is_believed else 1)


def test_a_sealed_segment_is_indexed_behind_its_damage_too(tmp_path):
    folder = tmp_path / "orders-0"
    values = {"segment_bytes": 300, "index_interval_bytes": 4096}
    filled(folder, 9, **values).close()
    damage(folder / FIRST, 1)
    (folder / FIRST).with_suffix(".index").unlink()
    log = open_log(folder, clean=True, recovery_point=18, **values)
    assert list(read_values(log, 4)) == list(range(4, 18))


@pytest.mark.parametrize("segment_bytes", [200, 1 << 20])
def test_a_damaged_header_where_records_have_no_time_stops_nobody(tmp_path, segment_bytes):
    folder = tmp_path / "orders-0"
    log = open_log(folder, segment_bytes=segment_bytes)
    for _ in range(6):
        append(log, batch(b"a" * 60, timestamps=[-1]))
    log.close()
    damage(folder / FIRST, 0)
    log = open_log(folder, clean=True, recovery_point=6, segment_bytes=segment_bytes)
    assert list(read_values(log, 1)) == [1, 2, 3, 4, 5]
    assert append(log, batch(b"a" * 60, timestamps=[NOW_MS])).first_offset == 6


# --- what is missing -----------------------------------------------------------------------------


@pytest.mark.parametrize("clean", [True, False])
def test_records_that_are_missing_at_the_end_are_told_of(tmp_path, clean, caplog):
    folder = tmp_path / "orders-0"
    size = (filled(folder).segments[0].size // 5) * 3
    os.truncate(folder / FIRST, size)
    assert open_log(folder, clean=clean, recovery_point=10).log_end_offset == 6
    assert f"{folder} ends at offset 6, but was synced up to 10: records are missing" in caplog.text


@pytest.mark.parametrize("batches", [0, 3])
@pytest.mark.parametrize("stopped_cleanly", [True, False])
def test_a_log_that_is_never_cut_is_refused_when_its_end_is_missing(
    tmp_path, batches, stopped_cleanly
):
    manager = open_manager(tmp_path)
    log = create(manager)
    for _ in range(5):
        append(log)
    manager.close()
    if not stopped_cleanly:
        (tmp_path / ".kafka_cleanshutdown").unlink()
    path = tmp_path / "orders-0" / FIRST
    os.truncate(path, path.stat().st_size // 5 * batches)
    with pytest.raises(KafkaStorageError, match=f"offset {batches}, but was synced up to 5"):
        open_manager(tmp_path, never_cut=("orders",))


def test_a_log_that_is_never_cut_is_refused_when_its_folder_is_missing(tmp_path):
    manager = open_manager(tmp_path)
    append(create(manager))
    manager.close()
    (tmp_path / "orders-0").rename(tmp_path / "elsewhere")
    with pytest.raises(KafkaStorageError, match="orders-0 is missing"):
        open_manager(tmp_path, never_cut=("orders",))
