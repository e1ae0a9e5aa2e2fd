# Records straight into Arrow's memory layout: one set of buffers for many batches, no object per
# record. What the buffers mean is in `pyclient.records.columns`, which wraps them.

cdef enum:
    SMALLEST_RECORD = 7  # seven one-byte fields
    MAX_COLUMN = 0x7FFFFFFF  # Arrow's 32-bit offsets
    FIRST_RESERVE = 64


@cython.final
cdef class GrowingBuffer:
    # Memory that doubles; `reserve` is the only call that can fail.
    cdef ColumnMemory memory
    cdef uint8_t *data
    cdef Py_ssize_t size

    def __cinit__(self):
        self.memory = ColumnMemory.__new__(ColumnMemory)

    cdef int reserve(self, Py_ssize_t more) except -1:
        if self.size + more > self.memory.capacity:
            self.memory.grow(
                max(self.size + more, 2 * self.memory.capacity, FIRST_RESERVE), self.size)
            self.data = self.memory.data
        return 0

    cdef void put_int32(self, int32_t value) noexcept nogil:
        memcpy(self.data + self.size, &value, 4)
        self.size += 4

    cdef void put_int64(self, int64_t value) noexcept nogil:
        memcpy(self.data + self.size, &value, 8)
        self.size += 8

    cdef void put(self, const uint8_t *data, Py_ssize_t size) noexcept nogil:
        wire_copy(self.data + self.size, data, size)
        self.size += size

    cdef void put_bit(self, Py_ssize_t index, bint bit) noexcept nogil:
        cdef uint8_t mask = 1 << (index & 7)
        if mask == 1:
            self.data[self.size] = 0
            self.size += 1
        if bit:
            self.data[self.size - 1] |= mask
        else:
            self.data[self.size - 1] &= ~mask

    cdef void cut(self, Py_ssize_t size) noexcept nogil:
        self.size = size

    cdef object finish(self):
        self.memory.size = self.size
        return self.memory


