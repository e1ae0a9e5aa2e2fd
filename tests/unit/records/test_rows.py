"""Lists and Arrow arrays as rows: what they append, and how they are spread over partitions."""

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
HEADER = pa.struct([("key", pa.string()), ("value", pa.binary())])


def one_by_one(values: list[Any], keys: list[Any] | None, size: int = 10_000) -> bytes:
    builder = _twin.BatchBuilder(bytearray(size))
    for index, value in enumerate(values):
        if builder.try_append(TIMESTAMP, keys[index] if keys else None, value) < 0:
            break
    return b"".join(builder.close())


def appended(twin: ModuleType, rows: Any, order: Any = None, size: int = 10_000) -> bytes:
    builder = twin.BatchBuilder(bytearray(size))
    stop = len(rows) if order is None else len(order) // 4
    indexes = rows.append_to(builder, order, 0, stop)
    assert indexes == range(builder.record_count)
    return b"".join(builder.close())


def arrow_headers(headers: Any) -> tuple[Any, Any, Any]:
    array = headers if isinstance(headers, pa.Array) else pa.array(headers, pa.list_(HEADER))
    return (array, *array.values.flatten())


@pytest.mark.parametrize("keys", [None, KEYS])
@pytest.mark.parametrize("size", [10_000, 400])
def test_lists_make_the_batch_that_single_appends_make(
    keys: list[Any] | None, size: int, twin: ModuleType
) -> None:
    rows = twin.ListRows(TIMESTAMP, VALUES, keys)
    assert appended(twin, rows, size=size) == one_by_one(VALUES, keys, size)


@pytest.mark.parametrize("kind", [pa.binary(), pa.string(), pa.large_binary(), pa.large_string()])
@pytest.mark.parametrize("keys", [None, KEYS])
def test_arrow_arrays_of_every_kind_make_the_same_batch(
    kind: pa.DataType, keys: list[Any] | None, twin: ModuleType
) -> None:
    key_array = None if keys is None else pa.array(keys, pa.binary()).cast(kind)
    rows = twin.ArrowRows(TIMESTAMP, pa.array(VALUES, pa.binary()).cast(kind), key_array)
    assert appended(twin, rows) == one_by_one(VALUES, keys)


def test_slices_start_where_they_do(twin: ModuleType) -> None:
    values = pa.array([b"before", b"first", None, b"after"])[1:3]
    headers = pa.array(
        [[("x", b"before")], [("a", b"1"), ("b", None)], None, [("x", b"after")]], pa.list_(HEADER)
    )[1:3]
    timestamps = pa.array([1, 2, None, 4])[1:3]
    partitions = pa.array([0, None, 3, 0], pa.int32())[1:3]
    rows = twin.ArrowRows(9, values, values, arrow_headers(headers), timestamps, partitions)
    assert [rows.record(row) for row in range(2)] == [
        (2, b"first", b"first", (("a", b"1"), ("b", None))),
        (9, None, None, ()),
    ]
    assert [rows.sizes(row) for row in range(2)] == [(2, 5, 5, 3), (9, -1, -1, -1)]
    assert rows.largest_partition() == 3
    assert rows.first_empty() == 1
    records = list(RecordBatch(appended(twin, rows)).decode())
    assert [(one.timestamp, one.value, one.headers) for one in records] == [
        (2, b"first", [("a", b"1"), ("b", None)]),
        (9, None, []),
    ]


def test_text_that_is_not_utf8_is_appended_as_its_bytes(twin: ModuleType) -> None:
    raw = pa.array([b"\xff\xfe", b"ok"])
    text = pa.Array.from_buffers(pa.string(), 2, raw.buffers())
    assert appended(twin, twin.ArrowRows(TIMESTAMP, text)) == one_by_one([b"\xff\xfe", b"ok"], None)


def test_rows_are_appended_in_any_order_and_go_on_where_they_did_not_fit(twin: ModuleType) -> None:
    order = struct.pack("42i", *reversed(range(42)))
    for rows in (
        twin.ListRows(TIMESTAMP, VALUES),
        twin.ArrowRows(TIMESTAMP, pa.array(VALUES)),
    ):
        batches = []
        start = 0
        while start < len(VALUES):
            builder = twin.BatchBuilder(bytearray(200))
            start += len(rows.append_to(builder, order, start, len(VALUES)))
            batches.append(RecordBatch(b"".join(builder.close())))
        assert len(batches) > 3
        assert [one.value for batch in batches for one in batch.decode()] == VALUES[::-1]


@pytest.mark.parametrize("kind", ["list", "arrow"])
def test_rows_are_sorted_by_partition_and_keep_their_order_within_one(
    kind: str, twin: ModuleType
) -> None:
    keys = [None if row % 5 == 0 else b"key-%d" % row for row in range(60)]
    values = [b"%d" % row for row in range(60)]
    rows = (
        twin.ListRows(TIMESTAMP, values, keys)
        if kind == "list"
        else twin.ArrowRows(TIMESTAMP, pa.array(values), pa.array(keys))
    )
    some = struct.pack("50i", *range(10, 60))
    order, slices = rows.by_partition(3, 1, some)
    numbers = struct.unpack("50i", order)
    assert [number for number, _, _ in slices] == [0, 1, 2]
    assert [start for _, start, _ in slices] + [50] == [0] + [stop for _, _, stop in slices]
    for number, start, stop in slices:
        assert list(numbers[start:stop]) == [
            row
            for row in range(10, 60)
            if number == (1 if keys[row] is None else _twin.partition_for_key(keys[row], 3))
        ]


