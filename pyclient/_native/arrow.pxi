# Reading Arrow arrays without pyarrow itself: an array gives its buffers, and this knows their
# layout.


cdef class ArrowColumn:
    cdef Payload validity
    cdef Py_ssize_t first  # an array may be a slice of its buffers
    cdef Py_ssize_t length

    cdef int set_bounds(self, array, validity) except -1:
        self.first = array.offset
        self.length = len(array)
        self.validity = None if validity is None else Payload.__new__(Payload, validity)
        if self.first < 0 or (
            self.validity is not None and self.first + self.length > self.validity.size * 8
        ):
            raise ValueError("the array is longer than its buffers")
        return 0

    cdef inline bint is_set(self, Py_ssize_t index) noexcept nogil:
        index += self.first
        return self.validity is None or self.validity.data[index >> 3] >> (index & 7) & 1


@cython.final
cdef class ArrowBytes(ArrowColumn):
    # A binary, string, large_binary or large_string array. `get` trusts what `check` has seen.
    cdef Payload offsets
    cdef Payload data
    cdef bint large

    def __cinit__(self, array):
        kind = str(array.type)
        if kind not in ("binary", "string", "large_binary", "large_string"):
            raise TypeError(f"keys and values are arrays of binary or string, not of {kind}")
        self.large = kind.startswith("large_")
        validity, offsets, data = array.buffers()
        self.set_bounds(array, validity)
        self.offsets = Payload.__new__(Payload, b"" if offsets is None else offsets)
        self.data = Payload.__new__(Payload, b"" if data is None else data)
        if self.length and (
            (self.first + self.length + 1) * (8 if self.large else 4) > self.offsets.size
        ):
            raise ValueError("the array is longer than its buffers")

    cdef int check(self) except -1:
        """Refuse items outside of the data."""
        cdef Py_ssize_t index
        cdef int64_t start, end
        for index in range(self.length):
            start = self.offset_at(self.first + index)
            end = self.offset_at(self.first + index + 1)
            if not 0 <= start <= end <= self.data.size and self.is_set(index):
                raise ValueError(f"item {index} lies outside of the array's data")
        return 0

    cdef inline int64_t offset_at(self, Py_ssize_t index) noexcept nogil:
        cdef int32_t narrow
        cdef int64_t wide
        if self.large:
            memcpy(&wide, self.offsets.data + 8 * index, 8)
            return wide
        memcpy(&narrow, self.offsets.data + 4 * index, 4)
        return narrow

    cdef inline void get(
        self, Py_ssize_t index, const uint8_t **data, Py_ssize_t *size
    ) noexcept nogil:
        """Point at the item, with a size of -1 for null."""
        cdef int64_t start
        if not self.is_set(index):
            size[0] = -1
            return
        start = self.offset_at(self.first + index)
        data[0] = self.data.data + start
        size[0] = self.offset_at(self.first + index + 1) - start

    cdef bytes item(self, Py_ssize_t index):
        cdef const uint8_t *data = NULL
        cdef Py_ssize_t size = -1
        self.get(index, &data, &size)
        return None if size < 0 else (<char *>data)[:size]


@cython.final
cdef class ArrowNumbers(ArrowColumn):
    # An int32 or int64 array, or the offsets of a list array: then there is one more.
    cdef Payload data
    cdef bint wide

    def __cinit__(self, array, str kind, Py_ssize_t more):
        given = str(array.type)
        if given != kind and not given.startswith(kind + "<"):
            raise TypeError(f"an array of {kind} is needed, not of {given}")
        validity, data = array.buffers()[:2]
        self.set_bounds(array, validity)
        self.wide = kind == "int64"
        self.data = Payload.__new__(Payload, b"" if data is None else data)
        if self.length and (
            (self.first + self.length + more) * (8 if self.wide else 4) > self.data.size
        ):
            raise ValueError("the array is longer than its buffers")

    cdef inline int64_t at(self, Py_ssize_t index) noexcept nogil:
        cdef int32_t narrow
        cdef int64_t number
        index += self.first
        if self.wide:
            memcpy(&number, self.data.data + 8 * index, 8)
            return number
        memcpy(&narrow, self.data.data + 4 * index, 4)
        return narrow
