"""After a start, older retries are looked up in the log's tail: once, on another thread."""

from functools import partial

import pytest

from broker_stub.log.partition_log import AppendOrigin, PartitionLog
from broker_stub.log.producers import recall as producer_recall
from broker_stub.log.producers.recall import recall
from pyclient.errors import KafkaStorageError, OutOfOrderSequenceError
from tests.support.logs import (
    append,
    append_as_client,
    batch,
    idempotent_batch,
    marker,
    open_log,
)


def restarted(folder, write, **values):
    """A log that was written to, closed cleanly and opened again."""
    log = open_log(folder, **values)
    write(log)
    log.close()
    return open_log(folder, clean=True, **values)


def write_nine(log: PartitionLog, producers=(7,)):
    for number in range(9):
        for producer_id in producers:
            append(log, idempotent_batch(number * 2, 2, producer_id=producer_id))


def remembered(log, producer_id=7):
    entry = log.producer_state.get(producer_id)
    return [one.first_offset for one in entry.batches]


def test_the_next_batch_and_the_last_one_need_no_look(tmp_path):
    log = restarted(tmp_path / "orders-0", write_nine)
    assert append(log, idempotent_batch(16, 2)).duplicate
    assert not append(log, idempotent_batch(18, 2)).duplicate
    assert not log.producer_state.is_recalling


def test_a_gap_is_no_retry_and_refused_at_once(tmp_path):
    log = restarted(tmp_path / "orders-0", write_nine)
    with pytest.raises(OutOfOrderSequenceError, match="sequence 999 where 18 is next"):
        append(log, idempotent_batch(999))
    assert not log.producer_state.is_recalling


def test_an_older_retry_is_asked_to_come_again_and_one_look_serves_all_producers(tmp_path):
    log = restarted(tmp_path / "orders-0", partial(write_nine, producers=(7, 8, 9)))
    with pytest.raises(KafkaStorageError, match=r"producer 8 wrote .* send the batch again"):
        append(log, idempotent_batch(8, 2, producer_id=8))
    assert log.log_end_offset == 54
    for _ in recall(log):
        pass
    for at, producer_id in enumerate((7, 8, 9)):
        assert remembered(log, producer_id) == [number * 6 + at * 2 for number in range(4, 9)]
        assert append(log, idempotent_batch(8, 2, producer_id=producer_id)).duplicate
        with pytest.raises(OutOfOrderSequenceError):
            append(log, idempotent_batch(6, 2, producer_id=producer_id))


def test_many_retries_ask_for_one_look(tmp_path, monkeypatch):
    log = restarted(tmp_path / "orders-0", write_nine)
    asked = []
    monkeypatch.setattr(log, "_request_recall", lambda: asked.append(log))
    for _ in range(3):
        with pytest.raises(KafkaStorageError):
            append(log, idempotent_batch(8, 2))
    assert len(asked) == 1


def test_what_is_written_during_the_look_counts_too(tmp_path, monkeypatch):
    monkeypatch.setattr(producer_recall, "_BATCHES_BETWEEN_PAUSES", 3)
    log = restarted(tmp_path / "orders-0", partial(write_nine, producers=(7, 8)))
    look = recall(log)
    next(look)
    append(log, idempotent_batch(18, 2))
    append(log, idempotent_batch(0, 2, epoch=1, producer_id=8))  # sequences start at 0 again
    assert append(log, idempotent_batch(18, 2)).duplicate
    for _ in look:
        pass
    assert remembered(log, 7) == [20, 24, 28, 32, 36]
    assert remembered(log, 8) == [38]


def test_a_producer_that_wrote_five_meanwhile_remembers_those(tmp_path, monkeypatch):
    monkeypatch.setattr(producer_recall, "_BATCHES_BETWEEN_PAUSES", 3)
    log = restarted(tmp_path / "orders-0", write_nine)
    look = recall(log)
    next(look)
    for number in range(9, 14):
        append(log, idempotent_batch(number * 2, 2))
    for _ in look:
        pass
    assert remembered(log) == [18, 20, 22, 24, 26]


