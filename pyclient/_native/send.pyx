# cython: language_level=3, boundscheck=False, wraparound=False, cdivision=True
# cython: binding=False, embedsignature=True, embedsignature.format=clinic
"""The native twin of `pyclient._pure.send`: what `send` does for an ordinary record, in C.

An ordinary record has bytes (or None) as key and value and no headers, and goes to a topic whose
partition has an open batch with room. Everything else is handed to the slow path, in Python.

No lock is taken: between the look at the slot and the end of the append nothing calls into Python,
so under the GIL no other thread can seal the batch in between. Hence the future is made first.
"""

import cython

from cpython.bytes cimport PyBytes_AS_STRING, PyBytes_GET_SIZE
from cpython.dict cimport PyDict_GetItem
from cpython.long cimport PyLong_AsLongAndOverflow
from cpython.object cimport PyObject
from libc.stdint cimport int32_t, int64_t, uint8_t

from pyclient._native.batch cimport BatchBuilder, partition_of

from pyclient.clock import SystemClock

cdef extern from "time.h" nogil:
    cdef struct timespec:
        long tv_sec
        long tv_nsec
    int CLOCK_REALTIME
    int clock_gettime(int clock, timespec *time)

cdef extern from *:
    """
    static PyObject *pyclient_new(PyObject *cls) {
        static PyObject *no_arguments = NULL;
        if (no_arguments == NULL && (no_arguments = PyTuple_New(0)) == NULL) return NULL;
        return ((PyTypeObject *)cls)->tp_new((PyTypeObject *)cls, no_arguments, NULL);
    }
    """
    object pyclient_new(object cls)

cdef const uint8_t *NO_HEADERS = b"\0"


@cython.final
cdef class AppendSlot:
    """Where the next record of a partition goes: its open batch, if there is one.

    Changed under the accumulator's lock; read, and appended to, without.
    """

    cdef readonly BatchBuilder builder
    cdef readonly object result

    def open(self, BatchBuilder builder not None, result) -> None:
        """Append to this batch from now on; its records' outcome is `result`."""
        self.result = result
        self.builder = builder

    def close(self) -> None:
        """There is no open batch."""
        self.builder = None
        self.result = None


@cython.final
cdef class TopicSlots:
    """The slots of a topic's partitions.

    Attributes:
        partition_count: keys are spread over this many; there may be more slots.
        sticky: the slot for records without a key.
    """

    cdef readonly list slots
    cdef public Py_ssize_t partition_count
    cdef public AppendSlot sticky

    def __cinit__(self):
        self.slots = []

    def add(self, AppendSlot slot not None) -> None:
        """One more partition."""
        self.slots.append(slot)


# Outside of the cyclic garbage collector: programs keep millions of futures, and a future refers to
# nothing that refers back once its outcome is known.
@cython.no_gc
cdef class RecordFuture:
    """A record's place in a batch, and what its `RecordMetadata` needs besides the outcome."""

    cdef readonly object batch_result
    cdef readonly int32_t batch_index
    cdef readonly int64_t timestamp_ms
    cdef readonly Py_ssize_t key_size
    cdef readonly Py_ssize_t value_size
    cdef readonly Py_ssize_t headers_size

    def __init__(
        self, batch_result, int32_t batch_index, int64_t timestamp_ms, Py_ssize_t key_size=-1,
        Py_ssize_t value_size=-1, Py_ssize_t headers_size=-1,
    ):
        self.batch_result = batch_result
        self.batch_index = batch_index
        self.timestamp_ms = timestamp_ms
        self.key_size = key_size
        self.value_size = value_size
        self.headers_size = headers_size


cdef inline int64_t wall_clock_ms() noexcept nogil:
    cdef timespec now
    clock_gettime(CLOCK_REALTIME, &now)
    return <int64_t>now.tv_sec * 1000 + now.tv_nsec // 1000000


