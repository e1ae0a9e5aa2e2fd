# Reading keys and values out of Arrow arrays of strings or bytes, without pyarrow itself: an array
# gives its buffers, and this knows their layout.


@cython.final
cdef class ArrowBytes:
    # A binary, string, large_binary or large_string array; out-of-range offsets are refused.
    cdef Payload validity
    cdef Payload offsets
    cdef Payload data
    cdef Py_ssize_t first  # an array may be a slice of its buffers
    cdef Py_ssize_t length
    cdef bint large

    def __cinit__(self, array):
        kind = str(array.type)
        if kind not in ("binary", "string", "large_binary", "large_string"):
            raise TypeError(f"keys and values are arrays of binary or string, not of {kind}")
        self.large = kind.startswith("large_")
        first = array.offset
        last = first + len(array)
        validity, offsets, data = array.buffers()
        self.validity = None if validity is None else Payload.__new__(Payload, validity)
        self.offsets = Payload.__new__(Payload, b"" if offsets is None else offsets)
        self.data = Payload.__new__(Payload, b"" if data is None else data)
        if last > first and not (
            first >= 0
            and (last + 1) * (8 if self.large else 4) <= self.offsets.size
            and (self.validity is None or last <= self.validity.size * 8)
        ):
            raise ValueError("the array is longer than its buffers")
        self.first = first
        self.length = last - first

    cdef int64_t offset_at(self, Py_ssize_t index) noexcept nogil:
        cdef int32_t narrow
        cdef int64_t wide
        if self.large:
            memcpy(&wide, self.offsets.data + 8 * index, 8)
            return wide
        memcpy(&narrow, self.offsets.data + 4 * index, 4)
        return narrow

    cdef bint get(self, Py_ssize_t index, const uint8_t **data, Py_ssize_t *size) noexcept nogil:
        """Point at the item, a size of -1 for null; False when its offsets lie."""
        cdef int64_t start, end
        index += self.first
        if self.validity is not None and not self.validity.data[index >> 3] >> (index & 7) & 1:
            size[0] = -1
            return True
        start = self.offset_at(index)
        end = self.offset_at(index + 1)
        if not 0 <= start <= end <= self.data.size:
            return False
        data[0] = self.data.data + start
        size[0] = end - start
        return True


def partitions_of_keys(keys, int32_t partition_count) -> bytes:
    """The partition of each key of an Arrow array, -1 without a key, as native 32-bit integers.

    Raises:
        TypeError: an array of another type.
        ValueError: an array whose buffers contradict it.
    """
    cdef ArrowBytes array = ArrowBytes.__new__(ArrowBytes, keys)
    cdef const uint8_t *key = NULL
    cdef Py_ssize_t size = -1, index
    partitions = PyBytes_FromStringAndSize(NULL, array.length * 4)
    cdef int32_t *at = <int32_t *>PyBytes_AS_STRING(partitions)
    for index in range(array.length):
        if not array.get(index, &key, &size):
            raise ValueError(f"item {index} lies outside of the array's data")
        at[index] = -1 if size < 0 else <int32_t>partition_of(key, size, partition_count)
    return partitions
