"""Appending lists and Arrow arrays at once."""

import struct
from types import ModuleType
from typing import Any

import pyarrow as pa
import pytest

from pyclient import _twin
from pyclient.records.batch import RecordBatch

TIMESTAMP = 1_700_000_000_000
VALUES = [b"value-%d" % index for index in range(40)] + [None, b""]
KEYS = [None, b"", *[b"key-%d" % index for index in range(40)]]


def one_by_one(values: list[Any], keys: list[Any] | None, size: int = 10_000) -> bytes:
    builder = _twin.BatchBuilder(bytearray(size))
    for index, value in enumerate(values):
        if builder.try_append(TIMESTAMP, keys[index] if keys else None, value) < 0:
            break
    return b"".join(builder.close())


@pytest.mark.parametrize("keys", [None, KEYS])
@pytest.mark.parametrize("size", [10_000, 400])
def test_many_values_make_the_batch_that_single_appends_make(
    keys: list[Any] | None, size: int, twin: ModuleType
) -> None:
    builder = twin.BatchBuilder(bytearray(size))
    indexes = builder.append_many(TIMESTAMP, VALUES, keys)
    count = len(indexes)
    assert indexes == range(builder.record_count)
    assert (count == len(VALUES)) == (size == 10_000)
    assert b"".join(builder.close()) == one_by_one(VALUES, keys, size)


@pytest.mark.parametrize("kind", [pa.binary(), pa.string(), pa.large_binary(), pa.large_string()])
@pytest.mark.parametrize("keys", [None, KEYS])
def test_arrow_arrays_of_every_kind_make_the_same_batch(
    kind: pa.DataType, keys: list[Any] | None, twin: ModuleType
) -> None:
    builder = twin.BatchBuilder(bytearray(10_000))
    key_array = None if keys is None else pa.array(keys, pa.binary()).cast(kind)
    value_array = pa.array(VALUES, pa.binary()).cast(kind)
    assert len(builder.append_arrow(TIMESTAMP, value_array, key_array)) == len(VALUES)
    assert b"".join(builder.close()) == one_by_one(VALUES, keys)


def test_a_sliced_array_without_nulls_starts_where_its_slice_does(twin: ModuleType) -> None:
    array = pa.array([b"before", b"first", b"second", b"after"])[1:3]
    builder = twin.BatchBuilder(bytearray(1000))
    assert len(builder.append_arrow(TIMESTAMP, array, array)) == 2
    records = RecordBatch(b"".join(builder.close())).decode()
    assert [(record.key, record.value) for record in records] == [
        (b"first", b"first"),
        (b"second", b"second"),
    ]


def test_what_did_not_fit_goes_on_at_its_index(twin: ModuleType) -> None:
    array = pa.array(VALUES)
    batches = []
    start = 0
    while start < len(VALUES):
        builder = twin.BatchBuilder(bytearray(200))
        append = builder.append_many if len(batches) % 2 else builder.append_arrow
        start += len(append(TIMESTAMP, VALUES if len(batches) % 2 else array, start=start))
        batches.append(RecordBatch(b"".join(builder.close())))
    assert len(batches) > 3
    assert [record.value for batch in batches for record in batch.decode()] == VALUES


def test_nothing_is_appended_from_beyond_the_end(twin: ModuleType) -> None:
    builder = twin.BatchBuilder(bytearray(200))
    assert not builder.append_many(TIMESTAMP, [b"a"], start=5)
    assert not builder.append_arrow(TIMESTAMP, pa.array([b"a"]), start=5)
    assert not builder.append_many(TIMESTAMP, [])
    assert not builder.append_arrow(TIMESTAMP, pa.array([], pa.binary()))


def test_any_sequence_of_bytes_like_values_will_do(twin: ModuleType) -> None:
    builder = twin.BatchBuilder(bytearray(200))
    values = (bytearray(b"a"), memoryview(b"b"), None)
    assert (
        len(builder.append_many(TIMESTAMP, values, (None, bytearray(b"k"), memoryview(b"l")))) == 3
    )
    records = RecordBatch(b"".join(builder.close())).decode()
    assert [(record.key, record.value) for record in records] == [
        (None, b"a"),
        (b"k", b"b"),
        (b"l", None),
    ]


def test_a_value_of_a_wrong_type_ends_the_append_where_it_is(twin: ModuleType) -> None:
    builder = twin.BatchBuilder(bytearray(200))
    with pytest.raises(TypeError):
        builder.append_many(TIMESTAMP, [b"good", "text", b"good"])
    assert builder.record_count == 1


@pytest.mark.parametrize("keys", [[b"one"], [b"one"] * 3])
def test_as_many_keys_as_values_are_needed(keys: list[bytes], twin: ModuleType) -> None:
    builder = twin.BatchBuilder(bytearray(200))
    with pytest.raises(ValueError, match="keys"):
        builder.append_many(TIMESTAMP, [b"one", b"two"], keys)
    with pytest.raises(ValueError, match="keys"):
        builder.append_arrow(TIMESTAMP, pa.array([b"one", b"two"]), pa.array(keys))
    assert builder.record_count == 0


def test_an_array_of_numbers_is_refused(twin: ModuleType) -> None:
    builder = twin.BatchBuilder(bytearray(200))
    with pytest.raises(TypeError, match="int64"):
        builder.append_arrow(TIMESTAMP, pa.array([1, 2]))


class LyingArray:
    """An array as pyarrow would hand it out, but with offsets that it would not accept."""

    type = pa.binary()
    offset = 0

    def __init__(self, offsets: list[int], length: int) -> None:
        self.offsets = struct.pack(f"{len(offsets)}i", *offsets)
        self.length = length

    def __len__(self) -> int:
        return self.length

    def buffers(self) -> list[bytes | None]:
        return [None, self.offsets, b"ab"]


@pytest.mark.parametrize("offsets", [[0, 1, 3], [0, 1, -1], [0, 1, 0], [0, 1, 1 << 30]])
def test_an_item_outside_of_its_array_is_refused(offsets: list[int], twin: ModuleType) -> None:
    builder = twin.BatchBuilder(bytearray(200))
    with pytest.raises(ValueError, match="item 1 lies outside"):
        builder.append_arrow(TIMESTAMP, LyingArray(offsets, 2))
    assert builder.record_count == 1


def test_an_array_longer_than_its_buffers_is_refused(twin: ModuleType) -> None:
    builder = twin.BatchBuilder(bytearray(200))
    with pytest.raises(ValueError, match="longer than its buffers"):
        builder.append_arrow(TIMESTAMP, LyingArray([0, 1], 50))
    assert builder.record_count == 0
