"""Which logs are compacted and when, and what the cleaner does when it can't."""

import os
from pathlib import Path

import pytest

from broker_stub.log.cleaning import compaction, segment_swap
from broker_stub.log.internal_batches import build_batch
from broker_stub.log.log_config import INT64_MAX
from broker_stub.log.log_manager import LogManager
from broker_stub.log.partition_log import PartitionLog
from pyclient.clock import ManualClock
from tests.support.compaction import DAY_MS, contents, table, write
from tests.support.logs import NOW_MS, TOPIC_ID, batch, config, open_manager

COMPACT = {"cleanup_policy": ["compact"], "segment_bytes": 300, "min_cleanable_dirty_ratio": 0.5}
BACKOFF_MS = 15_000
CHECKPOINT_MS = 60_000


class House:
    """A log manager, and logs to fill."""

    def __init__(self, folder: Path, **settings: object) -> None:
        self.folder = folder
        self.clock = ManualClock(NOW_MS)
        self.settings = settings
        self.manager = self._open()

    def _open(self) -> LogManager:
        return open_manager(self.folder, clock=self.clock, settings=self.settings, **COMPACT)

    def log(self, topic: str = "orders", **values: object) -> PartitionLog:
        log = self.manager.create(topic, 0, topic_id=TOPIC_ID)
        log.update_config(config(**{**COMPACT, **values}))
        return log

    def fill(self, log: PartitionLog, count: int = 12, keys: int = 2) -> None:
        for number in range(count):
            self.clock.advance(1)
            now_ms = self.clock.now_ms()
            key = b"k%d" % (number % keys)
            write(log, batch(b"%d" % number, key=key, timestamps=[now_ms]), now_ms)

    def pass_time(self, milliseconds: float = BACKOFF_MS) -> None:
        """Advance the clock and run everything that is due."""
        self.clock.advance(milliseconds)
        while self.manager.run_due() == 0:
            pass

    def restart(self, *, clean: bool = True) -> None:
        self.manager.close() if clean else self.manager.abandon()
        self.manager = self._open()

    def cleaned_to(self) -> str:
        return (self.folder / "cleaner-offset-checkpoint").read_text()


@pytest.fixture
def house(tmp_path: Path) -> House:
    return House(tmp_path)


def is_compacted(log: PartitionLog) -> bool:
    return len(contents(log)) < log.log_end_offset


def test_a_dirty_log_is_compacted_at_the_next_look(house):
    log = house.log()
    house.fill(log)
    house.pass_time(BACKOFF_MS - 100)
    assert not is_compacted(log)
    house.pass_time(100)
    assert is_compacted(log)
    assert table(log) == {b"k0": b"10", b"k1": b"11"}


def test_where_it_was_compacted_up_to_is_kept(house):
    log = house.log()
    house.fill(log)
    house.pass_time()
    house.pass_time(CHECKPOINT_MS)
    end = log.segments[-1].base_offset
    assert house.cleaned_to() == f"0\n1\norders 0 {end}\n"


@pytest.mark.parametrize("clean", [True, False])
def test_after_a_restart_only_what_is_new_counts(house, clean, monkeypatch):
    house.fill(house.log())
    house.pass_time()
    house.pass_time(CHECKPOINT_MS)
    house.restart(clean=clean)
    monkeypatch.setattr(compaction, "_read", lambda *_: pytest.fail("compacted again"))
    house.log()
    house.pass_time()


def test_a_damaged_checkpoint_counts_as_empty(house, caplog):
    house.fill(house.log())
    house.manager.close()
    (house.folder / "cleaner-offset-checkpoint").write_text("0\n7\n")
    house.restart()
    log = house.log()
    house.pass_time()
    assert is_compacted(log)
    assert "counts as empty" in caplog.text
    house.pass_time(CHECKPOINT_MS)
    assert house.cleaned_to().startswith("0\n1\norders 0 ")


def test_a_checkpoint_past_the_end_of_the_log_does_not_count(house):
    house.fill(house.log())
    house.manager.close()
    (house.folder / "cleaner-offset-checkpoint").write_text("0\n1\norders 0 5000\n")
    house.restart()
    log = house.log()
    house.pass_time()
    assert is_compacted(log)


