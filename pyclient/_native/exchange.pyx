# cython: language_level=3, boundscheck=False, wraparound=False, cdivision=True
# cython: binding=False
"""One turn of the I/O thread in C: write, wait, and read whole frames in one release of the GIL.

`exchange.h` has the turn itself, this module what Python sees of it. `pyclient.net.poller` and
`transport` do the same in Python, for TLS and where there is no compiler. Used by the I/O thread
only, except for `Exchange.wake`. Importing it on a free-threaded build turns the GIL back on.
"""

import cython
import math
import os

from cpython.buffer cimport PyBUF_SIMPLE, PyBuffer_FillInfo, PyBuffer_Release, PyObject_GetBuffer
from cpython.exc cimport PyErr_CheckSignals
from cpython.mem cimport PyMem_Free, PyMem_Realloc
from cpython.object cimport PyObject
from cpython.ref cimport Py_DECREF, Py_INCREF
from libc.stdint cimport int32_t, int64_t, uint8_t
from libc.stdlib cimport calloc, free, malloc

from pyclient._native.batch cimport io_waiters

cdef extern from "exchange.h" nogil:
    cdef enum:
        SCRATCH_BYTES
        STREAM_FINE
        STREAM_ENDED
        STREAM_BAD_LENGTH
        STREAM_NO_MEMORY
    struct block:
        size_t capacity
        uint8_t *data
    struct frame:
        block *block
        size_t size
    struct stream:
        int fd
        int error
        int32_t bad_length
        uint8_t is_connecting
        uint8_t has_news
        void *owner
        size_t first_part
        size_t end_part
        size_t limit
        frame *frames
        size_t frame_count
    struct wakeup:
        int receiver
        int sender
    struct turn:
        wakeup wakeup
        stream **streams
        void *waits
        size_t count
        uint8_t *scratch
    void block_give_back(block *block)
    int stream_queue(stream *stream, void *data, size_t size)
    void stream_clear(stream *stream)
    void wakeup_ring(wakeup *wakeup)
    int64_t turn_now_ns()
    int turn_add(turn *turn, stream *stream)
    void turn_remove(turn *turn, stream *stream)
    int turn_run(turn *turn, int64_t until_ns)

cdef extern from *:
    """
    #define WAITERS_ADD(word, count) __atomic_add_fetch((word), (count), __ATOMIC_SEQ_CST)
    #define WAITERS_CLEAR(word) __atomic_store_n((word), 0, __ATOMIC_SEQ_CST)
    """
    void WAITERS_ADD(int *word, int count) nogil
    void WAITERS_CLEAR(int *word) nogil

cdef double MAX_WAIT_MS = 1e12


def _forget_waiters():
    """A forked child has no I/O thread that waits for the GIL."""
    WAITERS_CLEAR(io_waiters())


if hasattr(os, "register_at_fork"):  # not on Windows, which cannot fork
    os.register_at_fork(after_in_child=_forget_waiters)


@cython.final
cdef class Frame:
    """The bytes of one frame; its memory is used again when nothing refers to it."""

    cdef block *block
    cdef Py_ssize_t size

    def __dealloc__(self):
        block_give_back(self.block)

    def __getbuffer__(self, Py_buffer *view, int flags):
        PyBuffer_FillInfo(view, self, self.block.data, self.size, 1, flags)


@cython.final
cdef class ExchangeTransport:
    """A plaintext connection; see `Transport` in `pyclient.net.poller`."""

    cdef public object owner
    cdef public object error
    cdef public bint connected
    cdef readonly Py_ssize_t parts_sent
    cdef Exchange exchange
    cdef object socket
    cdef stream *stream
    cdef list frames
    # The exported buffers of the parts that are not written, from `view_first` on.
    cdef Py_buffer *views
    cdef Py_ssize_t view_first, view_end, view_capacity
    cdef Py_ssize_t parts_queued

    def __cinit__(self):
        self.frames = []

    @property
    def secured(self):
        """Without TLS there is nothing to secure."""
        return True

    def send(self, parts) -> int:
        """Queue parts for the next turn, and tell how many were ever queued."""
        for part in parts:
            self.queue(part)
        return self.parts_queued

    cdef int queue(self, part) except -1:
        cdef Py_buffer *view
        cdef Py_buffer *larger
        self.parts_queued += 1
        if self.stream is NULL:
            return 0
        if self.view_first == self.view_end:
            self.view_first = self.view_end = 0
        if self.view_end == self.view_capacity:
            larger = <Py_buffer *>PyMem_Realloc(
                self.views, max(16, 2 * self.view_capacity) * sizeof(Py_buffer))
            if larger is NULL:
                raise MemoryError
            self.views = larger
            self.view_capacity = max(16, 2 * self.view_capacity)
        view = &self.views[self.view_end]
        PyObject_GetBuffer(part, view, PyBUF_SIMPLE)
        if stream_queue(self.stream, view.buf, view.len) < 0:
            PyBuffer_Release(view)
            raise MemoryError
        self.view_end += 1
        return 0

    def take_frames(self) -> list:
        """The frames that have arrived since the last call."""
        frames = self.frames
        self.frames = []
        return frames

    def close(self) -> None:
        """Let go of the socket and of all queued parts."""
        if self.stream is not NULL:
            self.exchange.forget(self)
            self.release_parts(self.view_end)
            stream_clear(self.stream)
            free(self.stream)
            self.stream = NULL
            self.socket.close()

    def __dealloc__(self):
        # An exchange refers to its transports, so this one was forgotten already.
        self.release_parts(self.view_end)
        PyMem_Free(self.views)
        if self.stream is not NULL:
            stream_clear(self.stream)
            free(self.stream)

    cdef void release_parts(self, Py_ssize_t end) noexcept:
        while self.view_first < end:
            self.view_first += 1
            PyBuffer_Release(&self.views[self.view_first - 1])

    cdef int report(self) except -1:
        """Bring to Python what the turn has done."""
        cdef stream *one = self.stream
        cdef Py_ssize_t written = self.view_end - <Py_ssize_t>(one.end_part - one.first_part)
        cdef size_t index
        cdef Frame frame
        self.parts_sent += written - self.view_first
        self.release_parts(written)
        if not one.has_news:
            return 0
        one.has_news = False
        for index in range(one.frame_count):
            frame = Frame.__new__(Frame)
            frame.block = one.frames[index].block
            frame.size = one.frames[index].size
            one.frames[index].block = NULL
            self.frames.append(memoryview(frame))
        one.frame_count = 0
        if not self.connected and not one.is_connecting and one.error == STREAM_FINE:
            self.connected = True
        if one.error != STREAM_FINE and self.error is None:
            self.error = self.exchange.error_of(one)
        return 1


