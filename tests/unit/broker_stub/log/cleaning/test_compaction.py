"""Compaction of a log: which records stay, and that nobody is disturbed."""

import os
from pathlib import Path

import pytest

from broker_stub.log.files.open_files import OpenFiles
from broker_stub.log.partition_log import PartitionLog
from broker_stub.log.segment import Segment
from pyclient.errors import CorruptRecordError, OutOfOrderSequenceError
from pyclient.records.batch import iter_batches
from pyclient.records.compression import Codec
from tests.support.compaction import DAY_MS, compact, compaction, contents, table, write
from tests.support.logs import (
    NOW_MS,
    append,
    batch,
    config,
    marker,
    open_log,
    read_batches,
    transactional_batch,
)

SMALL = {"segment_bytes": 300, "cleanup_policy": ["compact"]}


class Shelf:
    """A log with small segments, and the files it has open."""

    def __init__(self, folder: Path, **values: object) -> None:
        self.folder = folder
        self.values = {**SMALL, **values}
        self.files = OpenFiles()
        self.log = self._open(clean=False)

    def _open(self, clean: bool) -> PartitionLog:
        log = open_log(self.folder, clean=clean, files=self.files, **self.values)
        log.advance_high_watermark(log.log_end_offset)
        return log

    def put(self, key: bytes, value: bytes | None, **header: object) -> int:
        return write(self.log, keyed(key, value, **header))

    def fill(self, *pairs: tuple[bytes, bytes | None]) -> None:
        for key, value in pairs:
            self.put(key, value)

    def roll(self) -> None:
        """Have all that is there sealed."""
        self.log.update_config(config(**{**self.values, "segment_bytes": 100}))
        self.put(b"the active segment's", b"." * 10)
        self.log.update_config(config(**self.values))

    def compact(self, **options: object) -> int:
        return compact(self.log, self.files, **options)

    def reopen(self, *, clean: bool = False) -> None:
        self.log.close() if clean else self.log.abandon()
        self.files = OpenFiles()
        self.log = self._open(clean)


def keyed(key: bytes | None, value: bytes | None, **header: object) -> bytearray:
    from pyclient.records.builder import BatchBuilder

    builder = BatchBuilder(bytearray(300), **header)
    assert builder.try_append(NOW_MS, key, value) == 0
    return bytearray(b"".join(builder.close()))


@pytest.fixture
def shelf(tmp_path: Path) -> Shelf:
    return Shelf(tmp_path / "orders-0")


def test_the_last_value_of_each_key_stays_at_its_offset(shelf):
    shelf.fill(*((b"k%d" % (n % 3), b"v%d" % n) for n in range(12)))
    shelf.roll()
    assert shelf.compact() == 12
    assert contents(shelf.log) == {
        9: (b"k0", b"v9"),
        10: (b"k1", b"v10"),
        11: (b"k2", b"v11"),
        12: (b"the active segment's", b"." * 10),
    }
    assert (shelf.log.log_start_offset, shelf.log.log_end_offset) == (0, 13)


def test_segments_that_have_become_small_are_put_together(shelf):
    shelf.fill(*((b"k%d" % (n % 3), b"v%d" % n) for n in range(30)))
    shelf.roll()
    before = [segment.base_offset for segment in shelf.log.segments]
    shelf.compact()
    assert [segment.base_offset for segment in shelf.log.segments] == before
    shelf.compact()
    assert [segment.base_offset for segment in shelf.log.segments] == [0, before[-1]]
    names = os.listdir(shelf.folder)
    assert not [name for name in names if name.endswith((".cleaned", ".swap"))]
    deleted = {name for name in names if name.endswith(".log.deleted")}
    assert deleted == {f"{base:020d}.log.deleted" for base in before[:-1]}


def test_a_second_round_looks_at_what_is_new_and_changes_what_is_old(shelf):
    shelf.fill((b"a", b"1"), (b"b", b"1"))
    shelf.roll()
    first = shelf.compact()
    shelf.fill((b"a", b"2"))
    shelf.roll()
    assert shelf.compact(first_dirty=first) == shelf.log.segments[-1].base_offset
    assert table(shelf.log) == {b"a": b"2", b"b": b"1", b"the active segment's": b"." * 10}
    assert 0 not in contents(shelf.log)


