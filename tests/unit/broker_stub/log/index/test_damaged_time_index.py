"""A damaged time index misleads neither searches by time nor retention, compaction and appends."""

import struct

import pytest

from broker_stub.log.index import index_search
from broker_stub.log.log_manager import LogManager
from pyclient.clock import ManualClock
from pyclient.errors import KafkaStorageError
from tests.support.damaged_logs import (
    COUNT,
    EVERY_SECOND,
    VALUES,
    damaged,
    finish,
    flip_middle,
    offsets_by_time,
    remove,
    shorten,
    write,
    zero_out,
)
from tests.support.logs import (
    NOW_MS,
    append,
    batch,
    open_manager,
    read_values,
)


@pytest.mark.parametrize("damage", [flip_middle(12), zero_out, remove, shorten])
def test_a_damaged_time_index_misleads_nobody(tmp_path, damage):
    manager, log, good = damaged(tmp_path, ".timeindex", damage)
    assert read_values(log) == VALUES  # fetches do not need it
    index = tmp_path / "orders-0" / f"{0:020d}.timeindex"

    assert offsets_by_time(log) == list(range(COUNT))
    finish(manager)
    assert offsets_by_time(log) == list(range(COUNT))
    manager.close()
    assert index.read_bytes() == good


def test_a_search_by_time_that_would_take_long_is_refused_until_the_index_is_there(
    tmp_path, monkeypatch
):
    monkeypatch.setattr(index_search, "_SCANNED_BATCHES_MAX", 5)
    manager, log, _ = damaged(tmp_path, ".timeindex", flip_middle(12))
    assert log.max_timestamp() == (NOW_MS + COUNT - 1, COUNT - 1, 0)
    middle = NOW_MS + COUNT // 2 + 2
    with pytest.raises(KafkaStorageError, match="until its index is rebuilt"):
        log.lookup_timestamp(middle)
    finish(manager)
    assert log.lookup_timestamp(middle) == (middle, COUNT // 2 + 2, 0)
    manager.close()


def test_a_wrong_latest_time_deletes_nothing(tmp_path):
    clock = ManualClock(NOW_MS + 1000)

    def open_() -> LogManager:
        return open_manager(
            tmp_path,
            clock=clock,
            settings={"retention_check_interval_ms": 10},
            retention_ms=100_000,
            segment_bytes=500,
            index_interval_bytes=10_000,
        )

    manager = open_()
    write(manager)
    manager.close()
    (tmp_path / "orders-0" / f"{0:020d}.timeindex").write_bytes(struct.pack(">qi", 1, 0))
    manager = open_()
    log = manager.get("orders", 0)
    assert log is not None
    clock.advance(10)
    finish(manager)
    assert read_values(log) == VALUES
    clock.advance(10)
    finish(manager)
    assert read_values(log) == VALUES
    assert log.segments[0].search.max_timestamp[0] > NOW_MS
    manager.close()


def test_compaction_waits_for_a_damaged_time_index(tmp_path, caplog):
    values = {"segment_bytes": 500, "min_compaction_lag_ms": 10, "cleanup_policy": ["compact"]}
    clock = ManualClock(NOW_MS + 1000)
    settings = {"cleaner_backoff_ms": 10}
    manager = open_manager(tmp_path, **values)
    write(manager)
    manager.close()
    index = tmp_path / "orders-0" / f"{0:020d}.timeindex"
    index.write_bytes(struct.pack(">qi", NOW_MS - 7, 0))
    manager = open_manager(tmp_path, clock=clock, settings=settings, **values)
    log = manager.get("orders", 0)
    assert log is not None
    clock.advance(10)
    finish(manager)
    assert "cannot compact" in caplog.text
    finish(manager)  # found by the background thread itself, which its request wakes again
    clock.advance(10)
    finish(manager)
    assert len(read_values(log)) < COUNT
    manager.close()


def test_an_append_after_a_start_waits_for_a_damaged_time_index(tmp_path):
    manager = open_manager(tmp_path, **EVERY_SECOND)
    write(manager)
    manager.close()
    index = tmp_path / "orders-0" / f"{0:020d}.timeindex"
    content = index.read_bytes()
    index.write_bytes(content[:-5] + b"\x7f" + content[-4:])  # the latest time is a later one
    manager = open_manager(tmp_path, **EVERY_SECOND)
    log = manager.get("orders", 0)
    assert log is not None
    with pytest.raises(KafkaStorageError, match="until its index is rebuilt"):
        append(log, batch(b"more"))
    assert log.log_end_offset == COUNT
    finish(manager)
    append(log, batch(b"more"))
    assert read_values(log) == VALUES | {COUNT: b"more"}
    assert offsets_by_time(log) == list(range(COUNT))
    manager.close()