@cython.final
cdef class Exchange:
    """All plaintext connections of a client."""

    cdef turn state
    cdef Py_ssize_t limit_bytes
    cdef object bad_length
    cdef object receiver, sender
    cdef dict transports
    cdef list failed_at_once

    def __cinit__(self, receiver, sender, Py_ssize_t limit_bytes, bad_length):
        """`receiver` and `sender` are a pair of sockets for wake-ups; this object closes them.

        `bad_length(length, limit_bytes)` makes the error for a frame that cannot be one.
        """
        self.receiver, self.sender = receiver, sender
        self.limit_bytes = limit_bytes
        self.bad_length = bad_length
        self.transports = {}
        self.failed_at_once = []
        self.state.wakeup.receiver = receiver.fileno()
        self.state.wakeup.sender = sender.fileno()
        self.state.scratch = <uint8_t *>malloc(SCRATCH_BYTES)
        self.state.waits = malloc(64)  # of the wake-up alone; more by `turn_add`
        if self.state.scratch is NULL or self.state.waits is NULL:
            raise MemoryError

    def __dealloc__(self):
        free(self.state.scratch)
        free(self.state.waits)
        free(self.state.streams)

    def add(self, socket, owner) -> ExchangeTransport:
        """A transport for a socket that is connecting."""
        cdef ExchangeTransport transport = ExchangeTransport.__new__(ExchangeTransport)
        transport.owner = owner
        transport.exchange = self
        transport.socket = socket
        cdef stream *new = <stream *>calloc(1, sizeof(stream))
        if new is NULL:
            raise MemoryError
        transport.stream = new
        new.fd = socket.fileno()
        new.is_connecting = True
        new.limit = self.limit_bytes
        new.owner = <void *>transport
        if turn_add(&self.state, new) < 0:
            raise MemoryError
        self.transports[id(transport)] = transport
        return transport

    def add_failed(self, error, owner) -> ExchangeTransport:
        """A transport that has failed already, as the next turn tells."""
        cdef ExchangeTransport transport = ExchangeTransport.__new__(ExchangeTransport)
        transport.owner = owner
        transport.exchange = self
        transport.error = error
        self.failed_at_once.append(transport)
        return transport

    cdef forget(self, ExchangeTransport transport):
        turn_remove(&self.state, transport.stream)
        self.transports.pop(id(transport), None)

    def turn(self, double timeout_ms) -> list:
        """Write, wait for at most `timeout_ms`, read; the transports that have news.

        A signal may end it early, without news.
        """
        cdef ExchangeTransport transport
        cdef int64_t until_ns
        cdef int *waiters = io_waiters()
        cdef int is_cut_off
        cdef size_t index
        if self.failed_at_once or not timeout_ms > 0:
            until_ns = 0
        elif timeout_ms > MAX_WAIT_MS:
            until_ns = -1
        else:
            until_ns = turn_now_ns() + <int64_t>(timeout_ms * 1e6) + 1
        with nogil:
            is_cut_off = turn_run(&self.state, until_ns)
            WAITERS_ADD(waiters, 1)
        WAITERS_ADD(waiters, -1)
        if is_cut_off:
            PyErr_CheckSignals()  # if that raises, the next turn has the news
        news = self.failed_at_once
        self.failed_at_once = []
        for index in range(self.state.count):
            transport = <ExchangeTransport>self.state.streams[index].owner
            if transport.report():
                news.append(transport)
        return news

    cdef object error_of(self, stream *failed):
        if failed.error == STREAM_ENDED:
            return EOFError("the other side closed the connection")
        if failed.error == STREAM_BAD_LENGTH:
            return self.bad_length(failed.bad_length, self.limit_bytes)
        if failed.error == STREAM_NO_MEMORY:
            return OSError("there is no memory for a frame")
        return OSError(failed.error, os.strerror(failed.error))

    def wake(self) -> None:
        """End the current turn, or the next one if none is under way. Any thread."""
        wakeup_ring(&self.state.wakeup)

    def close(self) -> None:
        """Close the wake-up sockets; the transports are closed already."""
        self.state.wakeup.sender = -1
        self.sender.close()
        self.receiver.close()
