"""Retries are written once: over five batches, epochs, restarts and crashes."""

import os

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from pyclient.errors import InvalidProducerEpochError, OutOfOrderSequenceError
from tests.support.logs import (
    NOW_MS,
    append,
    append_as_client,
    batch,
    idempotent_batch,
    open_log,
    read_values,
)


def sequences_written(log, count, batch_records=2):
    for number in range(count):
        append(log, idempotent_batch(number * batch_records, batch_records))


def test_each_of_the_last_five_batches_is_recognised_with_its_first_offsets(tmp_path):
    log = open_log(tmp_path / "orders-0")
    sequences_written(log, 7)
    for number in range(2, 7):
        info = append(log, idempotent_batch(number * 2, 2))
        assert (info.first_offset, info.last_offset) == (number * 2, number * 2 + 1)
        assert info.duplicate
    assert log.log_end_offset == 14


def test_a_retry_waits_for_the_flush_that_its_batch_waits_for(tmp_path):
    log = open_log(tmp_path / "orders-0", flush_messages=1)
    assert append(log, idempotent_batch(0, 2)).flush_due
    assert append(log, idempotent_batch(0, 2)).flush_due  # the first one is not over yet
    log.flush()
    assert not append(log, idempotent_batch(0, 2)).flush_due


def test_a_retry_needs_no_flush_where_none_is_asked_for(tmp_path):
    log = open_log(tmp_path / "orders-0")
    append(log, idempotent_batch(0, 2))
    assert not append(log, idempotent_batch(0, 2)).flush_due


def test_an_older_retry_is_out_of_order(tmp_path):
    log = open_log(tmp_path / "orders-0")
    sequences_written(log, 7)
    with pytest.raises(OutOfOrderSequenceError, match="sequence 2 where 14 is next"):
        append(log, idempotent_batch(2, 2))


def test_a_retry_must_have_the_same_range_of_sequences(tmp_path):
    log = open_log(tmp_path / "orders-0")
    sequences_written(log, 2)
    with pytest.raises(OutOfOrderSequenceError):
        append(log, idempotent_batch(2, 1))


def test_a_gap_is_refused_and_nothing_is_written(tmp_path):
    log = open_log(tmp_path / "orders-0")
    sequences_written(log, 1)
    with pytest.raises(OutOfOrderSequenceError, match="sends sequence 3 where 2 is next"):
        append(log, idempotent_batch(3))
    append(log, idempotent_batch(2))
    assert log.log_end_offset == 3


def test_an_unknown_producer_may_start_anywhere(tmp_path):
    log = open_log(tmp_path / "orders-0")
    assert append(log, idempotent_batch(1000)).first_offset == 0


def test_an_older_epoch_is_fenced(tmp_path):
    log = open_log(tmp_path / "orders-0")
    append(log, idempotent_batch(0, epoch=2))
    with pytest.raises(InvalidProducerEpochError, match="epoch 1, but epoch 2"):
        append(log, idempotent_batch(1, epoch=1))


def test_a_new_epoch_starts_at_sequence_zero(tmp_path):
    log = open_log(tmp_path / "orders-0")
    sequences_written(log, 2)
    with pytest.raises(OutOfOrderSequenceError, match="sequence 4 where 0"):
        append(log, idempotent_batch(4, epoch=1))
    assert append(log, idempotent_batch(0, epoch=1)).first_offset == 4


def test_sequences_wrap_at_the_largest_int(tmp_path):
    log = open_log(tmp_path / "orders-0")
    append(log, idempotent_batch(2**31 - 2, 3))  # the last record has sequence 0
    assert append(log, idempotent_batch(2**31 - 2, 3)).duplicate
    assert append(log, idempotent_batch(1)).first_offset == 3


def test_producers_do_not_disturb_each_other(tmp_path):
    log = open_log(tmp_path / "orders-0")
    for number in range(8):
        append(log, idempotent_batch(number, producer_id=1))
        append(log, idempotent_batch(number, producer_id=2))
        append(log, batch(b"plain"))
    assert append(log, idempotent_batch(3, producer_id=2)).first_offset == 10


