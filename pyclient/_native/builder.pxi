# Building a v2 batch in pooled buffers.

from pyclient.records.compression import compress

cdef enum:
    OPEN
    SEALED
    CLOSED
    RELEASED

cdef enum:
    MAX_BATCH = 0x7FFFFFFF  # also keeps the count of records within 32 bits
    # A checksum of so little is done in 2 us. To let another thread run meanwhile, and to wait for
    # it, takes ten times as long: an eighth of the rate of 16 KB batches.
    GIL_KEPT_BELOW = 32 * 1024

cdef tuple EMPTY = ()


@cython.final
cdef class BatchBuilder:
    """A v2 record batch that grows in the buffers it is given.

    `try_append`, `extend` and `seal` may race with each other; all else is for the one thread
    that sealed the batch. The first 61 bytes of the first buffer are the header's.
    """

    def __cinit__(
        self, buffer, *, int codec=0, level=None, log_append_time_ms=None,
        bint transactional=False, bint control=False, int64_t producer_id=-1,
        int16_t producer_epoch=-1, int32_t base_sequence=-1, int64_t base_offset=0,
        int32_t leader_epoch=-1, Py_ssize_t limit=MAX_BATCH,
    ):
        cdef Segment segment = Segment.__new__(Segment, buffer)
        if segment.view.len < HEADER_SIZE:
            raise ValueError(f"a batch needs a buffer of at least 61 bytes, not {segment.view.len}")
        if not 0 <= codec <= 4:
            raise ValueError(f"there is no compression codec {codec}")
        if not HEADER_SIZE <= limit <= MAX_BATCH:
            raise ValueError(f"a batch's limit is between 61 bytes and 2 GiB, not {limit}")
        self.segments = []
        self.add_room(segment)
        self.cursor = self.rooms[0].start + HEADER_SIZE
        self.end = self.rooms[0].start + self.rooms[0].size
        self.raw = HEADER_SIZE
        self.limit = limit
        self.codec = codec
        self.level = level
        self.attributes = codec
        self.append_time = -1
        if log_append_time_ms is not None:
            self.append_time = log_append_time_ms
            self.attributes |= 0x08
        if transactional:
            self.attributes |= 0x10
        if control:
            self.attributes |= 0x20
        self.producer_id_ = producer_id
        self.producer_epoch_ = producer_epoch
        self.base_sequence_ = base_sequence
        self.base_offset_ = base_offset
        self.leader_epoch_ = leader_epoch
        self.first_timestamp = self.largest_timestamp = -1
        self.state = OPEN

    def __dealloc__(self):
        PyMem_Free(self.rooms)

    cdef int add_room(self, Segment segment) except -1:
        cdef Py_ssize_t count = len(self.segments)
        cdef Room *rooms = <Room *>PyMem_Realloc(self.rooms, (count + 1) * sizeof(Room))
        if rooms is NULL:
            raise MemoryError
        self.rooms = rooms
        rooms[count].start = <uint8_t *>segment.view.buf
        rooms[count].size = segment.view.len
        rooms[count].used = 0
        self.segments.append(segment)
        self.room_count = count + 1
        return 0

    @property
    def record_count(self):
        """Records appended so far."""
        return self.count

    @property
    def raw_size(self):
        """Bytes of header and records before compression."""
        return self.raw

    @property
    def size_in_bytes(self):
        """Bytes on the wire, once closed."""
        self.require_closed()
        return self.closed_size

    @property
    def compression_ratio(self):
        """Bytes on the wire to bytes before compression, once closed."""
        self.require_closed()
        return <double>self.closed_size / <double>self.raw

    @property
    def base_timestamp(self):
        """The first record's timestamp, -1 without records."""
        return self.first_timestamp

    @property
    def max_timestamp(self):
        """The largest timestamp, or the append time where the batch has one."""
        return self.largest_timestamp if self.append_time < 0 else self.append_time

    @property
    def producer_id(self):
        """The idempotent producer's id, -1 without one."""
        return self.producer_id_

    @property
    def producer_epoch(self):
        """The idempotent producer's epoch."""
        return self.producer_epoch_

    @property
    def base_sequence(self):
        """The sequence number of the first record."""
        return self.base_sequence_

    @property
    def is_sealed(self):
        """Whether the batch takes no more records."""
        return self.state != OPEN

    @property
    def is_closed(self):
        """Whether `close` has made the batch's bytes."""
        return self.closed_parts is not None

    cdef Py_ssize_t record_size_c(
        self, int64_t timestamp_ms, Py_ssize_t key_size, Py_ssize_t value_size,
        Py_ssize_t headers_size,
    ) noexcept nogil:
        cdef Py_ssize_t body = record_body_size(
            wire_add(timestamp_ms, -self.first_timestamp) if self.count else 0, self.count,
            key_size, value_size, headers_size)
        return wire_varint_size(body) + body

    cdef Py_ssize_t try_append_c(
        self,
        int64_t timestamp_ms,
        const uint8_t *key, Py_ssize_t key_size,
        const uint8_t *value, Py_ssize_t value_size,
        const uint8_t *headers, Py_ssize_t headers_size,
    ) noexcept nogil:
        cdef int32_t index = self.count
        cdef int64_t delta = wire_add(timestamp_ms, -self.first_timestamp) if index else 0
        cdef Py_ssize_t body = record_body_size(
            delta, index, key_size, value_size, headers_size)
        cdef Py_ssize_t size = wire_varint_size(body) + body
        cdef uint8_t *at
        if self.state != OPEN or size > self.limit - self.raw:
            return -1
        if size > self.end - self.cursor and not self.move_on(size):
            return -1
        at = wire_put_varint(self.cursor, body)
        at[0] = 0  # attributes: a record has none
        at = wire_put_varint(at + 1, delta)
        at = wire_put_varint(at, index)
        at = put_bytes(at, key, key_size)
        at = put_bytes(at, value, value_size)
        if headers_size == 1:  # no headers, mostly: not worth a call
            at[0] = headers[0]
        else:
            memcpy(at, headers, headers_size)
        if index == 0:
            self.first_timestamp = timestamp_ms
        if timestamp_ms > self.largest_timestamp:
            self.largest_timestamp = timestamp_ms
        self.cursor += size
        self.raw += size
        self.count = index + 1
        return index

    cdef bint move_on(self, Py_ssize_t size) noexcept nogil:
        """Leave a segment without room for the record for the next one, if that has it."""
        if self.tail + 1 >= self.room_count or size > self.rooms[self.tail + 1].size:
            return False
        self.settle()
        self.tail += 1
        self.cursor = self.rooms[self.tail].start
        self.end = self.cursor + self.rooms[self.tail].size
        return True

    cdef void settle(self) noexcept nogil:
        # Appends move the cursor alone; what a segment holds is written down when it is left.
        self.rooms[self.tail].used = self.cursor - self.rooms[self.tail].start

    cdef void seal_c(self) noexcept nogil:
        if self.state == OPEN:
            self.state = SEALED

    def has_room_for(self, timestamp_ms, key, value, headers=()) -> bool:
        """Whether `try_append` of this record would succeed now."""
        cdef const uint8_t *data
        cdef Py_ssize_t key_size, value_size, headers_size, size
        keep_key = open_payload(key, &data, &key_size)
        keep_value = open_payload(value, &data, &value_size)
        headers_size = len(encode_headers(headers)) if headers else 1
        size = self.record_size_c(check_timestamp(timestamp_ms), key_size, value_size, headers_size)
        return self.state == OPEN and size <= self.limit - self.raw and (
            size <= self.end - self.cursor
            or (self.tail + 1 < self.room_count and size <= self.rooms[self.tail + 1].size)
        )

    def size_of(self, timestamp_ms, key, value, headers=()) -> int:
        """The exact bytes that this record would take as the next one of the batch."""
        cdef const uint8_t *data
        cdef Py_ssize_t key_size, value_size, headers_size
        keep_key = open_payload(key, &data, &key_size)
        keep_value = open_payload(value, &data, &value_size)
        headers_size = len(encode_headers(headers)) if headers else 1
        return self.record_size_c(
            check_timestamp(timestamp_ms), key_size, value_size, headers_size)

    def try_append(self, timestamp_ms, key, value, headers=(), /) -> int:
        """Append a record.

        Returns its index in the batch, or -1 when it does not fit into the newest buffer or the
        batch's limit, or when the batch is sealed.
        """
        cdef const uint8_t *key_data
        cdef const uint8_t *value_data
        cdef const uint8_t *headers_data = NO_HEADERS
        cdef Py_ssize_t key_size, value_size, headers_size = 1
        cdef int64_t timestamp = check_timestamp(timestamp_ms)
        if type(key) is bytes:
            key_data = <const uint8_t *>PyBytes_AS_STRING(key)
            key_size = PyBytes_GET_SIZE(key)
        else:
            keep_key = open_payload(key, &key_data, &key_size)
        if type(value) is bytes:
            value_data = <const uint8_t *>PyBytes_AS_STRING(value)
            value_size = PyBytes_GET_SIZE(value)
        else:
            keep_value = open_payload(value, &value_data, &value_size)
        if headers is not EMPTY and headers:
            encoded = encode_headers(headers)
            headers_data = <const uint8_t *>PyBytes_AS_STRING(encoded)
            headers_size = PyBytes_GET_SIZE(encoded)
        return self.try_append_c(
            timestamp, key_data, key_size, value_data, value_size, headers_data, headers_size)

    def extend(self, list buffers not None) -> bool:
        """Go on in more buffers, which it takes out of the list, once those before have no room.

        Returns False (and the buffers stay the caller's) when sealed.
        """
        cdef Segment segment
        if self.state != OPEN:
            return False
        for buffer in reversed(buffers):
            segment = Segment.__new__(Segment, buffer)
            self.add_room(segment)
            buffers.pop()
        return True

    def release_unused(self) -> list:
        """Give those buffers back that have no record, once sealed."""
        cdef Segment segment
        if self.state == OPEN:
            return []
        unused = self.segments[self.tail + 1:]
        del self.segments[self.tail + 1:]
        self.room_count = len(self.segments)
        return [(<Segment>segment).give_back() for segment in unused]

    def seal(self) -> bool:
        """Take no more records; whether this call was the one that sealed."""
        if self.state != OPEN:
            return False
        self.state = SEALED
        return True

    def close(self, *, bint detach=False) -> list:
        """Seal, compress, write header and checksum: the batch as a list of memoryviews.

        Closing again returns the same parts. The parts of an uncompressed batch lie in the
        buffers; those of a compressed one do not, nor those of one that is to `detach` itself by
        a copy, and `release` may follow at once.

        Raises:
            ValueError: the batch has no records, or was released before it was closed.
        """
        cdef Segment segment
        cdef Py_ssize_t size
        if self.closed_parts is not None:
            return self.closed_parts
        if self.count == 0 or self.state == RELEASED:
            raise ValueError("a batch without records cannot be closed")
        self.state = SEALED
        self.settle()
        pieces = [
            (<Segment>self.segments[number]).written(self.rooms[number].used)
            for number in range(self.tail + 1)
            if self.rooms[number].used
        ]
        size = self.raw
        if self.codec or detach:
            pieces[0] = pieces[0][HEADER_SIZE:]
            body = compress(self.codec, pieces, self.level) if self.codec else b"".join(pieces)
            self.header = bytearray(HEADER_SIZE)
            pieces = [memoryview(self.header), memoryview(body)]
            size = HEADER_SIZE + len(body)
        if size - AFTER_LENGTH > MAX_BATCH:
            raise ValueError(f"the batch has become {size} bytes large, beyond 2 GiB")
        self.closed_size = size
        self.closed_parts = pieces
        self.state = CLOSED
        self.write_header()
        return pieces

    def set_producer_state(
        self, int64_t producer_id, int16_t producer_epoch, int32_t base_sequence
    ) -> None:
        """Number the batch; after `close` this renews the checksum."""
        self.producer_id_ = producer_id
        self.producer_epoch_ = producer_epoch
        self.base_sequence_ = base_sequence
        if self.closed_parts is not None:
            self.write_header()

    def set_base_offset(self, int64_t base_offset) -> None:
        """Set the first record's offset; it is outside the checksum."""
        self.base_offset_ = base_offset
        if self.closed_parts is not None:
            self.write_placement()

    def set_leader_epoch(self, int32_t leader_epoch) -> None:
        """Set the leader's epoch; it is outside the checksum."""
        self.leader_epoch_ = leader_epoch
        if self.closed_parts is not None:
            self.write_placement()

    def release(self) -> list:
        """Give the buffers back, each once.

        The bytes of an uncompressed batch go with them; a detached batch keeps its parts. An open
        batch is sealed.
        """
        cdef Segment segment
        segments = self.segments
        self.state = RELEASED
        self.segments = []
        self.room_count = 0
        self.cursor = self.end = NULL
        if self.header is None:
            self.closed_parts = None
        return [(<Segment>segment).give_back() for segment in segments]

    def release_to(self, list buffers not None) -> None:
        """The same, into a list: an interrupt can come before or after, but not in between."""
        buffers.extend(self.release())

    @property
    def is_detached(self) -> bool:
        """Whether the closed batch does not need its buffers: it is compressed, or was copied."""
        return self.header is not None

    cdef require_closed(self):
        if not self.closed_size:
            raise ValueError("the batch is not closed yet")

    cdef void put_placement(self, uint8_t *at) noexcept nogil:
        wire_put(at, <uint64_t>self.base_offset_, 8)
        wire_put(at + LEADER_EPOCH_AT, <uint64_t>self.leader_epoch_, 4)

    cdef uint8_t *header_start(self):
        if self.header is not None:
            return <uint8_t *>PyByteArray_AS_STRING(self.header)
        return self.rooms[0].start

    cdef write_placement(self):
        self.put_placement(self.header_start())

    cdef write_header(self):
        cdef uint8_t *at = self.header_start()
        wire_put(at + LENGTH_AT, self.closed_size - AFTER_LENGTH, 4)
        at[MAGIC_AT] = 2
        wire_put(at + ATTRIBUTES_AT, <uint64_t>self.attributes, 2)
        wire_put(at + LAST_OFFSET_DELTA_AT, self.count - 1, 4)
        wire_put(at + BASE_TIMESTAMP_AT, <uint64_t>self.first_timestamp, 8)
        wire_put(at + MAX_TIMESTAMP_AT, <uint64_t>(
            self.largest_timestamp if self.append_time < 0 else self.append_time), 8)
        wire_put(at + PRODUCER_ID_AT, <uint64_t>self.producer_id_, 8)
        wire_put(at + PRODUCER_EPOCH_AT, <uint64_t>self.producer_epoch_, 2)
        wire_put(at + BASE_SEQUENCE_AT, <uint64_t>self.base_sequence_, 4)
        wire_put(at + RECORD_COUNT_AT, self.count, 4)
        self.put_placement(at)
        wire_put(at + CRC_AT, self.checksum(at), 4)

    cdef uint32_t checksum(self, uint8_t *header) except? 0:
        cdef uint32_t state
        cdef Payload part
        if self.header is None:
            if self.closed_size < GIL_KEPT_BELOW:
                return self.checksum_rooms(header)
            with nogil:
                return self.checksum_rooms(header)
        state = crc32c_extend(~<uint32_t>0, header + CRC_FROM, HEADER_SIZE - CRC_FROM)
        for piece in self.closed_parts[1:]:
            part = Payload.__new__(Payload, piece)
            if part.size < GIL_KEPT_BELOW:
                state = crc32c_extend(state, part.data, part.size)
                continue
            with nogil:
                state = crc32c_extend(state, part.data, part.size)
        return ~state

    cdef uint32_t checksum_rooms(self, uint8_t *header) noexcept nogil:
        # The header leads the first segment, and is checksummed from within.
        cdef uint32_t state = crc32c_extend(
            ~<uint32_t>0, header + CRC_FROM, self.rooms[0].used - CRC_FROM)
        cdef Py_ssize_t number
        for number in range(1, self.tail + 1):
            state = crc32c_extend(state, self.rooms[number].start, self.rooms[number].used)
        return ~state
