"""Arrow columns against the records they were made of."""

from functools import partial
from types import ModuleType
from typing import Any

import pyarrow as pa
import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from pyclient import _twin
from pyclient.errors import CorruptRecordError
from pyclient.records.batch import RecordBatch, iter_batches
from pyclient.records.columns import ColumnsBuilder, decode_columns
from pyclient.records.compression import Codec
from pyclient.records.control import EndTransactionMarker, build_end_transaction_marker
from tests.support.batches import CODECS, build_batch, numbered_records
from tests.unit.records.test_batch import BROKEN_RECORDS, RECORD, with_records
from tests.unit.records.test_legacy import message, wrapper

COLUMNS = ("key", "value", "topic", "partition", "offset", "timestamp", "timestamp_type")

payloads = st.none() | st.binary(max_size=30)
record_strategy = st.tuples(
    st.integers(0, 1 << 41),
    payloads,
    payloads,
    st.lists(st.tuples(st.text(max_size=5), payloads), max_size=3),
)


def rows(table: pa.Table) -> list[tuple[Any, ...]]:
    """The table's rows as records have them."""
    table.validate(full=True)
    timestamps = table.column("timestamp").cast(pa.int64())
    plain = table.set_column(table.column_names.index("timestamp"), "timestamp", timestamps)
    result = []
    for row in plain.to_pylist():
        headers = row.pop("headers", None)
        pairs = [] if headers is None else [(pair["key"], pair["value"]) for pair in headers]
        result.append((*row.values(), pairs))
    return result


def expected(buffer: bytes, topic: str, partition: int) -> list[tuple[Any, ...]]:
    return [
        (*(getattr(record, name) for name in COLUMNS), record.headers)
        for batch in iter_batches(buffer)
        for record in batch.decode(topic, partition)
    ]


@given(
    batches=st.lists(st.lists(record_strategy, min_size=1, max_size=20), max_size=4),
    codec=st.sampled_from(CODECS),
)
@settings(suppress_health_check=[HealthCheck.function_scoped_fixture], deadline=None)
def test_columns_hold_what_the_records_hold(
    batches: list[list[Any]], codec: Codec, twin: ModuleType
) -> None:
    buffer = b"".join(build_batch(records, codec=codec) for records in batches)
    table = decode_columns(buffer, "orders", 4, headers=True)
    assert rows(table) == expected(buffer, "orders", 4)


def test_memory_is_used_again_but_never_that_of_a_living_table(twin: ModuleType) -> None:
    # Sizes around those of the blocks that are kept: a table is built while another one lives,
    # and in the memory of one that was dropped.
    def build(fill: bytes, count: int) -> tuple[pa.Table, list[bytes]]:
        values = [fill * 1_000] * count
        return decode_columns(build_batch([(0, None, value, []) for value in values])), values

    kept = [build(bytes([65 + index]), count) for index, count in enumerate((1, 64, 70, 400))]
    for count in (1, 65, 66, 131, 400, 70):
        build(b"x", count)
    for table, values in kept:
        table.validate(full=True)
        assert table.column("value").to_pylist() == values


@pytest.mark.skipif(not _twin.NATIVE, reason="the pure twin leaves memory to Python")
def test_a_large_column_gets_the_memory_of_a_dropped_one() -> None:
    def address() -> int:
        buffers = _twin.ColumnBuffers()
        batch = next(iter(iter_batches(build_batch([(0, None, b"x" * 300_000, [])]))))
        buffers.add(batch.records(), 1, 0, 0)
        address: int = pa.py_buffer(buffers.finish()["value.data"]).address
        return address

    # Two blocks of one size go round: keys might have taken as much as values.
    assert len({address() for _ in range(20)}) <= 2


def test_the_types_are_those_that_are_documented(twin: ModuleType) -> None:
    assert decode_columns(build_batch(), headers=True).schema == pa.schema(
        {
            "key": pa.binary(),
            "value": pa.binary(),
            "topic": pa.dictionary(pa.int32(), pa.string()),
            "partition": pa.int32(),
            "offset": pa.int64(),
            "timestamp": pa.timestamp("ms", "UTC"),
            "timestamp_type": pa.int32(),
            "headers": pa.list_(pa.struct({"key": pa.string(), "value": pa.binary()})),
        }
    )
    assert "headers" not in decode_columns(build_batch()).column_names


def test_a_fetch_without_records_is_an_empty_table(twin: ModuleType) -> None:
    assert (
        decode_columns(b"", headers=True).schema
        == decode_columns(build_batch(), headers=True).schema
    )
    assert decode_columns(b"").num_rows == 0


