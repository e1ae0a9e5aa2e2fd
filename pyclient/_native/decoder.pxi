# Reading the records of a v2 batch.
#
# Every length is checked against the bytes left before it is used, and a count never allocates:
# whatever the bytes say, reading ends with records or with a CorruptRecordError.

from cpython.unicode cimport PyUnicode_DecodeUTF8

cdef struct RecordSpan:
    int64_t timestamp_delta
    int64_t offset_delta
    const uint8_t *key
    Py_ssize_t key_size  # -1: null
    const uint8_t *value
    Py_ssize_t value_size
    int64_t header_count
    const uint8_t *headers  # the first header, behind the count
    const uint8_t *end


cdef inline const uint8_t *parse_bytes(
    const uint8_t *at, const uint8_t *end, const uint8_t **data, Py_ssize_t *size,
) noexcept nogil:
    cdef int64_t length
    at = wire_get_varint(at, end, &length)
    if at is NULL or length < -1 or length > end - at:
        return NULL
    data[0] = at
    size[0] = length
    return at + length if length > 0 else at


cdef inline const char *parse_record(
    const uint8_t *at, const uint8_t *end, RecordSpan *span,
) noexcept nogil:
    """Fill `span` from the record at `at`; what is wrong with it, or NULL."""
    cdef int64_t length, left
    cdef const uint8_t *data
    cdef Py_ssize_t size
    at = wire_get_varint(at, end, &length)
    if at is NULL:
        return b"its length is not a varint"
    if length < 0 or length > end - at:
        return b"its length is beyond the bytes left"
    end = span.end = at + length
    if length == 0:
        return b"it has no attributes"
    at = wire_get_varlong(at + 1, end, &span.timestamp_delta)
    if at is NULL:
        return b"its timestamp is not a varint"
    at = wire_get_varint(at, end, &span.offset_delta)
    if at is NULL:
        return b"its offset is not a varint"
    at = parse_bytes(at, end, &span.key, &span.key_size)
    if at is NULL:
        return b"its key's length is wrong"
    at = parse_bytes(at, end, &span.value, &span.value_size)
    if at is NULL:
        return b"its value's length is wrong"
    at = wire_get_varint(at, end, &span.header_count)
    if at is NULL or span.header_count < 0 or 2 * span.header_count > end - at:
        return b"its header count is wrong"
    span.headers = at
    for left in range(span.header_count):
        at = parse_bytes(at, end, &data, &size)
        if at is NULL or size < 0:
            return b"a header's name is wrong"
        at = parse_bytes(at, end, &data, &size)
        if at is NULL:
            return b"a header's value is wrong"
    if at != end:
        return b"it has bytes behind its last field"
    return NULL


cdef inline bytes new_bytes(const uint8_t *data, Py_ssize_t size):
    cdef bytes copy
    if size <= 2048:
        return PyBytes_FromStringAndSize(<const char *>data, size)
    copy = PyBytes_FromStringAndSize(NULL, size)
    wire_copy(<uint8_t *>PyBytes_AS_STRING(copy), data, size)
    return copy


cdef tuple decode_headers(RecordSpan *span, int32_t *size):
    """The headers of a parsed record as pairs, and the sum of their bytes."""
    cdef const uint8_t *at = span.headers
    cdef const uint8_t *data = NULL
    cdef Py_ssize_t length = 0
    cdef int64_t left
    pairs = []
    size[0] = 0
    for left in range(span.header_count):
        at = parse_bytes(at, span.end, &data, &length)
        # Java replaces what is not UTF-8, and a partition must not stop at such a name.
        name = PyUnicode_DecodeUTF8(<const char *>data, length, b"replace")
        size[0] += length
        at = parse_bytes(at, span.end, &data, &length)
        if length < 0:
            pairs.append((name, None))
        else:
            pairs.append((name, new_bytes(data, length)))
            size[0] += length
    return tuple(pairs)


@cython.final
cdef class RecordReader:
    # Walks the records of one batch and says where it stumbled.
    cdef Py_buffer view
    cdef bint exported
    cdef const uint8_t *at
    cdef const uint8_t *end
    cdef int64_t base_offset
    cdef int32_t count
    cdef int32_t done
    cdef object position
    cdef bint expanded

    def __dealloc__(self):
        if self.exported:
            PyBuffer_Release(&self.view)

    cdef start(self, records, int32_t count, int64_t base_offset, position, bint expanded):
        PyObject_GetBuffer(records, &self.view, PyBUF_SIMPLE)
        self.exported = True
        self.at = <const uint8_t *>self.view.buf
        self.end = self.at + self.view.len
        self.base_offset = base_offset
        self.count = count
        self.position = position
        self.expanded = expanded
        if count < 0:
            raise self.corrupt(f"it counts {count} records")

    cdef object corrupt(self, str reason):
        cdef Py_ssize_t reached = self.at - <const uint8_t *>self.view.buf
        return CorruptRecordError(
            f"the batch at offset {self.base_offset} is corrupt: {reason}",
            base_offset=self.base_offset,
            position=self.position + (0 if self.expanded else reached),
        )

    cdef object corrupt_record(self, const char *reason):
        return self.corrupt(
            f"record {self.done} of {self.count}, byte "
            f"{self.at - <const uint8_t *>self.view.buf} of its records: {reason.decode()}")

    cdef check_end(self):
        if self.done == self.count and self.at != self.end:
            raise self.corrupt(f"{self.end - self.at} bytes lie behind its last record")