cdef class FastSend:
    """`send` of a producer, which derives from this; `slow_send` does what is not ordinary.

    A base class and not a part: `producer.send` is one call into C, and keeps the producer alive.
    """

    cdef dict topics  # TopicSlots by name; one that the producer may not send to is not there
    cdef object clock
    cdef object slow_send
    cdef type future_class
    cdef bint is_system_clock

    @classmethod
    def __class_getitem__(cls, _future_class):
        """`FastSend[...]`: the class of its futures is for type checkers only."""
        return cls

    def _set_up_send(self, dict topics, clock, slow_send, type future_class not None):
        """Send records; all of them by `slow_send` if `topics` is None."""
        if not issubclass(future_class, RecordFuture):
            raise TypeError(f"{future_class.__name__} is not a native RecordFuture")
        self.topics = topics
        self.clock = clock
        self.slow_send = slow_send
        self.future_class = future_class
        self.is_system_clock = type(clock) is SystemClock

    def send(
        self, topic, value=None, key=None, headers=None, partition=None, timestamp_ms=None,
    ):
        """Publish a record: hand it over to be sent, in the background, with others.

        Blocks only while the topic's metadata is not known or the buffer is full, at most
        `max_block_ms`. In a callback it never blocks; the future fails instead.

        Args:
            topic: where to.
            value: bytes, or what `value_serializer` takes; None marks a key as deleted.
            key: bytes, or what `key_serializer` takes. Records with equal keys go to the same
                partition.
            headers: a list of (str, bytes) tuples.
            partition: by default the partitioner chooses.
            timestamp_ms: milliseconds since 1970; by default now.

        Returns:
            A future of the record's `RecordMetadata`.

        Raises:
            KafkaTimeoutError: no metadata or no memory within `max_block_ms`; says why.
            RecordTooLargeError: the record is larger than `max_request_size` or `buffer_memory`.
            IllegalStateError: the producer is closed, or this is a forked child.
            TypeError: key or value are not bytes after serialization; headers are malformed;
                topic, partition or timestamp are of another type.
            ValueError: neither key nor value; no such partition; not a topic's name; a timestamp
                below 0.
        """
        cdef RecordFuture future
        cdef TopicSlots slots
        cdef AppendSlot slot
        cdef PyObject *found
        cdef const uint8_t *key_data = NULL
        cdef const uint8_t *value_data = NULL
        cdef Py_ssize_t key_size = -1, value_size = -1, number, wanted = -1
        cdef int64_t timestamp
        cdef int overflow = 0
        if (
            self.topics is None or headers is not None or timestamp_ms is not None
            or type(topic) is not str
        ):
            return self.slow_send(topic, value, key, headers, partition, timestamp_ms)
        if partition is not None:
            if type(partition) is int:
                wanted = PyLong_AsLongAndOverflow(partition, &overflow)
            if wanted < 0:
                return self.slow_send(topic, value, key, headers, partition, timestamp_ms)
        if type(value) is bytes:
            value_data = <const uint8_t *>PyBytes_AS_STRING(value)
            value_size = PyBytes_GET_SIZE(value)
        elif value is not None or key is None:
            return self.slow_send(topic, value, key, headers, partition, timestamp_ms)
        if type(key) is bytes:
            key_data = <const uint8_t *>PyBytes_AS_STRING(key)
            key_size = PyBytes_GET_SIZE(key)
        elif key is not None:
            return self.slow_send(topic, value, key, headers, partition, timestamp_ms)
        timestamp = wall_clock_ms() if self.is_system_clock else self.clock.now_ms()
        future = <RecordFuture>pyclient_new(self.future_class)
        # From here on nothing may call into Python before the append is done. (A str's hash and
        # comparison do not.)
        found = PyDict_GetItem(self.topics, topic)
        if found is not NULL and type(<object>found) is TopicSlots:
            slots = <TopicSlots>found
            slot = None
            if wanted >= 0:
                if wanted < slots.partition_count:
                    slot = <AppendSlot>slots.slots[wanted]
            elif key_size < 0:
                slot = slots.sticky
            elif slots.partition_count > 0:
                number = partition_of(key_data, key_size, slots.partition_count)
                slot = <AppendSlot>slots.slots[number]
            if slot is not None and slot.builder is not None:
                number = slot.builder.try_append_c(
                    timestamp, key_data, key_size, value_data, value_size, NO_HEADERS, 1)
                if number >= 0:
                    future.batch_result = slot.result
                    future.batch_index = <int32_t>number
                    future.timestamp_ms = timestamp
                    future.key_size = key_size
                    future.value_size = value_size
                    future.headers_size = -1
                    return future
        return self.slow_send(topic, value, key, headers, partition, timestamp)