def test_a_new_log_of_a_deleted_ones_name_is_not_taken_for_compacted(house):
    house.fill(house.log())
    house.pass_time()
    house.pass_time(CHECKPOINT_MS)
    house.manager.delete("orders", 0)
    house.fill(house.log())  # before the background has noted the deletion
    house.manager.run_due()
    house.restart(clean=False)
    log = house.log()
    house.pass_time()
    assert is_compacted(log)


def test_too_little_that_is_new_is_not_worth_it(house):
    log = house.log(min_cleanable_dirty_ratio=0.9)
    house.fill(log, 100, keys=80)
    house.pass_time()
    compacted = contents(log)
    house.fill(log, 8)
    house.pass_time()
    assert contents(log).keys() > compacted.keys()
    log.update_config(config(**{**COMPACT, "min_cleanable_dirty_ratio": 0.01}))
    house.pass_time()
    assert not contents(log).keys() > compacted.keys()


def fill_and_wait(house, lag_ms, **options):
    """The log is compacted only once this time has passed."""
    log = house.log(**options)
    house.fill(log)
    house.pass_time()
    assert not is_compacted(log)
    house.pass_time(lag_ms)
    assert is_compacted(log)


def test_young_records_are_left_alone(house):
    fill_and_wait(house, 60_000, min_compaction_lag_ms=60_000)


def test_records_without_a_time_are_as_young_as_their_file(house):
    log = house.log(min_compaction_lag_ms=60_000)
    for number in range(12):
        write(log, batch(b"%d" % number, timestamps=[-1]))
    for segment in log.segments:
        os.utime(segment.log_path, ns=(0, NOW_MS * 1_000_000))
    house.pass_time()
    assert not is_compacted(log)
    house.pass_time(60_000)
    assert is_compacted(log)


def test_a_tombstone_may_be_kept_for_ever(house):
    log = house.log(delete_retention_ms=INT64_MAX, min_cleanable_dirty_ratio=0)
    tombstone = write(log, build_batch([(b"gone", None)], NOW_MS))
    for _ in range(2):
        house.fill(log)
        house.pass_time(1000 * DAY_MS)
    assert is_compacted(log)
    assert contents(log)[tombstone] == (b"gone", None)


def test_records_that_have_waited_long_enough_are_due_whatever_the_ratio(house):
    fill_and_wait(house, 100_000, min_cleanable_dirty_ratio=1.0, max_compaction_lag_ms=100_000)


def test_the_active_segment_of_a_compacted_topic_is_closed_in_time_for_that(house):
    log = house.log(segment_bytes=10_000, max_compaction_lag_ms=1000)
    write(log, batch(b"1", key=b"k", timestamps=[NOW_MS]))
    write(log, batch(b"2", key=b"k", timestamps=[NOW_MS + 1000]))
    assert len(log.segments) == 1
    write(log, batch(b"3", key=b"k", timestamps=[NOW_MS + 1001]))
    assert len(log.segments) == 2


def test_the_dirtiest_log_comes_first(house, monkeypatch):
    order = []
    run = compaction.Compaction.run

    def noting(self):
        order.append(self._log.topic)
        yield from run(self)

    monkeypatch.setattr(compaction.Compaction, "run", noting)
    mixed, dirty = house.log("mixed"), house.log("dirty")
    house.fill(mixed, 40, keys=30)
    house.pass_time()
    house.fill(mixed, 60)
    house.fill(dirty, 12)
    order.clear()
    house.pass_time()
    assert order == ["dirty", "mixed"]


def test_topics_that_are_not_compacted_are_left_alone(house):
    log = house.log(cleanup_policy=["delete"])
    house.fill(log)
    house.pass_time()
    assert not is_compacted(log)


def test_a_topic_can_be_both_compacted_and_deleted_by_age(house):
    log = house.log(cleanup_policy=["compact", "delete"], retention_ms=400_000)
    house.fill(log)
    house.pass_time()
    assert is_compacted(log)
    house.pass_time(700_000)
    assert log.log_start_offset == log.log_end_offset == 12


