# Bytes of the caller's, borrowed for as long as a call needs them.


@cython.final
cdef class Payload:
    cdef Py_buffer view
    cdef bint exported
    cdef const uint8_t *data
    cdef Py_ssize_t size

    def __cinit__(self, content):
        PyObject_GetBuffer(content, &self.view, PyBUF_SIMPLE)
        self.exported = True
        self.data = <const uint8_t *>self.view.buf
        self.size = self.view.len

    def __dealloc__(self):
        if self.exported:
            PyBuffer_Release(&self.view)


cdef inline object open_payload(object content, const uint8_t **data, Py_ssize_t *size):
    """Point `data` at the content, with a size of -1 for None; what is returned keeps it alive."""
    cdef Payload payload
    if type(content) is bytes:
        data[0] = <const uint8_t *>PyBytes_AS_STRING(content)
        size[0] = PyBytes_GET_SIZE(content)
        return None  # the caller's argument does
    if content is None:
        data[0] = NULL
        size[0] = -1
        return None
    payload = Payload.__new__(Payload, content)
    data[0] = payload.data
    size[0] = payload.size
    return payload


cdef inline int64_t check_timestamp(timestamp_ms) except -2:
    cdef int64_t timestamp
    if type(timestamp_ms) is not int:  # Cython would take a float
        raise TypeError(f"a timestamp is an int, not {type(timestamp_ms).__name__}")
    timestamp = timestamp_ms
    if timestamp < -1:
        raise ValueError(f"a timestamp is not negative: {timestamp}")
    return timestamp
