"""`.txnindex`: Apache Kafka's bytes, searches, and what can't be such a file."""

import struct
from pathlib import Path

import pytest

from broker_stub.log.files.open_files import OpenFiles
from broker_stub.log.index.transaction_index import AbortedTransaction, TransactionIndex

# Written by Apache Kafka 4.3.
APACHE = bytes.fromhex(
    "0000 0000000000000005 0000000000000000 0000000000000003 0000000000000004"
    "0000 0000000000000005 0000000000000008 000000000000000b 000000000000000c"
)


@pytest.fixture
def path(tmp_path: Path) -> Path:
    return tmp_path / "00000000000000000000.txnindex"


def open_index(path: Path) -> TransactionIndex:
    size = path.stat().st_size if path.exists() else 0
    return TransactionIndex(str(path), OpenFiles(), stored_bytes=size)


def test_a_file_of_apache_kafka_is_read_and_written_byte_for_byte(path):
    path.write_bytes(APACHE)
    transactions = list(open_index(path))
    assert transactions == [AbortedTransaction(5, 0, 3, 4), AbortedTransaction(5, 8, 11, 12)]
    path.unlink()
    written = open_index(path)
    for transaction in transactions:
        written.append(transaction)
    written.spill()
    assert path.read_bytes() == APACHE


def test_without_aborted_transactions_there_is_no_file(path):
    index = open_index(path)
    index.spill()
    index.clear()
    assert not path.exists()


def test_clearing_removes_the_file(path):
    path.write_bytes(APACHE)
    index = open_index(path)
    index.clear()
    assert list(index) == []
    assert not path.exists()


def test_a_search_finds_transactions_that_reach_into_the_range(path):
    index = open_index(path)
    early = AbortedTransaction(1, 0, 10, 5)
    overlapping = AbortedTransaction(2, 5, 20, 15)
    late = AbortedTransaction(3, 15, 30, 31)
    for transaction in (early, overlapping, late):
        index.append(transaction)
    assert index.search(0, 5) == ([early], True)
    assert index.search(0, 11) == ([early, overlapping], True)
    assert index.search(11, 12) == ([overlapping], True)
    assert index.search(11, 16) == ([overlapping, late], True)
    assert index.search(21, 31) == ([late], True)
    # All that is known here: a transaction that began before 40 may be aborted in a later segment.
    assert index.search(21, 40) == ([late], False)
    assert index.search(31, 40) == ([], False)


@pytest.mark.parametrize(
    "entry",
    [
        pytest.param((1, 5, 12, 13, 14), id="another version"),
        pytest.param((0, 5, 14, 13, 15), id="ends before it starts"),
        pytest.param((0, 5, 9, 11, 12), id="not after the one before"),
        pytest.param((0, 0, 0, 0, 0), id="zeros"),
    ],
)
def test_entries_that_cannot_be_are_noticed(path, entry):
    path.write_bytes(APACHE + struct.pack(">hqqqq", *entry))
    assert not open_index(path).is_sound(0)


def test_a_marker_before_the_segment_is_noticed(path):
    path.write_bytes(APACHE)
    index = open_index(path)
    assert index.is_sound(0)
    assert index.is_sound(3)
    assert not index.is_sound(4)
