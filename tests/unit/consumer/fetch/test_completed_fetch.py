"""From raw bytes to records, piece by piece, on both twins."""

import pytest
from hypothesis import given
from hypothesis import strategies as st

from pyclient.consumer.fetch.aborted import AbortedTransactions
from pyclient.consumer.fetch.completed_fetch import CompletedFetch, next_fetch_offset
from pyclient.consumer.partition_state import PartitionEpoch
from pyclient.errors import CorruptRecordError
from pyclient.protocol.messages.fetch import AbortedTransaction
from pyclient.records.columns import ColumnsBuilder
from pyclient.records.compression import Codec
from pyclient.records.control import EndTransactionMarker, build_end_transaction_marker
from pyclient.types import TopicPartition
from tests.support.consumer_parts import batch_at

AT = PartitionEpoch(TopicPartition("orders", 3), 1)
MARKER = {"producer_epoch": 0, "timestamp_ms": 0}


def fetch(*batches, fetch_offset=0, **options):
    return CompletedFetch(AT, fetch_offset, memoryview(b"".join(batches)), **options)


def values(*numbers):
    return [b"%d" % number for number in numbers]


def read_all(completed, at_most=100):
    return [record.value for record in completed.read(at_most)]


def test_records_carry_where_they_come_from(twin):
    (record,) = fetch(batch_at(7, values(1), leader_epoch=4)).read(10)
    assert record[:4] == ("orders", 3, 4, 7)


def test_records_come_in_pieces_across_batches(twin):
    completed = fetch(batch_at(0, values(0, 1, 2)), batch_at(3, values(3, 4)))
    assert [read_all(completed, 2) for _ in range(3)] == [values(0, 1), values(2, 3), values(4)]
    assert completed.next_offset == 5
    assert not completed.is_drained or completed.read(1) == []
    assert completed.read(1) == []
    assert completed.is_drained


def test_what_lies_before_the_fetch_offset_is_left_out(twin):
    completed = fetch(batch_at(0, values(0, 1)), batch_at(2, values(2, 3, 4)), fetch_offset=3)
    assert read_all(completed) == values(3, 4)


def test_the_next_offset_is_that_of_what_was_read_and_behind_a_batch_its_end(twin):
    # Compaction has removed the records behind 1 and kept the batch's last offset.
    batch = bytearray(batch_at(0, values(0, 1)))
    batch[23:27] = (9).to_bytes(4, "big")
    completed = fetch(bytes(batch), check_crcs=False)
    completed.read(1)
    assert completed.next_offset == 1
    completed.read(1)
    assert completed.next_offset == 10


def test_a_damaged_batch_is_met_after_the_good_ones_and_again_each_time(twin):
    damaged = bytearray(batch_at(2, values(2, 3)))
    damaged[-1] ^= 1
    completed = fetch(batch_at(0, values(0, 1)), bytes(damaged))
    assert read_all(completed) == values(0, 1)
    for _ in range(2):
        with pytest.raises(CorruptRecordError, match="checksum"):
            completed.read(10)
    assert completed.next_offset == 2
    assert not completed.is_drained


def test_without_checks_a_wrong_checksum_does_not_matter(twin):
    batch = bytearray(batch_at(0, values(0)))
    batch[17] ^= 1
    assert read_all(fetch(bytes(batch), check_crcs=False)) == values(0)


def test_bytes_without_a_whole_batch_are_an_error(twin):
    completed = fetch(batch_at(0, values(0, 1))[:-1])
    with pytest.raises(CorruptRecordError, match="not one complete batch"):
        completed.read(1)


def test_a_cut_off_last_batch_is_left_for_the_next_fetch(twin):
    completed = fetch(batch_at(0, values(0)), batch_at(1, values(1))[:-1])
    assert read_all(completed) == values(0)
    assert completed.is_drained


def test_records_taken_back_are_given_again(twin):
    completed = fetch(batch_at(0, values(0, 1, 2, 3)))
    records = completed.read(3)
    completed.unread(records[1:])
    assert completed.next_offset == 1
    assert read_all(completed, 2) == values(1, 2)
    assert read_all(completed) == values(3)


def test_control_batches_are_passed_over_and_move_the_offset(twin):
    marker = build_end_transaction_marker(
        EndTransactionMarker(True, 0), producer_id=9, base_offset=1, **MARKER
    )
    completed = fetch(batch_at(0, values(0)), marker, batch_at(2, values(2)), marker_at(3))
    assert read_all(completed) == values(0, 2)
    assert completed.next_offset == 4


