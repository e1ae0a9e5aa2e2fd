# A pooled buffer while a batch lives in it.


cdef class Segment:
    # The export keeps a bytearray from moving while an append points into it.

    def __cinit__(self, buffer):
        PyObject_GetBuffer(buffer, &self.view, PyBUF_SIMPLE | PyBUF_WRITABLE)
        self.exported = True
        self.buffer = buffer

    def __dealloc__(self):
        if self.exported:
            PyBuffer_Release(&self.view)

    cdef object written(self, Py_ssize_t used):
        view = memoryview(self.buffer)
        if type(self.buffer) is not bytearray:
            view = view.cast("B")
        return view[:used]

    cdef object give_back(self):
        if self.exported:
            self.exported = False
            PyBuffer_Release(&self.view)
        return self.buffer
