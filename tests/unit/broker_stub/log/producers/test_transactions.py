"""Transactions in a log: what readers of committed records are told, also after a crash."""

import os
import shutil
from pathlib import Path

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from broker_stub.log.batch.append_info import AppendOrigin
from broker_stub.log.index.transaction_index import AbortedTransaction
from broker_stub.log.partition_log import PartitionLog
from pyclient.errors import (
    CorruptRecordError,
    InvalidProducerEpochError,
    TransactionCoordinatorFencedError,
)
from tests.support.logs import (
    NOW_MS,
    append,
    batch,
    marker,
    open_log,
    read_batches,
    transactional_batch,
)


def write(log: PartitionLog, buffer: bytes | bytearray) -> int:
    """Append as the broker's own parts do; the offset."""
    return append(log, buffer, origin=AppendOrigin.COORDINATOR).first_offset


def txn_index(folder: Path, base_offset: int = 0) -> Path:
    return folder / f"{base_offset:020d}.txnindex"


@pytest.fixture
def log(tmp_path: Path) -> PartitionLog:
    return open_log(tmp_path / "orders-0")


# --- the last stable offset ----------------------------------------------------------------------


def test_it_is_the_high_watermark_without_transactions(log):
    write(log, batch(b"a"))
    assert log.last_stable_offset == 1


def test_it_stays_at_the_oldest_open_transaction_until_that_ends(log):
    write(log, batch(b"a"))
    write(log, transactional_batch(b"b", producer_id=1))
    write(log, transactional_batch(b"c", producer_id=2))
    write(log, batch(b"d"))
    assert log.last_stable_offset == 1
    write(log, marker(committed=True, producer_id=2))
    assert log.last_stable_offset == 1
    write(log, marker(committed=False, producer_id=1))
    assert log.last_stable_offset == log.high_watermark == 6


def test_it_is_never_past_the_high_watermark(log):
    log.append(batch(b"a"), leader_epoch=0, now_ms=NOW_MS)
    assert log.last_stable_offset == log.high_watermark == 0


def test_it_is_never_before_the_start_of_the_log(log):
    write(log, transactional_batch(b"a", b"b", b"c"))
    log.delete_records(2)
    assert log.last_stable_offset == 2


# --- aborted transactions ------------------------------------------------------------------------


def test_an_abort_is_told_and_a_commit_is_not(log):
    write(log, transactional_batch(b"a", b"b"))
    write(log, marker(committed=False))
    write(log, transactional_batch(b"c", sequence=2))
    write(log, marker(committed=True))
    assert log.aborted_transactions(0, 5) == [AbortedTransaction(7, 0, 2, 3)]
    assert log.aborted_transactions(3, 5) == []


def test_an_entry_says_up_to_where_all_was_decided(log):
    write(log, transactional_batch(b"a", producer_id=1))
    write(log, transactional_batch(b"b", producer_id=2))
    write(log, marker(committed=False, producer_id=1))
    write(log, marker(committed=False, producer_id=2))
    assert log.aborted_transactions(0, 4) == [
        AbortedTransaction(1, 0, 2, 1),
        AbortedTransaction(2, 1, 3, 4),
    ]


def test_a_transaction_that_is_aborted_segments_later_is_found(tmp_path):
    log = open_log(tmp_path / "orders-0", segment_bytes=300)
    write(log, transactional_batch(b"a", producer_id=1))
    for _ in range(10):
        write(log, batch(b"x" * 100))
    write(log, marker(committed=False, producer_id=1))
    assert len(log.segments) > 3
    aborted = [AbortedTransaction(1, 0, 11, 12)]
    assert log.aborted_transactions(0, 1) == aborted
    assert log.aborted_transactions(5, 6) == aborted
    bases = [segment.base_offset for segment in log.segments]
    log.close()
    paths = [txn_index(Path(log.folder), base) for base in bases]
    assert [path.exists() for path in paths] == [False] * (len(bases) - 1) + [True]


def test_a_marker_without_a_transaction_is_written_and_means_nothing(log):
    write(log, marker(committed=False))
    assert log.log_end_offset == 1
    assert log.aborted_transactions(0, 1) == []


def test_a_marker_with_a_newer_epoch_ends_the_transaction_and_fences_the_producer(log):
    write(log, transactional_batch(b"a", epoch=0))
    write(log, marker(committed=False, epoch=1))
    assert log.aborted_transactions(0, 2) == [AbortedTransaction(7, 0, 1, 2)]
    with pytest.raises(InvalidProducerEpochError):
        write(log, transactional_batch(b"b", epoch=0, sequence=1))


def test_a_marker_of_a_replaced_coordinator_is_refused(log):
    write(log, marker(committed=True, coordinator_epoch=3))
    write(log, transactional_batch(b"a"))
    with pytest.raises(TransactionCoordinatorFencedError, match="epoch 3 has written here"):
        write(log, marker(committed=False, coordinator_epoch=2))
    assert (log.log_end_offset, log.last_stable_offset) == (2, 1)


