# Memory of large columns, kept for the next table. An allocator gives a large block back to the
# kernel when its table is dropped; each page of the next block is then a page fault, which takes
# longer than the copy into the page.

cdef enum:
    SMALLEST_KEPT = 1 << 16  # smaller blocks stay with the allocator anyway
    KEPT_CLASSES = 10  # the largest class: 32 MB
    KEPT_LIMIT = 1 << 26  # bytes of all kept blocks; what is more goes back to the allocator


cdef struct KeptBlock:
    KeptBlock *next  # in the block's own memory


cdef KeptBlock *kept_blocks[KEPT_CLASSES]  # by class: 64 KB, 128 KB, ...; guarded by the GIL
cdef Py_ssize_t kept_bytes = 0
cdef uint8_t no_bytes[1]

for _index in range(KEPT_CLASSES):
    kept_blocks[_index] = NULL
del _index


cdef int kept_class(Py_ssize_t size) noexcept:
    # The class whose blocks hold `size` bytes, or -1: no such class.
    cdef int index = 0
    if size < SMALLEST_KEPT:
        return -1
    while (<Py_ssize_t>SMALLEST_KEPT << index) < size:
        index += 1
    return index if index < KEPT_CLASSES else -1


@cython.final
cdef class ColumnMemory:
    # A block that grows, read through the buffer protocol.
    cdef uint8_t *data
    cdef Py_ssize_t size  # what readers see
    cdef Py_ssize_t capacity

    cdef int grow(self, Py_ssize_t capacity, Py_ssize_t used) except -1:
        global kept_bytes
        cdef int index = kept_class(capacity)
        cdef uint8_t *data
        if index < 0:
            data = <uint8_t *>PyMem_Malloc(capacity)
        else:
            capacity = <Py_ssize_t>SMALLEST_KEPT << index
            data = <uint8_t *>kept_blocks[index]
            if data is not NULL:
                kept_blocks[index] = kept_blocks[index].next
                kept_bytes -= capacity
            else:
                data = <uint8_t *>PyMem_Malloc(capacity)
        if data is NULL:
            raise MemoryError(f"no memory for a column of {capacity} bytes")
        if used:
            memcpy(data, self.data, used)
        self.drop()
        self.data = data
        self.capacity = capacity
        return 0

    cdef void drop(self) noexcept:
        global kept_bytes
        cdef int index = kept_class(self.capacity)
        cdef KeptBlock *block = <KeptBlock *>self.data
        if self.data is NULL:
            return
        if index < 0 or kept_bytes + self.capacity > KEPT_LIMIT:
            PyMem_Free(self.data)
        else:
            block.next = kept_blocks[index]
            kept_blocks[index] = block
            kept_bytes += self.capacity
        self.data = NULL

    def __dealloc__(self):
        self.drop()

    def __len__(self):
        return self.size

    def __getbuffer__(self, Py_buffer *view, int flags):
        # Arrow refuses an empty buffer without an address.
        PyBuffer_FillInfo(view, self, self.data if self.data is not NULL else no_bytes,
                          self.size, 1, flags)
