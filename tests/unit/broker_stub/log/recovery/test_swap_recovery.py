"""Compactions that a crash interrupted, by Kafka's rules for `.cleaned` and `.swap` files."""

from pathlib import Path

import pytest

from pyclient.errors import KafkaStorageError
from tests.support.logs import NOW_MS, append, batch, open_log, read_values

SMALL = {"segment_bytes": 200, "index_interval_bytes": 0}


@pytest.fixture
def folder(tmp_path: Path) -> Path:
    """Offsets 0 to 7, two to a segment."""
    folder = tmp_path / "orders-0"
    log = open_log(folder, **SMALL)
    for number in range(8):
        append(log, batch(b"old %d" % number, timestamps=[NOW_MS + number]))
    assert [segment.base_offset for segment in log.segments] == [0, 2, 4, 6]
    log.close()
    return folder


def write(folder: Path, base: int, ending: str, *offsets: int, suffix: str = "log") -> Path:
    path = folder / f"{base:020d}.{suffix}{ending}"
    path.write_bytes(b"".join(batch(b"new %d" % one, base_offset=one) for one in offsets))
    return path


def values(folder: Path) -> list[bytes]:
    log = open_log(folder, clean=True, **SMALL)
    found = list(read_values(log).values())
    log.abandon()
    leftovers = [path.name for path in folder.iterdir() if path.suffix in (".swap", ".cleaned")]
    assert leftovers == []
    return found


def test_cleaned_files_are_incomplete_and_go(folder):
    write(folder, 0, ".cleaned", 1)
    assert values(folder) == [b"old %d" % number for number in range(8)]


def test_a_swap_file_takes_the_place_of_the_segments_it_was_made_of(folder, caplog):
    write(folder, 0, ".swap", 1, 3)
    assert values(folder) == [b"new 1", b"new 3", *(b"old %d" % number for number in range(4, 8))]
    assert "finishing an interrupted compaction" in caplog.text


def test_so_it_does_when_some_of_those_are_gone_already(folder):
    write(folder, 2, ".swap", 3, 5)
    for name in ("00000000000000000002.log", "00000000000000000004.index"):
        (folder / name).rename(folder / f"{name}.deleted")
    assert values(folder) == [b"old 0", b"old 1", b"new 3", b"new 5", b"old 6", b"old 7"]


def test_a_swap_file_without_records_takes_the_place_of_its_own_segment(folder):
    write(folder, 2, ".swap")
    assert values(folder) == [b"old %d" % number for number in (0, 1, 4, 5, 6, 7)]


def test_an_index_that_was_still_to_be_renamed_gets_its_name(folder):
    (folder / "00000000000000000002.index").rename(folder / "00000000000000000002.index.swap")
    assert values(folder) == [b"old %d" % number for number in range(8)]
    assert (folder / "00000000000000000002.index").exists()


def test_a_swap_file_beside_cleaned_files_of_its_segment_is_incomplete(folder):
    write(folder, 2, ".swap", 3)
    write(folder, 2, ".cleaned", suffix="timeindex")
    assert values(folder) == [b"old %d" % number for number in range(8)]


def test_so_is_that_of_a_later_segment_but_not_that_of_an_earlier_one(folder):
    write(folder, 0, ".swap", 1)
    write(folder, 2, ".cleaned", 3)
    write(folder, 4, ".swap", 5)
    assert values(folder) == [b"new 1", *(b"old %d" % number for number in range(2, 8))]


def test_a_damaged_swap_file_is_refused_by_name_and_the_old_segments_stay(folder):
    write(folder, 0, ".swap", 1).write_bytes(b"x" * 100)
    with pytest.raises(KafkaStorageError, match=r"00000000000000000000\.log\.swap is damaged"):
        open_log(folder)
    assert (folder / "00000000000000000000.log").exists()
