# Iteration, one record at a time: a list and an index, moved together.
#
# Between the check and the new index nothing calls into Python, so a signal handler cannot raise
# after a record was counted as handed out and before the program has it.

@cython.final
cdef class RecordCursor:
    """Hands out records one by one; calls `refill` when there are none, or when interrupted.

    `refill` returns when records are there (`open`), or raises StopIteration. An exception does
    not end the iteration: the next call tries again.
    """

    cdef object refill
    cdef list records
    cdef Py_ssize_t index_
    cdef bint is_open
    cdef public bint interrupted

    def __init__(self, refill):
        self.refill = refill
        self.records = []

    @property
    def index(self):
        """How many records of the list were handed out."""
        return self.index_

    def load(self, list records not None):
        """Hand these out next; closed until `open`."""
        self.is_open = False
        self.records = records
        self.index_ = 0

    def open(self):
        """Hand out records without a call of `refill`, until one is needed."""
        self.is_open = True

    def close(self):
        """Call `refill` before the next record."""
        self.is_open = False

    def __iter__(self):
        return self

    def __next__(self):
        cdef object record
        while True:
            if self.is_open and not self.interrupted and self.index_ < len(self.records):
                record = self.records[self.index_]
                self.index_ += 1
                return record
            self.refill()