cdef class RecordDecoder:
    """Turns the records of a batch into `ConsumerRecord`s, as many at a time as asked for."""

    cdef RecordReader reader
    cdef str topic
    cdef int32_t partition
    cdef int32_t leader_epoch
    cdef int64_t base_timestamp
    cdef int timestamp_type
    cdef int64_t append_time
    cdef int64_t from_offset

    def __cinit__(
        self, records, int32_t record_count, int64_t base_offset, int64_t base_timestamp,
        log_append_time_ms=None, str topic="", int32_t partition=-1, int32_t leader_epoch=-1,
        int64_t from_offset=0, *, position=0, bint expanded=False,
    ):
        self.reader = RecordReader.__new__(RecordReader)
        self.reader.start(records, record_count, base_offset, position, expanded)
        self.topic = topic
        self.partition = partition
        self.leader_epoch = leader_epoch
        self.base_timestamp = base_timestamp
        self.append_time = -1 if log_append_time_ms is None else log_append_time_ms
        self.from_offset = from_offset
        self.timestamp_type = 0 if log_append_time_ms is None else 1

    @property
    def remaining(self):
        """Records not read yet."""
        return self.reader.count - self.reader.done

    def read(self, Py_ssize_t max_records=-1) -> list:
        """The next records from `from_offset` on, at most `max_records` (-1: all).

        Raises:
            CorruptRecordError: the bytes are not the records that the batch announced.
        """
        cdef RecordReader reader = self.reader
        cdef RecordSpan span
        cdef const char *fault
        cdef int64_t offset
        cdef ConsumerRecord record
        cdef const uint8_t *looked_at = reader.at
        records = []
        while reader.done < reader.count and max_records != 0:
            fault = parse_record(reader.at, reader.end, &span)
            if fault is not NULL:
                raise reader.corrupt_record(fault)
            offset = wire_add(reader.base_offset, span.offset_delta)
            if offset >= self.from_offset:
                record = ConsumerRecord.__new__(ConsumerRecord)
                record.topic_ = self.topic
                record.partition_ = self.partition
                record.leader_epoch_ = self.leader_epoch
                record.offset_ = offset
                record.timestamp_type_ = self.timestamp_type
                if self.timestamp_type:
                    record.timestamp_ = self.append_time
                else:
                    record.timestamp_ = wire_add(self.base_timestamp, span.timestamp_delta)
                record.checksum_ = -1
                record.key_size = span.key_size
                if span.key_size >= 0:
                    record.plain_key = new_bytes(span.key, span.key_size)
                record.value_size = span.value_size
                if span.value_size >= 0:
                    record.plain_value = new_bytes(span.value, span.value_size)
                if span.header_count:
                    record.header_pairs = decode_headers(&span, &record.header_size)
                else:
                    record.header_size = -1
                    record.header_pairs = ()
                records.append(record)
                max_records -= 1
            reader.at = span.end
            reader.done += 1
            if reader.at - looked_at >= HANDOVER_BYTES:
                looked_at = reader.at
                hand_over()
        reader.check_end()
        return records

    def verify_produced(self) -> int:
        """Walk over the records that are left, as a producer writes them, and make none.

        The latest of their timestamps; -1 where they have none.

        Raises:
            CorruptRecordError: the bytes are not the records that the batch announced, or their
                offsets do not follow each other.
        """
        cdef RecordReader reader = self.reader
        cdef RecordSpan span
        cdef const char *fault
        cdef int64_t timestamp, latest = -1
        while reader.done < reader.count:
            fault = parse_record(reader.at, reader.end, &span)
            if fault is not NULL:
                raise reader.corrupt_record(fault)
            if span.offset_delta != reader.done:
                raise reader.corrupt(f"record {reader.done} of {reader.count} has another's offset")
            timestamp = wire_add(self.base_timestamp, span.timestamp_delta)
            if timestamp > latest:
                latest = timestamp
            reader.at = span.end
            reader.done += 1
        reader.check_end()
        return self.append_time if self.timestamp_type else latest
