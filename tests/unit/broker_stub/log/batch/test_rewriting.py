"""Batches with fewer records: offsets, sequences and times stay what they were."""

import pytest
from hypothesis import given
from hypothesis import strategies as st

from broker_stub.log.batch.rewriting import bare_header, raw_records, rewrite
from pyclient.records.batch import RecordBatch
from pyclient.records.compression import Codec
from tests.support.batches import build_batch, facts, numbered_records


def batch_of(count: int = 9, **options) -> RecordBatch:
    producer = {"producer_id": 7, "producer_epoch": 3, "base_sequence": 100}
    return RecordBatch(
        build_batch(
            numbered_records(count), base_offset=50, leader_epoch=4, **{**producer, **options}
        )
    )


def what_stays(batch: RecordBatch) -> tuple[object, ...]:
    return (
        batch.base_offset,
        batch.last_offset,
        batch.leader_epoch,
        batch.producer_id,
        batch.producer_epoch,
        batch.base_sequence,
        batch.last_sequence,
        batch.timestamp_type,
        batch.is_transactional,
        batch.is_control,
    )


@pytest.mark.parametrize("codec", Codec)
@given(kept=st.sets(st.integers(0, 8), min_size=1), horizon_later=st.none() | st.integers(0, 10**9))
def test_records_that_stay_read_as_they_did(codec, kept, horizon_later):
    batch = batch_of(codec=codec)
    raw = [one for index, one in enumerate(raw_records(batch)) if index in kept]
    horizon_ms = None if horizon_later is None else batch.max_timestamp + horizon_later
    smaller = RecordBatch(rewrite(batch, raw, horizon_ms))
    smaller.check_crc()
    assert facts(smaller.decode()) == facts([one.record for one in raw])
    assert [one.offset for one in smaller.decode()] == [50 + index for index in sorted(kept)]
    assert what_stays(smaller) == what_stays(batch)
    assert smaller.codec == codec
    assert smaller.max_timestamp == max(one.record.timestamp for one in raw)
    assert smaller.has_delete_horizon == (horizon_ms is not None)
    if horizon_ms is not None:
        assert smaller.base_timestamp == horizon_ms


def test_a_horizon_stays_when_more_records_go():
    batch = batch_of()
    with_horizon = RecordBatch(rewrite(batch, raw_records(batch), batch.max_timestamp + 1000))
    smaller = RecordBatch(rewrite(with_horizon, raw_records(with_horizon)[3:5]))
    assert smaller.has_delete_horizon
    assert smaller.base_timestamp == batch.max_timestamp + 1000
    assert facts(smaller.decode()) == numbered_records(9)[3:5]


def test_the_time_of_the_append_stays_that_of_all_records():
    batch = batch_of(log_append_time_ms=1_800_000_000_000)
    smaller = RecordBatch(rewrite(batch, raw_records(batch)[:2], 1_900_000_000_000))
    assert {record.timestamp for record in smaller.decode()} == {1_800_000_000_000}
    assert smaller.max_timestamp == 1_800_000_000_000


@pytest.mark.parametrize("codec", [Codec.NONE, Codec.ZSTD])
def test_a_bare_header_has_offsets_and_sequences_and_no_record(codec):
    batch = batch_of(codec=codec, transactional=True)
    bare = RecordBatch(bare_header(batch))
    bare.check_crc()
    assert what_stays(bare) == what_stays(batch)
    assert (bare.record_count, bare.decode(), bare.size_in_bytes, bare.codec) == (0, [], 61, 0)
    assert (bare.base_timestamp, bare.max_timestamp) == (-1, batch.max_timestamp)