@cython.final
cdef class BinaryColumn:
    # A nullable column of byte strings: validity bits, offsets, data.
    cdef GrowingBuffer validity
    cdef GrowingBuffer offsets
    cdef GrowingBuffer data
    cdef Py_ssize_t rows
    cdef Py_ssize_t nulls

    def __cinit__(self):
        self.validity = GrowingBuffer()
        self.offsets = GrowingBuffer()
        self.data = GrowingBuffer()
        self.offsets.reserve(4)
        self.offsets.put_int32(0)

    cdef int reserve(self, Py_ssize_t rows, Py_ssize_t size) except -1:
        self.validity.reserve(rows // 8 + 1)
        self.offsets.reserve(4 * rows)
        self.data.reserve(size)
        return 0

    cdef void put(self, const uint8_t *data, Py_ssize_t size) noexcept nogil:
        self.validity.put_bit(self.rows, size >= 0)
        if size >= 0:
            self.data.put(data, size)
        else:
            self.nulls += 1
        self.offsets.put_int32(<int32_t>self.data.size)
        self.rows += 1

    cdef void cut(self, Py_ssize_t rows, Py_ssize_t nulls) noexcept nogil:
        cdef int32_t end
        self.rows = rows
        self.nulls = nulls
        self.validity.cut((rows + 7) // 8)  # the bits behind `rows` are written again
        self.offsets.cut(4 * (rows + 1))
        memcpy(&end, self.offsets.data + 4 * rows, 4)
        self.data.cut(end)

    cdef finish(self, str name, dict buffers):
        buffers[f"{name}.validity"] = self.validity.finish() if self.nulls else None
        buffers[f"{name}.offsets"] = self.offsets.finish()
        buffers[f"{name}.data"] = self.data.finish()


cdef class ColumnBuffers:
    """The buffers of Arrow columns, filled batch by batch; `finish` hands them out."""

    cdef bint with_headers
    cdef Py_ssize_t limit
    cdef Py_ssize_t rows_
    cdef BinaryColumn key
    cdef BinaryColumn value
    cdef GrowingBuffer topic
    cdef GrowingBuffer partition
    cdef GrowingBuffer offset
    cdef GrowingBuffer timestamp
    cdef GrowingBuffer timestamp_type
    cdef GrowingBuffer headers
    cdef BinaryColumn header_key
    cdef BinaryColumn header_value

    def __cinit__(self, *, bint headers=False, Py_ssize_t limit=MAX_COLUMN):
        self.with_headers = headers
        self.limit = limit
        self.key = BinaryColumn()
        self.value = BinaryColumn()
        self.topic = GrowingBuffer()
        self.partition = GrowingBuffer()
        self.offset = GrowingBuffer()
        self.timestamp = GrowingBuffer()
        self.timestamp_type = GrowingBuffer()
        self.headers = GrowingBuffer()
        self.header_key = BinaryColumn()
        self.header_value = BinaryColumn()
        self.headers.reserve(4)
        self.headers.put_int32(0)

    @property
    def rows(self):
        """Rows so far."""
        return self.rows_

    def has_room_for(self, Py_ssize_t size) -> bool:
        """Whether `size` more bytes of records surely stay within the limit of a column."""
        # A header name that is not UTF-8 triples at most: a byte becomes U+FFFD.
        return max(
            self.key.data.size, self.value.data.size, self.header_key.data.size,
            self.header_value.data.size,
        ) + 3 * size <= self.limit

    def add(
        self, records, int32_t record_count, int64_t base_offset, int64_t base_timestamp,
        log_append_time_ms=None, int32_t topic=0, int32_t partition=-1, int64_t from_offset=0,
        int64_t until_offset=0x7FFFFFFFFFFFFFFF, *, position=0, bint expanded=False,
    ) -> int:
        """Append the records of a batch with `from_offset <= offset < until_offset`.

        Returns the number of rows added. `topic` is an index into the caller's list of topics.

        Raises:
            CorruptRecordError: the bytes are not the records that the batch announced; no row of
                it was added.
        """
        cdef RecordReader reader = RecordReader.__new__(RecordReader)
        cdef Py_ssize_t before = self.rows_
        cdef Py_ssize_t key_nulls = self.key.nulls
        cdef Py_ssize_t value_nulls = self.value.nulls
        cdef Py_ssize_t headers_before = self.header_key.rows
        cdef Py_ssize_t header_nulls = self.header_value.nulls
        cdef bint stamped = log_append_time_ms is not None
        cdef int64_t append_time = log_append_time_ms if stamped else 0
        cdef const char *fault
        cdef Py_ssize_t row
        reader.start(records, record_count, base_offset, position, expanded)
        if not self.has_room_for(reader.view.len):
            raise ValueError("the columns have no room for the batch: finish them first")
        self._reserve(min(<Py_ssize_t>record_count, reader.view.len // SMALLEST_RECORD),
                      reader.view.len)
        try:
            with nogil:
                fault = self._fill(
                    reader, base_timestamp, stamped, append_time, from_offset, until_offset)
            if fault is not NULL:
                raise reader.corrupt_record(fault)
            reader.check_end()
            self.rows_ = self.key.rows
        finally:
            if self.rows_ != self.key.rows:
                self.key.cut(before, key_nulls)
                self.value.cut(before, value_nulls)
                self.header_key.cut(headers_before, 0)
                self.header_value.cut(headers_before, header_nulls)
                self.offset.cut(8 * before)
                self.timestamp.cut(8 * before)
                self.headers.cut(4 * (before + 1))
        for row in range(before, self.rows_):
            self.topic.put_int32(topic)
            self.partition.put_int32(partition)
            self.timestamp_type.put_int32(1 if stamped else 0)
        return self.rows_ - before

    cdef int _reserve(self, Py_ssize_t rows, Py_ssize_t size) except -1:
        self.key.reserve(rows, size)
        self.value.reserve(rows, size)
        self.topic.reserve(4 * rows)
        self.partition.reserve(4 * rows)
        self.offset.reserve(8 * rows)
        self.timestamp.reserve(8 * rows)
        self.timestamp_type.reserve(4 * rows)
        if self.with_headers:
            self.headers.reserve(4 * rows)
            self.header_key.reserve(size // 2, 3 * size)
            self.header_value.reserve(size // 2, size)
        return 0

    cdef const char *_fill(
        self, RecordReader reader, int64_t base_timestamp, bint stamped, int64_t append_time,
        int64_t from_offset, int64_t until_offset,
    ) except? NULL nogil:
        cdef RecordSpan span
        cdef const char *fault
        cdef int64_t offset
        while reader.done < reader.count:
            fault = parse_record(reader.at, reader.end, &span)
            if fault is not NULL:
                return fault
            offset = wire_add(reader.base_offset, span.offset_delta)
            if from_offset <= offset < until_offset:
                self.key.put(span.key, span.key_size)
                self.value.put(span.value, span.value_size)
                self.offset.put_int64(offset)
                self.timestamp.put_int64(
                    append_time if stamped else wire_add(base_timestamp, span.timestamp_delta))
                if self.with_headers:
                    self._fill_headers(&span)
                    self.headers.put_int32(<int32_t>self.header_key.rows)
            reader.at = span.end
            reader.done += 1
        return NULL

    cdef int _fill_headers(self, RecordSpan *span) except -1 nogil:
        cdef const uint8_t *at = span.headers
        cdef const uint8_t *data = NULL
        cdef Py_ssize_t size = 0
        cdef int64_t left
        for left in range(span.header_count):
            at = parse_bytes(at, span.end, &data, &size)
            if is_ascii(data, size):
                self.header_key.put(data, size)
            else:
                with gil:
                    self._put_decoded(data, size)
            at = parse_bytes(at, span.end, &data, &size)
            self.header_value.put(data, size)
        return 0

    cdef int _put_decoded(self, const uint8_t *data, Py_ssize_t size) except -1:
        cdef bytes name = PyUnicode_DecodeUTF8(
            <const char *>data, size, b"replace").encode("utf-8")
        self.header_key.put(<const uint8_t *>PyBytes_AS_STRING(name), PyBytes_GET_SIZE(name))
        return 0

    def add_record(
        self, int64_t offset, int64_t timestamp, int32_t timestamp_type, key, value,
        int32_t topic=0, int32_t partition=-1,
    ) -> None:
        """Append one record without headers: what the legacy formats have."""
        cdef const uint8_t *key_data
        cdef const uint8_t *value_data
        cdef Py_ssize_t key_size, value_size
        keep_key = open_payload(key, &key_data, &key_size)
        keep_value = open_payload(value, &value_data, &value_size)
        if not self.has_room_for(key_size + value_size):
            raise ValueError("the columns have no room for the record: finish them first")
        self._reserve(1, max(key_size, 0) + max(value_size, 0))
        self.key.put(key_data, key_size)
        self.value.put(value_data, value_size)
        self.topic.put_int32(topic)
        self.partition.put_int32(partition)
        self.offset.put_int64(offset)
        self.timestamp.put_int64(timestamp)
        self.timestamp_type.put_int32(timestamp_type)
        if self.with_headers:
            self.headers.put_int32(<int32_t>self.header_key.rows)
        self.rows_ += 1

    def finish(self) -> dict:
        """The buffers by column, as Arrow lays them out; the object is used up."""
        buffers = {
            "topic": self.topic.finish(),
            "partition": self.partition.finish(),
            "offset": self.offset.finish(),
            "timestamp": self.timestamp.finish(),
            "timestamp_type": self.timestamp_type.finish(),
        }
        self.key.finish("key", buffers)
        self.value.finish("value", buffers)
        if self.with_headers:
            buffers["headers.offsets"] = self.headers.finish()
            self.header_key.finish("headers.key", buffers)
            self.header_value.finish("headers.value", buffers)
        return buffers


cdef bint is_ascii(const uint8_t *data, Py_ssize_t size) noexcept nogil:
    cdef Py_ssize_t at
    cdef uint8_t seen = 0
    for at in range(size):
        seen |= data[at]
    return seen < 0x80