def test_what_is_not_in_the_map_yet_stays(shelf):
    shelf.fill(*((b"%d" % (n % 400), b"v%d" % n) for n in range(1200)))
    shelf.roll()
    end, rounds = 0, 0
    while end < shelf.log.segments[-1].base_offset:
        before = table(shelf.log)
        more = shelf.compact(first_dirty=end, map_bytes=1024 * 32 + 1000)
        assert end < more
        assert table(shelf.log) == before
        end, rounds = more, rounds + 1
    assert rounds > 2
    assert len(contents(shelf.log)) == 401


def test_keys_of_equal_digests_are_told_apart(shelf):
    shelf.fill(*((b"k%d" % (n % 3), b"v%d" % n) for n in range(12)))
    shelf.roll()
    shelf.compact(digest=lambda _key: b"\7" * 16)
    assert table(shelf.log).keys() >= {b"k0", b"k1", b"k2"}
    assert len(contents(shelf.log)) == 4


@pytest.mark.parametrize("codec", Codec)
def test_batches_of_every_codec_lose_records_and_stay_readable(shelf, codec):
    for number in range(6):
        write(shelf.log, batch(*[b"x" * 60] * 3, key=b"k%d" % (number % 2), codec=codec))
    shelf.roll()
    shelf.compact()
    assert list(contents(shelf.log)) == [14, 17, 18]
    assert [one.codec for one in read_batches(shelf.log)] == [codec, codec, 0]


def test_records_without_a_key_go(shelf):
    shelf.fill((b"a", b"1"))
    write(shelf.log, keyed(None, b"no key"))
    shelf.fill((b"b", b"1"))
    shelf.roll()
    shelf.compact()
    assert [key for key, _ in contents(shelf.log).values()][:2] == [b"a", b"b"]


# --- tombstones ----------------------------------------------------------------------------------


def test_a_tombstone_removes_the_value_at_once_and_itself_after_its_time(shelf):
    shelf.fill((b"a", b"1"), (b"b", b"1"), (b"a", None))
    shelf.roll()
    shelf.compact(now_ms=NOW_MS)
    assert (b"a", b"1") not in contents(shelf.log).values()
    assert contents(shelf.log)[2] == (b"a", None)
    shelf.compact(now_ms=NOW_MS + DAY_MS - 1)
    assert contents(shelf.log)[2] == (b"a", None)
    shelf.compact(now_ms=NOW_MS + DAY_MS)
    assert list(table(shelf.log)) == [b"b", b"the active segment's"]
    assert 2 not in contents(shelf.log)


def test_the_time_runs_from_the_first_compaction_and_is_kept_in_the_batch(shelf):
    shelf.fill((b"a", b"1"), (b"a", None))
    shelf.roll()
    shelf.compact(now_ms=NOW_MS + 5)
    (horizon,) = [one for one in read_batches(shelf.log) if one.has_delete_horizon]
    assert horizon.base_timestamp == NOW_MS + 5 + DAY_MS
    assert [record.timestamp for record in horizon.decode()] == [NOW_MS]


def test_a_value_after_the_tombstone_stays(shelf):
    shelf.fill((b"a", b"1"), (b"a", None), (b"a", b"2"))
    shelf.roll()
    shelf.compact(now_ms=NOW_MS + 10 * DAY_MS)
    assert contents(shelf.log)[2] == (b"a", b"2")
    assert len(contents(shelf.log)) == 2


# --- readers -------------------------------------------------------------------------------------


def test_a_slice_that_was_read_before_stays_valid(shelf):
    shelf.fill(*((b"k", b"v%d" % n) for n in range(12)))
    shelf.roll()
    read = shelf.log.read(0, 1 << 20)
    before = read.records.read()
    shelf.compact()
    for path in shelf.folder.glob("*.deleted"):
        path.unlink()
    assert read.records.read() == before