def marker_at(offset, *, committed=True, producer_id=9):
    return build_end_transaction_marker(
        EndTransactionMarker(committed, 0), producer_id=producer_id, base_offset=offset, **MARKER
    )


def test_only_aborted_transactions_are_left_out(twin):
    written = {"transactional": True, "producer_epoch": 0, "base_sequence": 0}
    batches = [
        batch_at(0, values(0), producer_id=1, **written),
        batch_at(1, values(1), producer_id=2, **written),
        batch_at(2, values(2)),
        marker_at(3, committed=False, producer_id=1),
        marker_at(4, producer_id=2),
        batch_at(5, values(5), producer_id=1, **written),  # its next transaction
        marker_at(6, producer_id=1),
    ]
    aborted = AbortedTransactions([AbortedTransaction(producer_id=1, first_offset=0)])
    assert read_all(fetch(*batches, aborted=aborted)) == values(1, 2, 5)
    assert read_all(fetch(*batches)) == values(0, 1, 2, 5)


def test_a_transaction_aborted_twice_is_left_out_twice(twin):
    written = {"transactional": True, "producer_epoch": 0, "base_sequence": 0, "producer_id": 1}
    batches = [
        batch_at(0, values(0), **written),
        marker_at(1, committed=False, producer_id=1),
        batch_at(2, values(2), **written),
        marker_at(3, committed=False, producer_id=1),
        batch_at(4, values(4), **written),
    ]
    aborted = AbortedTransactions(
        [
            AbortedTransaction(producer_id=1, first_offset=2),
            AbortedTransaction(producer_id=1, first_offset=0),
        ]
    )
    completed = fetch(*batches, aborted=aborted)
    assert read_all(completed) == values(4)


def test_columns_hold_what_was_not_read_yet(twin):
    completed = fetch(batch_at(0, values(0, 1, 2)), batch_at(3, values(3)))
    completed.read(2)
    builder = ColumnsBuilder()
    assert completed.read_columns(builder) == 2
    assert builder.finish()["value"].to_pylist() == values(2, 3)
    assert completed.is_drained
    assert completed.next_offset == 4


def test_columns_end_before_a_damaged_batch(twin):
    damaged = bytearray(batch_at(1, values(1)))
    damaged[-1] ^= 1
    completed = fetch(batch_at(0, values(0)), bytes(damaged))
    builder = ColumnsBuilder()
    assert completed.read_columns(builder) == 1
    assert completed.next_offset == 1
    with pytest.raises(CorruptRecordError):
        completed.read_columns(builder)


@given(
    sizes=st.lists(st.integers(1, 5), min_size=1, max_size=6),
    pieces=st.lists(st.integers(1, 7), min_size=1, max_size=40),
    skip=st.integers(0, 10),
    codec=st.sampled_from([Codec.NONE, Codec.GZIP]),
)
def test_any_pieces_of_any_batches_are_all_records_in_order(sizes, pieces, skip, codec):
    starts = [sum(sizes[:index]) for index in range(len(sizes))]
    batches = [
        batch_at(start, values(*range(start, start + size)), codec=codec)
        for start, size in zip(starts, sizes, strict=True)
    ]
    total = sum(sizes)
    skip = min(skip, total - 1)
    completed = fetch(*batches, fetch_offset=skip)
    offsets = []
    for piece in pieces:
        offsets += [record.offset for record in completed.read(piece)]
        assert completed.next_offset == skip + len(offsets)
    assert offsets == list(range(skip, min(total, skip + sum(pieces))))


def test_the_next_fetch_goes_on_behind_the_last_whole_batch(twin):
    whole = batch_at(5, values(5, 6)) + batch_at(7, values(7))
    assert next_fetch_offset(memoryview(whole), 5) == 8
    assert next_fetch_offset(memoryview(whole + batch_at(8, values(8))[:30]), 5) == 8
    assert next_fetch_offset(memoryview(b""), 5) == 5
    assert next_fetch_offset(memoryview(whole[:40]), 5) == 5


@given(st.binary(max_size=200))
def test_the_walk_over_headers_ends_on_any_bytes(data):
    assert next_fetch_offset(memoryview(data), 5) >= 5
