# Many records in one call, without a Python object for each.
#
# Every column is checked once, when the rows are made. Reading a row cannot fail after that, and
# no Python code runs between two appends of a run.

from cpython.list cimport PyList_GET_ITEM
from cpython.object cimport PyObject

cdef struct RowItem:
    int64_t timestamp_ms
    const uint8_t *key
    Py_ssize_t key_size  # -1 for null, as the value's
    const uint8_t *value
    Py_ssize_t value_size
    const uint8_t *headers  # encoded
    Py_ssize_t headers_size


cdef class RecordRows:
    """The rows of a bulk send, in any order of appending."""

    cdef readonly Py_ssize_t length
    cdef int64_t timestamp_ms  # of rows without one of their own

    # All but the headers.
    cdef void read(self, Py_ssize_t row, RowItem *item) noexcept:
        pass

    cdef void read_headers(self, Py_ssize_t row, RowItem *item) noexcept:
        item.headers = NO_HEADERS
        item.headers_size = 1

    cdef int32_t explicit_partition(self, Py_ssize_t row) noexcept:
        return -1

    cdef tuple headers_of(self, Py_ssize_t row):
        return EMPTY

    def __len__(self):
        return self.length

    def first_empty(self) -> int:
        """The first row with neither a key nor a value; -1 if there is none."""
        cdef RowItem item
        cdef Py_ssize_t row
        for row in range(self.length):
            self.read(row, &item)
            if item.key_size < 0 and item.value_size < 0:
                return row
        return -1

    def largest_partition(self, order=None) -> int:
        """The largest partition that a row names; -1 if none does."""
        cdef RowOrder rows = RowOrder.__new__(RowOrder, order, self.length)
        cdef int32_t largest = -1
        cdef Py_ssize_t place
        for place in range(rows.length):
            largest = max(largest, self.explicit_partition(rows.row_at(place)))
        return largest

    def by_partition(self, int32_t partition_count, int32_t keyless, order=None):
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
        cdef RowOrder rows = RowOrder.__new__(RowOrder, order, self.length)
        cdef RowItem item
        cdef Py_ssize_t place, row
        cdef int32_t number
        cdef bint some_keyless = False, some_chosen = False
        if not 0 <= keyless < partition_count:
            raise ValueError(f"partition {keyless} is not one of {partition_count}")
        chosen = PyBytes_FromStringAndSize(NULL, 4 * rows.length)
        cdef int32_t *partitions = <int32_t *>PyBytes_AS_STRING(chosen)
        for place in range(rows.length):
            row = rows.row_at(place)
            number = self.explicit_partition(row)
            if number < 0:
                self.read(row, &item)
                if item.key_size >= 0:
                    number = <int32_t>partition_of(item.key, item.key_size, partition_count)
            elif number >= partition_count:
                raise ValueError(f"record {row} names partition {number} of {partition_count}")
            partitions[place] = number
            if number < 0:
                some_keyless = True
            else:
                some_chosen = True
        if not some_chosen:
            return order, [(-1, 0, rows.length)] if rows.length else []
        if some_keyless:
            for place in range(rows.length):
                if partitions[place] < 0:
                    partitions[place] = keyless
        return rows.sorted_by(partitions, partition_count, order)

    def append_to(self, BatchBuilder builder not None, order, Py_ssize_t start, Py_ssize_t stop):
        """Append the rows of `order[start:stop]` until one does not fit.

        Returns the records' indexes in the batch: as many as were appended.
        """
        cdef RowOrder rows = RowOrder.__new__(RowOrder, order, self.length)
        cdef RowItem item
        cdef Py_ssize_t place = start, row, first = builder.count
        if not 0 <= start <= stop <= rows.length:
            raise ValueError(f"there are {rows.length} rows, not {start} to {stop}")
        while place < stop:
            row = rows.row_at(place)
            self.read(row, &item)
            self.read_headers(row, &item)
            if builder.try_append_c(
                item.timestamp_ms, item.key, item.key_size, item.value, item.value_size,
                item.headers, item.headers_size,
            ) < 0:
                break
            place += 1
        return range(first, first + place - start)

    def record(self, Py_ssize_t row):
        """A row as the arguments of `try_append`."""
        cdef RowItem item
        self.check_row(row)
        self.read(row, &item)
        key = None if item.key_size < 0 else (<char *>item.key)[:item.key_size]
        value = None if item.value_size < 0 else (<char *>item.value)[:item.value_size]
        return item.timestamp_ms, key, value, self.headers_of(row)

    def sizes(self, Py_ssize_t row):
        """A row's timestamp, and the bytes of its key, value and headers: -1 without them."""
        cdef RowItem item
        self.check_row(row)
        self.read(row, &item)
        headers = self.headers_of(row)
        size = sum([len(name.encode()) + len(data or b"") for name, data in headers])
        return item.timestamp_ms, item.key_size, item.value_size, size if headers else -1

    cdef int check_row(self, Py_ssize_t row) except -1:
        if not 0 <= row < self.length:
            raise IndexError(f"row {row} of {self.length}")
        return 0