def test_only_batches_of_records_of_the_same_epoch_count(tmp_path):
    def write(log):
        append(log, idempotent_batch(0, 2))
        append(log, marker(committed=True), origin=AppendOrigin.COORDINATOR)
        append(log, idempotent_batch(0, 2, epoch=1))
        append(log, batch(b"of nobody"))
        append(log, idempotent_batch(2, 2, epoch=1))

    log = restarted(tmp_path / "orders-0", write)
    assert append_as_client(log, idempotent_batch(0, 2, epoch=1)).first_offset == 3
    assert remembered(log) == [3, 6]


@pytest.mark.parametrize("segment_bytes", [1 << 20, 400])
def test_the_tail_is_what_is_looked_at(tmp_path, monkeypatch, segment_bytes):
    size = len(idempotent_batch(0, 2))
    monkeypatch.setattr(producer_recall, "_TAIL_BYTES", 3 * size)
    values = {"segment_bytes": segment_bytes, "index_interval_bytes": 1}
    log = restarted(tmp_path / "orders-0", write_nine, **values)
    seen = []
    monkeypatch.setattr(
        producer_recall._OlderBatches, "note", lambda _, header: seen.append(header.base_offset)
    )
    for _ in recall(log):
        pass
    assert seen[-1] == 16
    assert 3 <= len(seen) <= 5  # the index leads to a batch not far before


def test_a_disk_that_refuses_leaves_it_open_and_the_next_retry_asks_again(tmp_path, monkeypatch):
    log = restarted(tmp_path / "orders-0", write_nine)
    with pytest.raises(KafkaStorageError):
        append(log, idempotent_batch(8, 2))
    hidden = (tmp_path / "orders-0").rename(tmp_path / "hidden")
    log._directory._files.clear()
    with pytest.raises(KafkaStorageError):
        list(recall(log))
    assert not log.producer_state.is_recalling
    hidden.rename(tmp_path / "orders-0")
    assert append_as_client(log, idempotent_batch(8, 2)).duplicate


def test_behind_a_damaged_batch_retries_are_not_known_and_a_warning_says_so(tmp_path, caplog):
    log = restarted(tmp_path / "orders-0", write_nine)
    with open(tmp_path / "orders-0" / "00000000000000000000.log", "r+b") as file:
        file.seek(5 * len(idempotent_batch(0, 2)) + 8)
        file.write(b"\0\0\0\0")
    assert append_as_client(log, idempotent_batch(8, 2)).duplicate
    assert "behind a damaged batch" in caplog.text
    with pytest.raises(OutOfOrderSequenceError):
        append(log, idempotent_batch(10, 2))


@pytest.mark.parametrize("tail_bytes", [1 << 20, 200])
def test_a_look_ends_also_where_damage_is_in_its_way(tmp_path, monkeypatch, tail_bytes):
    monkeypatch.setattr(producer_recall, "_TAIL_BYTES", tail_bytes)
    log = restarted(tmp_path / "orders-0", write_nine)  # too short for an index
    with open(tmp_path / "orders-0" / "00000000000000000000.log", "r+b") as file:
        file.seek(8)
        file.write(b"\0\0\0\0")
    with pytest.raises(OutOfOrderSequenceError):
        append_as_client(log, idempotent_batch(8, 2))
    assert append(log, idempotent_batch(18, 2)).first_offset == 18


def test_a_look_goes_on_behind_damage_where_the_index_leads(tmp_path):
    log = restarted(tmp_path / "orders-0", write_nine, index_interval_bytes=1)
    with open(tmp_path / "orders-0" / "00000000000000000000.log", "r+b") as file:
        file.seek(8)
        file.write(b"\0\0\0\0")
    assert append_as_client(log, idempotent_batch(8, 2)).duplicate
    assert remembered(log) == [8, 10, 12, 14, 16]


def test_a_producer_of_a_new_epoch_does_not_disturb_the_look(tmp_path, monkeypatch):
    log = restarted(tmp_path / "orders-0", partial(write_nine, producers=(7, 8)))
    with pytest.raises(KafkaStorageError):
        append(log, idempotent_batch(8, 2, producer_id=8))
    entry = log.producer_state.get(7)
    entry.batches.clear()  # as an append does, before it notes the first batch of the epoch
    list(recall(log))
    assert not log.producer_state.is_recalling
    assert append(log, idempotent_batch(8, 2, producer_id=8)).duplicate


def test_a_closed_log_is_left_alone(tmp_path):
    log = restarted(tmp_path / "orders-0", write_nine)
    log.abandon()
    assert list(recall(log)) == []