def test_a_duplicate_has_the_first_append_time_where_the_topic_stamps(tmp_path):
    log = open_log(tmp_path / "orders-0", message_timestamp_type="LogAppendTime")
    append(log, idempotent_batch(0), now_ms=NOW_MS)
    assert append(log, idempotent_batch(0), now_ms=NOW_MS + 50).log_append_time_ms == NOW_MS


@pytest.mark.parametrize("clean", [True, False])
@pytest.mark.parametrize("segment_bytes", [1 << 20, 300])
def test_retries_are_recognised_after_a_restart(tmp_path, clean, segment_bytes):
    folder = tmp_path / "orders-0"
    log = open_log(folder, segment_bytes=segment_bytes)
    for number in range(9):
        append(log, idempotent_batch(number * 2, 2))
        append(log, batch(b"of another"))
    if clean:
        log.close()
    else:
        log.abandon()
    log = open_log(folder, clean=clean, segment_bytes=segment_bytes)
    for number in range(4, 9):
        info = append_as_client(log, idempotent_batch(number * 2, 2))
        assert (info.first_offset, info.duplicate) == (number * 3, True)
    with pytest.raises(OutOfOrderSequenceError):
        append(log, idempotent_batch(6, 2))
    assert append(log, idempotent_batch(18, 2)).first_offset == 27


def test_producers_that_have_not_written_for_long_are_forgotten(tmp_path):
    log = open_log(tmp_path / "orders-0")
    append(log, idempotent_batch(0))
    log.expire_producers(NOW_MS + 999, 1000)
    assert len(log.producer_state) == 1
    log.expire_producers(NOW_MS + 1000, 1000)
    assert len(log.producer_state) == 0


def test_a_damaged_snapshot_is_replaced_by_the_log(tmp_path):
    folder = tmp_path / "orders-0"
    log = open_log(folder)
    sequences_written(log, 3)
    log.close()
    snapshot = folder / "00000000000000000006.snapshot"
    snapshot.write_bytes(snapshot.read_bytes()[:-1])
    log = open_log(folder, clean=True)
    assert append(log, idempotent_batch(0, 2)).duplicate
    assert not snapshot.exists()


def test_a_snapshot_of_records_that_were_lost_is_not_used(tmp_path):
    folder = tmp_path / "orders-0"
    log = open_log(folder)
    sequences_written(log, 3)
    log.close()
    os.truncate(folder / "00000000000000000000.log", len(idempotent_batch(0, 2)))
    log = open_log(folder)
    assert log.log_end_offset == 2
    assert append(log, idempotent_batch(2, 2)).first_offset == 2


@settings(max_examples=60, deadline=None)
@given(
    steps=st.lists(
        st.one_of(
            st.integers(1, 3).map(lambda count: ("send", count)),
            st.integers(1, 7).map(lambda back: ("retry", back)),
            st.sampled_from([("clean restart", 0), ("crash", 0)]),
        ),
        max_size=40,
    )
)
def test_every_batch_is_written_once_whatever_is_retried_and_restarted(tmp_path_factory, steps):
    folder = tmp_path_factory.mktemp("log") / "orders-0"
    log = open_log(folder, segment_bytes=500)
    sent: list[tuple[int, int, int]] = []  # sequence, count, first offset
    for step, number in steps:
        if step == "send":
            sequence = sent[-1][0] + sent[-1][1] if sent else 0
            info = append(log, idempotent_batch(sequence, number))
            assert not info.duplicate
            sent.append((sequence, number, info.first_offset))
        elif step == "retry" and number <= len(sent):
            sequence, count, first_offset = sent[-number]
            if number <= 5:
                info = append_as_client(log, idempotent_batch(sequence, count))
                assert (info.first_offset, info.duplicate) == (first_offset, True)
            else:
                with pytest.raises(OutOfOrderSequenceError):
                    append_as_client(log, idempotent_batch(sequence, count))
        elif step == "clean restart":
            log.close()
            log = open_log(folder, clean=True, segment_bytes=500)
        elif step == "crash":
            log.abandon()
            log = open_log(folder, segment_bytes=500)
    values = [b"%d" % number for number in range(sum(count for _, count, _ in sent))]
    assert list(read_values(log).values()) == values