@cython.final
cdef class RowOrder:
    # Numbers of rows, as native 32-bit integers; None for all rows as they are.
    cdef Payload numbers
    cdef const int32_t *data
    cdef Py_ssize_t length
    cdef Py_ssize_t row_count

    def __cinit__(self, order, Py_ssize_t row_count):
        self.length = self.row_count = row_count
        if order is not None:
            self.numbers = Payload.__new__(Payload, order)
            self.data = <const int32_t *>self.numbers.data
            self.length = self.numbers.size // 4

    cdef inline Py_ssize_t row_at(self, Py_ssize_t place) except -1:
        cdef Py_ssize_t row
        if self.data is NULL:
            return place
        row = self.data[place]
        if not 0 <= row < self.row_count:
            raise IndexError(f"row {row} of {self.row_count}")
        return row

    cdef object sorted_by(self, const int32_t *partitions, Py_ssize_t partition_count, order):
        """Sort stably by counting; `order` is what this was made of."""
        cdef Py_ssize_t place, number, start = 0, size
        cdef Py_ssize_t *starts = <Py_ssize_t *>PyMem_Realloc(
            NULL, partition_count * sizeof(Py_ssize_t))
        cdef int32_t *at
        if starts is NULL:
            raise MemoryError
        try:
            for number in range(partition_count):
                starts[number] = 0
            for place in range(self.length):
                starts[partitions[place]] += 1
            slices = []
            for number in range(partition_count):
                size = starts[number]
                starts[number] = start
                if size:
                    slices.append((number, start, start + size))
                start += size
            if len(slices) == 1:
                return order, slices
            result = PyBytes_FromStringAndSize(NULL, 4 * self.length)
            at = <int32_t *>PyBytes_AS_STRING(result)
            for place in range(self.length):
                number = partitions[place]
                at[starts[number]] = <int32_t>self.row_at(place)
                starts[number] += 1
            return result, slices
        finally:
            PyMem_Free(starts)


@cython.final
cdef class ListRows(RecordRows):
    """Rows of a list of values and, if there are any, a list of as many keys."""

    cdef list values
    cdef list keys

    def __cinit__(self, timestamp_ms, values, keys=None):
        self.timestamp_ms = check_timestamp(timestamp_ms)
        self.values = payloads(values, "value")
        self.keys = None if keys is None else payloads(keys, "key")
        self.length = len(self.values)
        if self.keys is not None and len(self.keys) != self.length:
            raise ValueError(f"{self.length} values, but {len(self.keys)} keys")

    cdef void read(self, Py_ssize_t row, RowItem *item) noexcept:
        item.timestamp_ms = self.timestamp_ms
        point_at(<PyObject *>PyList_GET_ITEM(self.values, row), &item.value, &item.value_size)
        item.key_size = -1
        if self.keys is not None:
            point_at(<PyObject *>PyList_GET_ITEM(self.keys, row), &item.key, &item.key_size)


cdef inline void point_at(PyObject *content, const uint8_t **data, Py_ssize_t *size) noexcept:
    if content is <PyObject *>None:
        size[0] = -1
    else:
        data[0] = <const uint8_t *>PyBytes_AS_STRING(<object>content)
        size[0] = PyBytes_GET_SIZE(<object>content)


cdef list payloads(contents, str name):
    """A list of one's own, of bytes and None: nothing else may change it."""
    cdef Py_ssize_t row
    cdef list own = list(contents)
    for row in range(len(own)):
        content = own[row]
        if content is None or type(content) is bytes:
            continue
        if not isinstance(content, (bytes, bytearray, memoryview)):
            raise TypeError(
                f"a {name} is a {type(content).__name__}, not bytes: encode it, or set"
                f" {name}_serializer")
        own[row] = bytes(content)
    return own