@pytest.mark.parametrize("step", range(0, 40, 3))
def test_a_reader_gets_from_any_offset_to_the_end(shelf, step):
    shelf.fill(*((b"k%d" % (n % 4), b"v%d" % n) for n in range(40)))
    shelf.roll()
    shelf.compact()
    offset = step
    while offset < shelf.log.log_end_offset:
        read = shelf.log.read(offset, 100)
        assert read.records is not None
        last = [one.last_offset for one in iter_batches(read.records.read())][-1]
        assert last + 1 > offset
        offset = last + 1


def test_the_last_batch_stays_as_a_header_so_that_readers_come_to_the_end(shelf):
    shelf.fill((b"a", b"1"))
    write(shelf.log, keyed(None, b"dropped"))
    shelf.roll()
    shelf.compact()
    assert [(one.base_offset, one.record_count) for one in read_batches(shelf.log)] == [
        (0, 1),
        (1, 0),
        (2, 1),
    ]


def test_records_are_found_by_time_after_a_compaction(shelf):
    for number in range(9):
        write(shelf.log, batch(b"v", key=b"k%d" % (number % 3), timestamps=[NOW_MS + number]))
    shelf.roll()
    shelf.compact()
    found = shelf.log.lookup_timestamp(NOW_MS + 3)
    assert found is not None
    assert (found.offset, found.timestamp_ms) == (6, NOW_MS + 6)


# --- producers and transactions ------------------------------------------------------------------


def test_the_last_batch_of_a_producer_stays_for_its_sequences(shelf):
    producer = {"producer_id": 7, "producer_epoch": 0}
    for sequence in range(3):
        shelf.put(b"k", b"%d" % sequence, base_sequence=sequence, **producer)
    shelf.fill((b"k", b"newer"), (b"other", b"x"))
    shelf.roll()
    shelf.compact()
    (bare,) = [one for one in read_batches(shelf.log) if one.producer_id == 7]
    assert (bare.base_offset, bare.base_sequence, bare.record_count) == (2, 2, 0)
    shelf.reopen()
    again = append(shelf.log, keyed(b"k", b"2", base_sequence=2, **producer))
    assert (again.first_offset, again.duplicate) == (2, True)
    with pytest.raises(OutOfOrderSequenceError):
        append(shelf.log, keyed(b"k", b"4", base_sequence=4, **producer))


def test_records_of_aborted_transactions_go_and_hide_nothing(shelf):
    shelf.fill((b"transactions'", b"before"))
    write(shelf.log, transactional_batch(b"aborted", producer_id=1))
    write(shelf.log, marker(committed=False, producer_id=1))
    write(shelf.log, transactional_batch(b"committed", producer_id=2))
    write(shelf.log, marker(committed=True, producer_id=2))
    shelf.roll()
    shelf.compact()
    values = [value for _, value in contents(shelf.log).values()]
    assert values == [b"before", b"committed", b"." * 10]
    assert b"aborted" not in b"".join(bytes(one.data) for one in read_batches(shelf.log))


def test_a_marker_stays_while_a_batch_of_its_transaction_does(shelf):
    write(shelf.log, transactional_batch(b"x", producer_id=1))
    write(shelf.log, marker(committed=False, producer_id=1))
    shelf.roll()
    for days in (0, 1, 2):
        shelf.compact(now_ms=NOW_MS + days * DAY_MS)
        # The batch is the producer's last one: its header stays, and so it must be known.
        assert [(one.base_offset, one.record_count) for one in read_batches(shelf.log)][:2] == [
            (0, 0),
            (1, 1),
        ]
        assert len(shelf.log.aborted_transactions(0, 2)) == 1


def test_a_marker_of_nothing_goes_after_its_time(shelf):
    write(shelf.log, transactional_batch(b"x", producer_id=1))
    write(shelf.log, marker(committed=False, producer_id=1))
    write(shelf.log, transactional_batch(b"y", producer_id=1, sequence=1))
    write(shelf.log, marker(committed=True, producer_id=1))
    shelf.fill((b"key", b"newer than all of these"))
    shelf.roll()
    shelf.compact(now_ms=NOW_MS)
    assert [one.base_offset for one in read_batches(shelf.log)][:4] == [1, 2, 3, 4]
    shelf.compact(now_ms=NOW_MS)  # now it finds the transaction gone
    shelf.compact(now_ms=NOW_MS + DAY_MS)
    assert [one.base_offset for one in read_batches(shelf.log)][:3] == [2, 3, 4]
    assert shelf.log.aborted_transactions(0, 9) == []