def test_no_log_is_compacted_when_that_is_switched_off(tmp_path):
    house = House(tmp_path, cleaner_enable=False)
    log = house.log()
    house.fill(log)
    house.pass_time()
    assert not is_compacted(log)


def test_a_log_with_more_keys_than_fit_the_memory_takes_several_rounds(tmp_path):
    house = House(tmp_path, cleaner_dedupe_buffer_size=1024 * 32 + 200)
    log = house.log(min_cleanable_dirty_ratio=0)
    house.fill(log, 200, keys=50)
    house.pass_time()
    end = log.segments[-1].base_offset
    assert log.cleaned_to == end
    before_the_end = [key for offset, (key, _) in contents(log).items() if offset < end]
    assert len(set(before_the_end)) == len(before_the_end)


def test_replaced_files_are_removed_after_their_delay(house):
    log = house.log()
    house.fill(log)
    house.pass_time()
    assert list((house.folder / "orders-0").glob("*.deleted"))
    house.pass_time(60_000)
    assert not list((house.folder / "orders-0").glob("*.deleted"))


def test_other_work_is_done_between_the_steps(house):
    log = house.log()
    house.fill(log, 100)
    house.clock.advance(BACKOFF_MS)
    steps = 0
    while house.manager.run_due() == 0:
        steps += 1
        assert house.manager.get("orders", 0) is log  # nobody waits for the whole of it
    assert steps > 10


def test_a_full_disk_stops_it_until_there_is_room(house, caplog, monkeypatch):
    log = house.log()
    house.fill(log)

    def refuse(*_arguments: object) -> int:
        raise OSError(28, "No space left on device")

    with monkeypatch.context() as patched:
        patched.setattr(os, "pwrite", refuse)
        house.pass_time()
    assert "No space left on device" in caplog.text
    assert not (house.folder / "cleaner-offset-checkpoint").exists()
    assert not list((house.folder / "orders-0").glob("*.cleaned"))
    assert table(log) == {b"k0": b"10", b"k1": b"11"}
    house.pass_time()
    assert list(contents(log)) == list(range(6, 12))
    assert table(log) == {b"k0": b"10", b"k1": b"11"}


def test_a_swap_that_fails_is_finished_by_the_next_start(house, caplog, monkeypatch):
    log = house.log()
    house.fill(log)
    expected = table(log)

    def refuse(*_arguments: object, **_options: object) -> list[str]:
        raise OSError(5, "Input/output error")

    with monkeypatch.context() as patched:
        patched.setattr(segment_swap, "rename_deleted", refuse)
        house.pass_time()
    assert "not be compacted until the broker is restarted" in caplog.text
    assert table(log) == expected
    house.fill(log, 12)
    house.pass_time()
    assert list((house.folder / "orders-0").glob("*.swap"))
    house.restart(clean=False)
    log = house.log()
    log.advance_high_watermark(log.log_end_offset)
    assert not list((house.folder / "orders-0").glob("*.swap"))
    assert table(log) == expected
    house.pass_time()
    assert table(log) == expected


def test_a_damaged_log_is_not_tried_again(house, caplog):
    log, other = house.log(), house.log("other")
    house.fill(log)
    house.fill(other)
    path = log.segments[0].log_path
    with open(path, "r+b") as file:
        file.seek(80)
        file.write(b"\xff\xff")
    house.pass_time()
    house.pass_time()
    assert caplog.text.count("not be compacted until the broker is restarted") == 1
    assert is_compacted(other)


def test_a_deleted_log_is_forgotten_in_the_middle(house, caplog):
    log = house.log()
    house.fill(log, 60)
    house.clock.advance(BACKOFF_MS)
    for _ in range(6):
        assert house.manager.run_due() == 0
    house.manager.delete("orders", 0)
    while house.manager.run_due() == 0:
        pass
    assert "orders" not in caplog.text
    assert not (house.folder / "orders-0").exists()