@cython.final
cdef class ArrowRows(RecordRows):
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

    cdef ArrowBytes values
    cdef ArrowBytes keys
    cdef ArrowNumbers header_lists
    cdef ArrowBytes header_names
    cdef ArrowBytes header_values
    cdef ArrowNumbers timestamps
    cdef ArrowNumbers partitions
    cdef uint8_t *scratch  # the encoded headers of one row

    def __cinit__(
        self, timestamp_ms, values, keys=None, headers=None, timestamps=None, partitions=None
    ):
        self.timestamp_ms = check_timestamp(timestamp_ms)
        self.values = ArrowBytes.__new__(ArrowBytes, values)
        self.length = self.values.length
        self.check_bytes(self.values, "values")
        if keys is not None:
            self.keys = ArrowBytes.__new__(ArrowBytes, keys)
            self.check_bytes(self.keys, "keys")
        if timestamps is not None:
            self.timestamps = self.numbers(timestamps, "int64", "timestamp")
        if partitions is not None:
            self.partitions = self.numbers(partitions, "int32", "partition")
        if headers is not None:
            lists, names, contents = headers
            self.set_headers(lists, names, contents)

    def __dealloc__(self):
        PyMem_Free(self.scratch)

    cdef int check_bytes(self, ArrowBytes array, str name) except -1:
        if array.length != self.length:
            raise ValueError(f"{self.length} values, but {array.length} {name}")
        array.check()
        return 0

    cdef ArrowNumbers numbers(self, array, str kind, str name):
        cdef ArrowNumbers column = ArrowNumbers.__new__(ArrowNumbers, array, kind, 0)
        cdef Py_ssize_t row
        if column.length != self.length:
            raise ValueError(f"{self.length} values, but {column.length} {name}s")
        for row in range(self.length):
            if column.is_set(row) and column.at(row) < 0:
                raise ValueError(f"record {row}: a {name} is not negative: {column.at(row)}")
        return column

    cdef int set_headers(self, lists, names, values) except -1:
        cdef ArrowNumbers bounds = ArrowNumbers.__new__(ArrowNumbers, lists, "list", 1)
        cdef const uint8_t *data = NULL
        cdef Py_ssize_t row, start, stop, item, size = 0, largest = 1, name_size = 0
        cdef Py_ssize_t value_size = 0
        self.header_names = ArrowBytes.__new__(ArrowBytes, names)
        self.header_values = ArrowBytes.__new__(ArrowBytes, values)
        self.header_names.check()
        self.header_values.check()
        if bounds.length != self.length:
            raise ValueError(f"{self.length} values, but {bounds.length} headers")
        for row in range(self.length):
            if not bounds.is_set(row):
                continue
            start, stop = bounds.at(row), bounds.at(row + 1)
            if not 0 <= start <= stop <= min(
                self.header_names.length, self.header_values.length
            ):
                raise ValueError(f"item {row} lies outside of the array's data")
            size = wire_varint_size(stop - start)
            for item in range(start, stop):
                self.header_names.get(item, &data, &name_size)
                self.header_values.get(item, &data, &value_size)
                if name_size < 0:
                    raise ValueError(f"record {row} has a header without a name")
                size += size_of_bytes(name_size) + size_of_bytes(value_size)
            largest = max(largest, size)
        self.scratch = <uint8_t *>PyMem_Realloc(NULL, largest)
        if self.scratch is NULL:
            raise MemoryError
        self.header_lists = bounds
        return 0

    cdef void read(self, Py_ssize_t row, RowItem *item) noexcept:
        item.timestamp_ms = self.timestamp_ms
        if self.timestamps is not None and self.timestamps.is_set(row):
            item.timestamp_ms = self.timestamps.at(row)
        self.values.get(row, &item.value, &item.value_size)
        item.key_size = -1
        if self.keys is not None:
            self.keys.get(row, &item.key, &item.key_size)

    cdef void read_headers(self, Py_ssize_t row, RowItem *item) noexcept:
        cdef const uint8_t *data = NULL
        cdef uint8_t *at = self.scratch
        cdef Py_ssize_t number, start, stop, size = 0
        item.headers = NO_HEADERS
        item.headers_size = 1
        if self.header_lists is None or not self.header_lists.is_set(row):
            return
        start, stop = self.header_lists.at(row), self.header_lists.at(row + 1)
        at = wire_put_varint(at, stop - start)
        for number in range(start, stop):
            self.header_names.get(number, &data, &size)
            at = put_bytes(at, data, size)
            self.header_values.get(number, &data, &size)
            at = put_bytes(at, data, size)
        item.headers = self.scratch
        item.headers_size = at - self.scratch

    cdef int32_t explicit_partition(self, Py_ssize_t row) noexcept:
        if self.partitions is None or not self.partitions.is_set(row):
            return -1
        return <int32_t>self.partitions.at(row)

    cdef tuple headers_of(self, Py_ssize_t row):
        if self.header_lists is None or not self.header_lists.is_set(row):
            return EMPTY
        return tuple([
            (self.header_names.item(number).decode(), self.header_values.item(number))
            for number in range(self.header_lists.at(row), self.header_lists.at(row + 1))
        ])