def test_nothing_of_an_open_transaction_decides_about_others(shelf):
    shelf.fill((b"key", b"before"))
    write(shelf.log, transactional_batch(b"open", producer_id=1))
    shelf.roll()
    assert shelf.compact() == 1
    assert contents(shelf.log)[0] == (b"key", b"before")
    assert shelf.log.last_stable_offset == 1


@pytest.mark.parametrize("clean", [True, False])
def test_aborted_transactions_are_known_after_a_compaction_and_a_restart(shelf, clean):
    write(shelf.log, transactional_batch(b"x", producer_id=1))
    shelf.fill(*((b"k%d" % n, b"v") for n in range(5)))
    write(shelf.log, marker(committed=False, producer_id=1))
    shelf.roll()
    shelf.compact()
    before = shelf.log.aborted_transactions(0, 9)
    assert len(before) == 1
    shelf.reopen(clean=clean)
    assert shelf.log.aborted_transactions(0, 9) == before


# --- what gets in the way ------------------------------------------------------------------------


def test_a_damaged_batch_stops_it_and_nothing_is_lost(shelf):
    shelf.fill(*((b"k", b"v%d" % n) for n in range(8)))
    shelf.roll()
    path = Path(shelf.log.segments[0].log_path)
    damaged = bytearray(path.read_bytes())
    damaged[-1] ^= 1
    path.write_bytes(damaged)
    before = sorted(os.listdir(shelf.folder))
    with pytest.raises(CorruptRecordError):
        shelf.compact()
    assert path.read_bytes() == damaged
    assert sorted(os.listdir(shelf.folder)) == before


def test_segments_that_retention_took_meanwhile_do_not_come_back(shelf):
    shelf.fill(*((b"k", b"v%d" % n) for n in range(8)))
    shelf.roll()
    work = compaction(shelf.log, shelf.files).run()
    next(work)
    shelf.log.detach_oldest(lambda _segments, _log: 1, NOW_MS)
    start = shelf.log.log_start_offset
    for _ in work:
        pass
    assert shelf.log.segments[0].base_offset == start
    assert not [name for name in os.listdir(shelf.folder) if name.endswith((".cleaned", ".swap"))]


@pytest.mark.parametrize(("taken", "end_offset"), [(1, 0), (4, 6)])
def test_what_stays_of_segments_that_retention_took_is_compacted_the_next_time(
    shelf, taken, end_offset
):
    shelf.log.update_config(config(**{**SMALL, "segment_bytes": 100}))
    shelf.fill(*((b"k", b"v%d" % n) for n in range(6)), (b"active", b""))
    shelf.log.update_config(config(**SMALL))  # four segments fit one
    work = compaction(shelf.log, shelf.files)
    steps = work.run()
    next(steps)
    shelf.log.detach_oldest(lambda _segments, _log: taken, NOW_MS)
    for _ in steps:
        pass
    assert work.end_offset == end_offset
    shelf.compact(first_dirty=max(end_offset, taken))
    assert contents(shelf.log) == {5: (b"k", b"v5"), 6: (b"active", b"")}


def test_a_log_that_is_deleted_meanwhile_is_left_alone(shelf):
    shelf.fill(*((b"k", b"v%d" % n) for n in range(8)))
    shelf.roll()
    work = compaction(shelf.log, shelf.files)
    steps = work.run()
    next(steps)
    shelf.log.abandon()
    for _ in steps:
        pass
    assert work.end_offset == 0
    assert not [name for name in os.listdir(shelf.folder) if name.endswith((".cleaned", ".swap"))]


def test_a_segment_of_which_all_stays_is_not_replaced(tmp_path):
    shelf = Shelf(tmp_path / "orders-0", segment_bytes=400)
    shelf.fill(*((b"k%d" % n, b"v") for n in range(5)))
    shelf.roll()
    (before, _) = shelf.log.segments
    shelf.compact()
    (after, _) = shelf.log.segments
    assert after is before
    assert isinstance(after, Segment)