def test_a_partition_of_its_own_beats_the_key(twin: ModuleType) -> None:
    rows = twin.ArrowRows(
        TIMESTAMP,
        pa.array([b"a", b"b", b"c"]),
        pa.array([b"k", b"k", b"k"]),
        partitions=pa.array([2, None, 0], pa.int32()),
    )
    order, slices = rows.by_partition(3, 0)
    chosen = [2, _twin.partition_for_key(b"k", 3), 0]
    assert struct.unpack("3i", order) == tuple(sorted(range(3), key=chosen.__getitem__))
    assert [number for number, _, _ in slices] == sorted(set(chosen))
    with pytest.raises(ValueError, match="record 0 names partition 2 of 2"):
        rows.by_partition(2, 0)


def test_without_any_key_the_caller_chooses_and_one_partition_needs_no_order(
    twin: ModuleType,
) -> None:
    assert twin.ListRows(TIMESTAMP, VALUES).by_partition(4, 1) == (None, [(-1, 0, 42)])
    assert twin.ListRows(TIMESTAMP, []).by_partition(4, 1) == (None, [])
    assert twin.ListRows(TIMESTAMP, VALUES, KEYS).by_partition(1, 0) == (None, [(0, 0, 42)])


def test_nothing_is_appended_from_beyond_the_end(twin: ModuleType) -> None:
    builder = twin.BatchBuilder(bytearray(200))
    for rows in (twin.ListRows(TIMESTAMP, [b"a"]), twin.ArrowRows(TIMESTAMP, pa.array([b"a"]))):
        for start, stop in ((0, 2), (2, 2), (-1, 1)):
            with pytest.raises(ValueError, match="there are 1 rows"):
                rows.append_to(builder, None, start, stop)
        for order in (struct.pack("i", 1), struct.pack("i", -1)):
            with pytest.raises(IndexError):
                rows.append_to(builder, order, 0, 1)
        with pytest.raises(IndexError):
            rows.record(1)
    assert builder.record_count == 0


def test_any_sequence_of_bytes_like_values_will_do(twin: ModuleType) -> None:
    values = (bytearray(b"a"), memoryview(b"b"), None)
    rows = twin.ListRows(TIMESTAMP, values, (None, bytearray(b"k"), memoryview(b"l")))
    assert [rows.record(row)[1:3] for row in range(3)] == [(None, b"a"), (b"k", b"b"), (b"l", None)]


def test_wrong_lists_are_refused(twin: ModuleType) -> None:
    with pytest.raises(TypeError, match="a value is a str, not bytes"):
        twin.ListRows(TIMESTAMP, [b"good", "text", b"good"])
    with pytest.raises(TypeError, match="a key is a int, not bytes"):
        twin.ListRows(TIMESTAMP, [b"good"], [1])
    with pytest.raises(ValueError, match="1 values, but 2 keys"):
        twin.ListRows(TIMESTAMP, [b"one"], [b"k", b"l"])
    with pytest.raises(ValueError, match="not negative"):
        twin.ListRows(-7, [b"one"])


@pytest.mark.parametrize(
    ("columns", "error", "words"),
    [
        ({"values": pa.array([1, 2])}, TypeError, "int64"),
        ({"keys": pa.array([b"k"])}, ValueError, "2 values, but 1 keys"),
        ({"timestamps": pa.array([1, -1])}, ValueError, "record 1: a timestamp is not negative"),
        ({"timestamps": pa.array([1, 2], pa.int32())}, TypeError, "int64 is needed, not of int32"),
        ({"partitions": pa.array([1], pa.int32())}, ValueError, "but 1 partitions"),
        (
            {"partitions": pa.array([-3, 1], pa.int32())},
            ValueError,
            "record 0: a partition is not negative: -3",
        ),
        (
            {"headers": arrow_headers([None, [(None, b"v")]])},
            ValueError,
            "record 1 has a header without a name",
        ),
        (
            {"headers": arrow_headers([None, [None]])},
            ValueError,
            "record 1 has a header without a name",
        ),
        ({"headers": arrow_headers([None])}, ValueError, "2 values, but 1 headers"),
        (
            {"headers": (pa.array([[1], [1]]), pa.array(["a"]), pa.array([b"v"]))},
            ValueError,
            "item 1 lies outside",
        ),
    ],
)
def test_wrong_arrays_are_refused(
    columns: dict[str, Any], error: type[Exception], words: str, twin: ModuleType
) -> None:
    with pytest.raises(error, match=words):
        twin.ArrowRows(TIMESTAMP, **{"values": pa.array([b"one", b"two"]), **columns})


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
    with pytest.raises(ValueError, match="item 1 lies outside"):
        twin.ArrowRows(TIMESTAMP, LyingArray(offsets, 2))


def test_an_array_longer_than_its_buffers_is_refused(twin: ModuleType) -> None:
    with pytest.raises(ValueError, match="longer than its buffers"):
        twin.ArrowRows(TIMESTAMP, LyingArray([0, 1], 50))