def test_partitions_and_topics_share_one_table(twin: ModuleType) -> None:
    builder = ColumnsBuilder()
    for topic, partition in (("a", 0), ("b", 1), ("a", 2)):
        assert builder.add(RecordBatch(build_batch()), topic, partition) == 3
    assert builder.rows == 9
    table = builder.finish()
    assert table.column("topic").to_pylist() == ["a"] * 3 + ["b"] * 3 + ["a"] * 3
    assert table.column("partition").to_pylist() == [0] * 3 + [1] * 3 + [2] * 3
    assert table.column("topic").num_chunks == 1


def test_a_builder_is_empty_after_finishing(twin: ModuleType) -> None:
    builder = ColumnsBuilder()
    builder.add(RecordBatch(build_batch()), "a")
    first = builder.finish()
    builder.add(RecordBatch(build_batch()), "b")
    second = builder.finish()
    assert (first.num_rows, second.num_rows) == (3, 3)
    assert set(second.column("topic").to_pylist()) == {"b"}


def test_a_range_of_offsets_is_cut_to_the_record(twin: ModuleType) -> None:
    buffer = b"".join(
        build_batch(numbered_records(10), base_offset=base, codec=base % 5) for base in (0, 10, 20)
    )
    table = decode_columns(buffer, from_offset=7, until_offset=22)
    assert table.column("offset").to_pylist() == list(range(7, 22))


def test_append_time_is_every_rows_time(twin: ModuleType) -> None:
    table = decode_columns(build_batch(log_append_time_ms=123))
    assert table.column("timestamp").cast(pa.int64()).to_pylist() == [123] * 3
    assert table.column("timestamp_type").to_pylist() == [1] * 3


def test_control_batches_are_left_out(twin: ModuleType) -> None:
    marker = build_end_transaction_marker(
        EndTransactionMarker(True, 1), producer_id=1, producer_epoch=1, timestamp_ms=1
    )
    assert decode_columns(build_batch() + marker).num_rows == 3


@pytest.mark.parametrize("magic", [0, 1])
def test_legacy_messages_become_rows_too(magic: int, twin: ModuleType) -> None:
    inner = b"".join(message(index, b"%d" % index, key=b"k", magic=magic) for index in range(3))
    buffer = message(0, None, magic=magic) + wrapper(2, inner, magic=magic)
    table = decode_columns(buffer, "old", 1, headers=True)
    assert rows(table) == expected(buffer, "old", 1)
    assert table.num_rows == 4


def test_a_damaged_checksum_is_noticed(twin: ModuleType) -> None:
    data = bytearray(build_batch())
    data[-1] ^= 1
    with pytest.raises(CorruptRecordError, match="checksum"):
        decode_columns(data)


@pytest.mark.parametrize("name", BROKEN_RECORDS)
def test_a_broken_batch_adds_no_row(name: str, twin: ModuleType) -> None:
    builder = ColumnsBuilder(headers=True)
    good = RecordBatch(build_batch(numbered_records(5)))
    builder.add(good)
    broken = RecordBatch(b"pad" + with_records(RECORD + BROKEN_RECORDS[name], 2), 3)
    with pytest.raises(CorruptRecordError) as caught:
        builder.add(broken)
    assert caught.value.base_offset == 100
    assert builder.rows == 5
    builder.add(good)
    assert rows(builder.finish()) == 2 * expected(bytes(good.data), "", -1)


def test_header_names_that_are_not_utf8_become_valid_strings(twin: ModuleType) -> None:
    record = b"\x18\x00\x00\x00\x02k\x02v\x02\x04\xffa\x01"
    table = decode_columns(with_records(record), headers=True)
    assert rows(table)[0][-1] == [("\ufffda", None)]


def test_columns_beyond_arrows_offsets_go_on_in_another_chunk(
    twin: ModuleType, monkeypatch: pytest.MonkeyPatch
) -> None:
    # As if two GiB had been reached with the first batch.
    limit = 3 * len(RecordBatch(build_batch()).records())
    monkeypatch.setattr(_twin, "ColumnBuffers", partial(_twin.ColumnBuffers, limit=limit))
    builder = ColumnsBuilder(headers=True)
    buffer = b""
    for topic in ("a", "b", "a"):
        batch = build_batch(base_offset=len(buffer))
        builder.add(RecordBatch(batch), topic)
        buffer += batch
    table = builder.finish()
    assert table.column("value").num_chunks == 3
    assert table.column("topic").to_pylist() == ["a"] * 3 + ["b"] * 3 + ["a"] * 3
    assert [row[4] for row in rows(table)] == [row[4] for row in expected(buffer, "", -1)]
