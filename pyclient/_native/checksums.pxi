# CRC-32C of batches, Java's murmur2, and the partition of a key.

cdef extern from "crc32c.h":
    void crc32c_prepare() noexcept nogil
    uint32_t crc32c_extend(uint32_t state, const uint8_t *data, size_t size) noexcept nogil
    uint32_t crc32c_extend_portable(
        uint32_t state, const uint8_t *data, size_t size) noexcept nogil

crc32c_prepare()

# Below this the GIL is cheaper to keep: a checksum of this size takes some 3 us, and a thread
# that lets the GIL go while another one computes gets it back 5 ms later.
cdef Py_ssize_t UNLOCKED_BYTES = 65536


cdef uint32_t crc32c_of(const uint8_t *data, Py_ssize_t size) noexcept nogil:
    return ~crc32c_extend(~<uint32_t>0, data, size)


def crc32c(data) -> int:
    """The CRC-32C of bytes-like `data`; the GIL is released for the large ones."""
    cdef Py_buffer view
    cdef uint32_t checksum
    PyObject_GetBuffer(data, &view, PyBUF_SIMPLE)
    try:
        if view.len < UNLOCKED_BYTES:
            checksum = crc32c_of(<const uint8_t *>view.buf, view.len)
        else:
            with nogil:
                checksum = crc32c_of(<const uint8_t *>view.buf, view.len)
    finally:
        PyBuffer_Release(&view)
    return checksum


def crc32c_without_hardware(const uint8_t[::1] data) -> int:
    """The CRC-32C as processors without the instruction compute it, for tests."""
    cdef const uint8_t *start = &data[0] if data.shape[0] else NULL
    return <uint32_t>~crc32c_extend_portable(~<uint32_t>0, start, data.shape[0])


cdef int32_t murmur2_of(const uint8_t *key, Py_ssize_t size) noexcept nogil:
    cdef uint32_t m = 0x5BD1E995
    cdef uint32_t h = <uint32_t>0x9747B28C ^ <uint32_t>size
    cdef uint32_t k
    cdef Py_ssize_t at = 0
    while size - at >= 4:
        k = (
            key[at] | (<uint32_t>key[at + 1] << 8)
            | (<uint32_t>key[at + 2] << 16) | (<uint32_t>key[at + 3] << 24)
        )
        k *= m
        k ^= k >> 24
        h = (h * m) ^ (k * m)
        at += 4
    if size - at == 3:
        h ^= <uint32_t>key[at + 2] << 16
    if size - at >= 2:
        h ^= <uint32_t>key[at + 1] << 8
    if size - at >= 1:
        h ^= key[at]
        h *= m
    h ^= h >> 13
    h *= m
    h ^= h >> 15
    return <int32_t>h


cdef Py_ssize_t partition_of(
    const uint8_t *key, Py_ssize_t size, Py_ssize_t partition_count
) noexcept nogil:
    # Java drops the sign bit rather than taking the absolute value.
    return (murmur2_of(key, size) & 0x7FFFFFFF) % partition_count


def partition_for_key(key, Py_ssize_t partition_count) -> int:
    """The partition of a key, over all partitions, those without a leader included."""
    cdef Py_buffer view
    cdef Py_ssize_t partition
    if partition_count <= 0:
        raise ZeroDivisionError("a key has no partition among none")
    if type(key) is bytes:
        return partition_of(
            <const uint8_t *>PyBytes_AS_STRING(key), PyBytes_GET_SIZE(key), partition_count)
    PyObject_GetBuffer(key, &view, PyBUF_SIMPLE)
    try:
        partition = partition_of(<const uint8_t *>view.buf, view.len, partition_count)
    finally:
        PyBuffer_Release(&view)
    return partition


def murmur2(key) -> int:
    """Java's murmur2 of a key: signed, as its partitioner computes it."""
    cdef Py_buffer view
    cdef int32_t hashed
    if type(key) is bytes:
        return murmur2_of(<const uint8_t *>PyBytes_AS_STRING(key), PyBytes_GET_SIZE(key))
    PyObject_GetBuffer(key, &view, PyBUF_SIMPLE)
    try:
        hashed = murmur2_of(<const uint8_t *>view.buf, view.len)
    finally:
        PyBuffer_Release(&view)
    return hashed
