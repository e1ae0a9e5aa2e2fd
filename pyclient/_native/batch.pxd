# What other native modules (the send path) may cimport from `batch`.

from libc.stdint cimport int16_t, int32_t, int64_t, uint8_t, uint32_t


cdef uint32_t crc32c_of(const uint8_t *data, Py_ssize_t size) noexcept nogil
cdef Py_ssize_t partition_of(
    const uint8_t *key, Py_ssize_t size, Py_ssize_t partition_count
) noexcept nogil


# How many I/O threads wait for the GIL; changed atomically by `exchange`, read by decoders.
cdef int *io_waiters() noexcept nogil


cdef class Segment:
    cdef Py_buffer view
    cdef bint exported
    cdef object buffer

    cdef object written(self, Py_ssize_t used)
    cdef object give_back(self)


cdef struct Room:
    # A segment as an append sees it.
    uint8_t *start
    Py_ssize_t size
    Py_ssize_t used  # known once it is left


cdef class BatchBuilder:
    # Where the next record goes: valid while `state` is open, because the segments export their
    # buffers.
    cdef uint8_t *cursor
    cdef uint8_t *end
    cdef Py_ssize_t raw  # header and records, uncompressed
    cdef Py_ssize_t limit
    cdef int state
    cdef int32_t count
    cdef int64_t first_timestamp
    cdef int64_t largest_timestamp

    cdef list segments
    cdef Room *rooms  # of the segments, in their order
    cdef Py_ssize_t room_count
    cdef Py_ssize_t tail  # the one that records go to; those behind it are empty
    cdef list closed_parts
    cdef object header  # the 61 bytes of a compressed batch; None when they lead the first segment
    cdef Py_ssize_t closed_size

    cdef int codec
    cdef object level
    cdef int16_t attributes
    cdef int64_t append_time
    cdef int64_t producer_id_
    cdef int16_t producer_epoch_
    cdef int32_t base_sequence_
    cdef int64_t base_offset_
    cdef int32_t leader_epoch_

    # The index of the record in the batch, or -1 when it does not fit or the batch is sealed.
    # A size of -1 is null; `headers` is what encode_headers() returned. Calls nothing in Python,
    # so that under the GIL the append is atomic.
    cdef Py_ssize_t try_append_c(
        self,
        int64_t timestamp_ms,
        const uint8_t *key, Py_ssize_t key_size,
        const uint8_t *value, Py_ssize_t value_size,
        const uint8_t *headers, Py_ssize_t headers_size,
    ) noexcept nogil
    # The bytes that the record would take as the next one of this batch.
    cdef Py_ssize_t record_size_c(
        self, int64_t timestamp_ms, Py_ssize_t key_size, Py_ssize_t value_size,
        Py_ssize_t headers_size,
    ) noexcept nogil
    cdef int add_room(self, Segment segment) except -1
    cdef void seal_c(self) noexcept nogil
    cdef bint move_on(self, Py_ssize_t size) noexcept nogil
    cdef void settle(self) noexcept nogil
    cdef require_closed(self)
    cdef void put_placement(self, uint8_t *at) noexcept nogil
    cdef uint8_t *header_start(self)
    cdef write_placement(self)
    cdef write_header(self)
    cdef uint32_t checksum(self, uint8_t *header) except? 0
    cdef uint32_t checksum_rooms(self, uint8_t *header) noexcept nogil


cdef class ConsumerRecord:
    cdef str topic_
    cdef int32_t partition_
    cdef int32_t leader_epoch_
    cdef int64_t offset_
    cdef int64_t timestamp_
    cdef int64_t checksum_  # -1: none
    cdef int32_t key_size
    cdef int32_t value_size
    cdef int32_t header_size
    cdef int timestamp_type_
    cdef bytes plain_key
    cdef bytes plain_value
    cdef tuple header_pairs
