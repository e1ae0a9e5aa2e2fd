"""Many records in one call: lists or Arrow arrays, appended row by row in any order.

Every column is checked once, when the rows are made; reading a row cannot fail after that.
"""

from abc import ABC, abstractmethod
from array import array
from collections.abc import Sequence
from itertools import groupby
from typing import Any, TypeAlias

from pyclient._pure.arrow import ArrowBytes, ArrowNumbers
from pyclient._pure.builder import BatchBuilder, check_timestamp
from pyclient._pure.checksums import partition_for_key

Order: TypeAlias = Any
"""A buffer of row numbers, as native 32-bit integers; None for all rows as they are."""
Header: TypeAlias = tuple[str, bytes | None]
Row: TypeAlias = tuple[int, bytes | None, bytes | None, tuple[Header, ...]]


class RecordRows(ABC):
    """The rows of a bulk send, in any order of appending."""

    __slots__ = ("length",)

    length: int

    @abstractmethod
    def record(self, row: int) -> Row:
        """A row as the arguments of `try_append`."""

    def _explicit_partition(self, row: int) -> int:  # noqa: ARG002
        return -1

    def __len__(self) -> int:
        return self.length

    def first_empty(self) -> int:
        """The first row with neither a key nor a value; -1 if there is none."""
        for row in range(self.length):
            _, key, value, _ = self.record(row)
            if key is None and value is None:
                return row
        return -1

    def largest_partition(self, order: Order = None) -> int:
        """The largest partition that a row names; -1 if none does."""
        return max(map(self._explicit_partition, self._numbers(order)), default=-1)

    def by_partition(
        self, partition_count: int, keyless: int, order: Order = None
    ) -> tuple[Order, list[tuple[int, int, int]]]:
        """Bring rows into the order of their partitions; within one they keep their own.

        Rows without a key go to the partition `keyless` if other rows have one; else all go to
        partition -1, and the caller chooses.

        Args:
            partition_count: keys are spread over this many.
            keyless: one of these.
            order: numbers of rows, as native 32-bit integers; None for all of them.

        Returns:
            The new order, or the given one where it will do; and (partition, start, stop) in it.

        Raises:
            ValueError: a row names a partition that does not exist.
        """
        if not 0 <= keyless < partition_count:
            raise ValueError(f"partition {keyless} is not one of {partition_count}")
        rows = self._numbers(order)
        chosen = {row: self._partition(row, partition_count) for row in rows}
        if all(number < 0 for number in chosen.values()):
            return order, [(-1, 0, len(rows))] if rows else []
        chosen = {row: keyless if number < 0 else number for row, number in chosen.items()}
        in_order = sorted(rows, key=chosen.__getitem__)  # which is stable
        slices = []
        start = 0
        for number, group in groupby(in_order, key=chosen.__getitem__):
            stop = start + len(list(group))
            slices.append((number, start, stop))
            start = stop
        if len(slices) == 1:
            return order, slices
        return array("i", in_order).tobytes(), slices

    def _partition(self, row: int, partition_count: int) -> int:
        number = self._explicit_partition(row)
        if number >= partition_count:
            raise ValueError(f"record {row} names partition {number} of {partition_count}")
        if number >= 0:
            return number
        key = self.record(row)[1]
        return -1 if key is None else partition_for_key(key, partition_count)

    def append_to(self, builder: BatchBuilder, order: Order, start: int, stop: int) -> range:
        """Append the rows of `order[start:stop]` until one does not fit.

        Returns the records' indexes in the batch: as many as were appended.
        """
        rows = self._numbers(order)
        if not 0 <= start <= stop <= len(rows):
            raise ValueError(f"there are {len(rows)} rows, not {start} to {stop}")
        first = builder.record_count
        for row in rows[start:stop]:
            if builder.try_append(*self.record(row)) < 0:
                break
        return range(first, builder.record_count)

    def sizes(self, row: int) -> tuple[int, int, int, int]:
        """A row's timestamp, and the bytes of its key, value and headers: -1 without them."""
        timestamp_ms, key, value, headers = self.record(row)
        size = sum(len(name.encode()) + len(data or b"") for name, data in headers)
        return (
            timestamp_ms,
            -1 if key is None else len(key),
            -1 if value is None else len(value),
            size if headers else -1,
        )

    def _numbers(self, order: Order) -> Sequence[int]:
        if order is None:
            return range(self.length)
        raw = memoryview(order).cast("B")
        numbers = raw[: len(raw) // 4 * 4].cast("i")
        for row in numbers:
            self._check_row(row)
        return numbers

    def _check_row(self, row: int) -> None:
        if not 0 <= row < self.length:
            raise IndexError(f"row {row} of {self.length}")


class ListRows(RecordRows):
    """Rows of a list of values and, if there are any, a list of as many keys."""

    __slots__ = ("_keys", "_timestamp_ms", "_values")

    def __init__(
        self, timestamp_ms: int, values: Sequence[Any], keys: Sequence[Any] | None = None
    ) -> None:
        self._timestamp_ms = check_timestamp(timestamp_ms)
        self._values = [_payload(value, "value") for value in values]
        self._keys = None if keys is None else [_payload(key, "key") for key in keys]
        self.length = len(self._values)
        if self._keys is not None and len(self._keys) != self.length:
            raise ValueError(f"{self.length} values, but {len(self._keys)} keys")

    def record(self, row: int) -> Row:
        """A row as the arguments of `try_append`."""
        self._check_row(row)
        key = None if self._keys is None else self._keys[row]
        return self._timestamp_ms, key, self._values[row], ()


def _payload(content: Any, name: str) -> bytes | None:
    if content is None or type(content) is bytes:
        return content
    if isinstance(content, bytes | bytearray | memoryview):
        return bytes(content)
    raise TypeError(
        f"a {name} is a {type(content).__name__}, not bytes: encode it, or set {name}_serializer"
    )


class ArrowRows(RecordRows):
    """Rows of Arrow arrays of one length, read in place.

    Args:
        timestamp_ms: of rows without one of their own.
        values: an array of bytes or text.
        keys: likewise.
        headers: a list array, and the arrays of the names and values that it refers to.
        timestamps: an int64 array of milliseconds.
        partitions: an int32 array; null where the key decides.

    Raises:
        TypeError: an array of another type.
        ValueError: an array whose buffers contradict it, a header without a name, or a negative
            timestamp or partition; names the row.
    """

    __slots__ = (
        "_header_lists",
        "_header_names",
        "_header_values",
        "_keys",
        "_partitions",
        "_timestamp_ms",
        "_timestamps",
        "_values",
    )

    def __init__(
        self,
        timestamp_ms: int,
        values: Any,
        keys: Any = None,
        headers: tuple[Any, Any, Any] | None = None,
        timestamps: Any = None,
        partitions: Any = None,
    ) -> None:
        self._timestamp_ms = check_timestamp(timestamp_ms)
        self._values = ArrowBytes(values)
        self.length = self._values.length
        self._check_bytes(self._values, "values")
        self._keys: ArrowBytes | None = None
        self._timestamps: ArrowNumbers | None = None
        self._partitions: ArrowNumbers | None = None
        self._header_lists: ArrowNumbers | None = None
        if keys is not None:
            self._keys = ArrowBytes(keys)
            self._check_bytes(self._keys, "keys")
        if timestamps is not None:
            self._timestamps = self._numbered(timestamps, "int64", "timestamp")
        if partitions is not None:
            self._partitions = self._numbered(partitions, "int32", "partition")
        if headers is not None:
            self._set_headers(*headers)

    def _check_bytes(self, column: ArrowBytes, name: str) -> None:
        if column.length != self.length:
            raise ValueError(f"{self.length} values, but {column.length} {name}")
        column.check()

    def _numbered(self, given: Any, kind: str, name: str) -> ArrowNumbers:
        column = ArrowNumbers(given, kind, 0)
        if column.length != self.length:
            raise ValueError(f"{self.length} values, but {column.length} {name}s")
        for row in range(self.length):
            if column.is_set(row) and column[row] < 0:
                raise ValueError(f"record {row}: a {name} is not negative: {column[row]}")
        return column

    def _set_headers(self, lists: Any, names: Any, values: Any) -> None:
        bounds = ArrowNumbers(lists, "list", 1)
        self._header_names = ArrowBytes(names)
        self._header_values = ArrowBytes(values)
        self._header_names.check()
        self._header_values.check()
        if bounds.length != self.length:
            raise ValueError(f"{self.length} values, but {bounds.length} headers")
        end = min(self._header_names.length, self._header_values.length)
        for row in range(self.length):
            if not bounds.is_set(row):
                continue
            if not 0 <= bounds[row] <= bounds[row + 1] <= end:
                raise ValueError(f"item {row} lies outside of the array's data")
            if not all(map(self._header_names.is_set, range(bounds[row], bounds[row + 1]))):
                raise ValueError(f"record {row} has a header without a name")
        self._header_lists = bounds

    def record(self, row: int) -> Row:
        """A row as the arguments of `try_append`."""
        self._check_row(row)
        timestamp_ms = self._timestamp_ms
        if self._timestamps is not None and self._timestamps.is_set(row):
            timestamp_ms = self._timestamps[row]
        key = None if self._keys is None else self._keys[row]
        return timestamp_ms, key, self._values[row], self._headers_of(row)

    def _headers_of(self, row: int) -> tuple[Header, ...]:
        bounds = self._header_lists
        if bounds is None or not bounds.is_set(row):
            return ()
        names, values = self._header_names, self._header_values
        return tuple(
            ((names[number] or b"").decode(), values[number])
            for number in range(bounds[row], bounds[row + 1])
        )

    def _explicit_partition(self, row: int) -> int:
        partitions = self._partitions
        return partitions[row] if partitions is not None and partitions.is_set(row) else -1