def test_a_control_batch_that_is_none_is_refused_before_it_is_written(log):
    broken = batch(b"no marker", control=True, transactional=True, producer_id=7, producer_epoch=0)
    with pytest.raises(CorruptRecordError):
        write(log, broken)
    assert log.log_end_offset == 0


def test_control_batches_without_a_producer_are_passed_over(log):
    write(log, batch(b"\0\0", key=b"\0\0\0\2", control=True))
    assert log.log_end_offset == 1
    assert len(log.producer_state) == 0


# --- after a restart -----------------------------------------------------------------------------


def write_some(log: PartitionLog) -> None:
    write(log, transactional_batch(b"a", producer_id=1))
    write(log, transactional_batch(b"b", producer_id=2))
    write(log, marker(committed=False, producer_id=1, coordinator_epoch=4))
    write(log, transactional_batch(b"c", producer_id=3))
    write(log, marker(committed=True, producer_id=2))


def test_a_clean_start_reads_what_was_aborted_from_the_file(tmp_path):
    log = open_log(tmp_path / "orders-0")
    write_some(log)
    log.close()
    before = txn_index(tmp_path / "orders-0").read_bytes()
    reopened = open_log(tmp_path / "orders-0", clean=True, recovery_point=5)
    assert reopened.aborted_transactions(0, 5) == [AbortedTransaction(1, 0, 2, 1)]
    reopened.advance_high_watermark(5)
    assert reopened.last_stable_offset == 3
    assert txn_index(tmp_path / "orders-0").read_bytes() == before


@pytest.mark.parametrize("clean", [True, False])
def test_the_coordinators_epoch_is_known_after_a_replay(tmp_path, clean):
    folder = tmp_path / "orders-0"
    log = open_log(folder)
    write_some(log)
    log.close() if clean else log.abandon()
    reopened = open_log(folder, clean=clean)
    entry = reopened.producer_state.get(1)
    assert entry is not None
    assert entry.coordinator_epoch == 4


@pytest.mark.parametrize(
    "damage", [lambda data: data[:-1], lambda data: b"\1" + data[1:], lambda data: data * 2]
)
def test_a_damaged_file_is_rebuilt_even_after_a_clean_stop(tmp_path, caplog, damage):
    folder = tmp_path / "orders-0"
    log = open_log(folder)
    write_some(log)
    log.close()
    before = txn_index(folder).read_bytes()
    txn_index(folder).write_bytes(damage(before))
    reopened = open_log(folder, clean=True, recovery_point=5)
    assert reopened.aborted_transactions(0, 5) == [AbortedTransaction(1, 0, 2, 1)]
    assert "rebuilding index" in caplog.text
    reopened.close()
    assert txn_index(folder).read_bytes() == before


steps_strategy = st.lists(
    st.tuples(st.integers(1, 3), st.sampled_from(["data", "data", "commit", "abort", "plain"])),
    min_size=1,
    max_size=30,
)


@settings(max_examples=60, deadline=None)
@given(
    steps=steps_strategy,
    segment_bytes=st.sampled_from([300, 700, 100_000]),
    flush_after=st.integers(0, 30),
    data=st.data(),
)
def test_recovery_finds_the_transactions_of_any_history_cut_anywhere(
    tmp_path_factory, steps, segment_bytes, flush_after, data
):
    folder = tmp_path_factory.mktemp("log") / "orders-0"
    log = open_log(folder, segment_bytes=segment_bytes)
    written = []
    recovery_point = 0
    for number, (producer_id, step) in enumerate(steps):
        if step == "plain":
            buffer = batch(b"plain")
        elif step == "data":
            buffer = transactional_batch(b"data", producer_id=producer_id)
        else:
            ended = marker(committed=step == "commit", producer_id=producer_id)
            buffer = bytearray(ended)
        write(log, buffer)
        written.append(bytes(buffer))
        if number == flush_after:
            log.flush()
            recovery_point = log.recovery_point
    base = log.segments[-1].base_offset
    log.abandon()
    last_segment = folder / f"{base:020d}.log"
    cut = data.draw(st.integers(0, last_segment.stat().st_size), label="cut at")
    os.truncate(last_segment, cut)
    recovered = open_log(folder, recovery_point=recovery_point, segment_bytes=segment_bytes)

    kept = [bytes(one.data) for one in read_batches(recovered)]
    assert kept == written[: len(kept)]
    model = open_log(folder.parent / "model-0")
    for one in kept:
        write(model, bytes(8) + one[8:])
    end = model.log_end_offset
    recovered.advance_high_watermark(end)
    assert recovered.last_stable_offset == model.last_stable_offset
    assert recovered.aborted_transactions(0, end) == model.aborted_transactions(0, end)
    shutil.rmtree(folder.parent)
