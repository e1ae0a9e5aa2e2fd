# A consumed record: an immutable row of thirteen fields that behaves as a named tuple.
#
# The common record holds only str, bytes and integers, can be part of no reference cycle and so
# stays outside the cyclic garbage collector: that makes it four times as cheap. A record with a
# deserialized key or value may be part of one, and is a `DeserializedRecord`, which is tracked.

import sys

from cpython.object cimport PyObject, PyObject_RichCompare, PyTypeObject, newfunc

cdef extern from *:
    """
    /* `ConsumerRecord(...)` answers with one of two classes, and Cython has no `__new__` to write.
     * For the same reason the class takes no subclasses: they would get a plain record back. */
    static void record_construct_by(PyTypeObject *type, newfunc construct) {
        type->tp_new = construct;
        type->tp_vectorcall = NULL;
        type->tp_flags &= ~Py_TPFLAGS_BASETYPE;
        PyType_Modified(type);
    }
    """
    void record_construct_by(PyTypeObject *type, newfunc construct)

cdef tuple RECORD_FIELDS = (
    "topic", "partition", "leader_epoch", "offset", "timestamp", "timestamp_type", "key", "value",
    "headers", "checksum", "serialized_key_size", "serialized_value_size",
    "serialized_header_size",
)


# What `_replace` of a named tuple raises in the running Python.
cdef object UNEXPECTED_FIELDS = TypeError if sys.version_info >= (3, 13) else ValueError


@cython.no_gc
cdef class ConsumerRecord:
    """A record read from a partition: kafka-python's thirteen fields, as a named tuple has them.

    `headers` is a list of (str, bytes or None), made when asked for. `checksum` is None but for
    the legacy formats. A size is -1 where the record has no key, value or headers.
    """

    _fields = RECORD_FIELDS
    _field_defaults = {}
    __match_args__ = RECORD_FIELDS

    @property
    def topic(self):
        """The topic."""
        return self.topic_

    @property
    def partition(self):
        """The partition's number."""
        return self.partition_

    @property
    def leader_epoch(self):
        """The epoch of the leader that took the record, -1 if unknown."""
        return self.leader_epoch_

    @property
    def offset(self):
        """The record's place in its partition."""
        return self.offset_

    @property
    def timestamp(self):
        """Milliseconds since 1970, -1 if the record has none."""
        return self.timestamp_

    @property
    def timestamp_type(self):
        """0: the producer set the timestamp; 1: the broker did; -1: the record has none."""
        return self.timestamp_type_

    @property
    def key(self):
        """The key: bytes, None, or what the deserializer made of it."""
        return key_of(self)

    @property
    def value(self):
        """The value: bytes, None (a tombstone), or what the deserializer made of it."""
        return value_of(self)

    @property
    def headers(self):
        """The headers as a list of (name, bytes or None)."""
        return list(self.header_pairs)

    @property
    def checksum(self):
        """The record's own CRC in the legacy formats, else None."""
        return None if self.checksum_ < 0 else self.checksum_

    @property
    def serialized_key_size(self):
        """Bytes of the key on the wire, -1 without one."""
        return self.key_size

    @property
    def serialized_value_size(self):
        """Bytes of the value on the wire, -1 without one."""
        return self.value_size

    @property
    def serialized_header_size(self):
        """Bytes of header names and values, -1 without headers."""
        return self.header_size

    def __len__(self):
        return 13

    def __getitem__(self, index):
        return fields_of(self)[index]

    def __iter__(self):
        return iter(fields_of(self))

    def __contains__(self, item):
        return item in fields_of(self)

    def __richcmp__(self, other, int operator):
        if isinstance(other, ConsumerRecord):
            other = fields_of(<ConsumerRecord>other)
        elif not isinstance(other, tuple):
            return NotImplemented
        return PyObject_RichCompare(fields_of(self), other, operator)

    def __hash__(self):
        fields = fields_of(self)
        return hash(fields[:8] + (self.header_pairs,) + fields[9:])

    def __repr__(self):
        pairs = zip(RECORD_FIELDS, fields_of(self))
        return f"ConsumerRecord({', '.join([f'{name}={value!r}' for name, value in pairs])})"

    def __reduce__(self):
        from pyclient.records.record import restore_record

        return restore_record, fields_of(self)

    def count(self, item):
        """How many fields equal `item`."""
        return fields_of(self).count(item)

    def index(self, item, *bounds):
        """The first field that equals `item`."""
        return fields_of(self).index(item, *bounds)

    def _asdict(self):
        return dict(zip(RECORD_FIELDS, fields_of(self)))

    def _replace(self, **changes):
        fields = [changes.pop(name, old) for name, old in zip(RECORD_FIELDS, fields_of(self))]
        if changes:
            raise UNEXPECTED_FIELDS(f"Got unexpected field names: {list(changes)!r}")
        return make_record(*fields)

    def __replace__(self, **changes):  # for `copy.replace`, new in Python 3.13
        return self._replace(**changes)

    @classmethod
    def _make(cls, fields):
        return make_record(*fields)


@cython.final
cdef class DeserializedRecord(ConsumerRecord):
    """A record whose key or value came out of a deserializer."""

    cdef object key_
    cdef object value_


# Functions and not methods: a table of methods would be one more field of every record.

cdef inline object key_of(ConsumerRecord record):
    if type(record) is DeserializedRecord:
        return (<DeserializedRecord>record).key_
    return record.plain_key


cdef inline object value_of(ConsumerRecord record):
    if type(record) is DeserializedRecord:
        return (<DeserializedRecord>record).value_
    return record.plain_value


cdef tuple fields_of(ConsumerRecord record):
    return (
        record.topic_, record.partition_, record.leader_epoch_, record.offset_, record.timestamp_,
        record.timestamp_type_, key_of(record), value_of(record), list(record.header_pairs),
        None if record.checksum_ < 0 else record.checksum_,
        record.key_size, record.value_size, record.header_size,
    )


def make_record(
    topic, partition, leader_epoch, offset, timestamp, timestamp_type, key, value, headers,
    checksum, serialized_key_size, serialized_value_size, serialized_header_size,
):
    cdef ConsumerRecord record
    cdef DeserializedRecord deserialized_record
    if (key is None or type(key) is bytes) and (value is None or type(value) is bytes):
        record = ConsumerRecord.__new__(ConsumerRecord)
        record.plain_key = key
        record.plain_value = value
    else:
        record = deserialized_record = DeserializedRecord.__new__(DeserializedRecord)
        deserialized_record.key_ = key
        deserialized_record.value_ = value
    record.topic_ = topic
    record.partition_ = partition
    record.leader_epoch_ = leader_epoch
    record.offset_ = offset
    record.timestamp_ = timestamp
    record.timestamp_type_ = timestamp_type
    record.header_pairs = tuple([(name, content) for name, content in headers])
    record.checksum_ = -1 if checksum is None else checksum
    record.key_size = serialized_key_size
    record.value_size = serialized_value_size
    record.header_size = serialized_header_size
    return record


def deserialized(ConsumerRecord record not None, key, value):
    """`record` with `key` and `value` in the place of its own; the serialized sizes stay."""
    cdef DeserializedRecord copy = DeserializedRecord.__new__(DeserializedRecord)
    copy.key_ = key
    copy.value_ = value
    copy.topic_ = record.topic_
    copy.partition_ = record.partition_
    copy.leader_epoch_ = record.leader_epoch_
    copy.offset_ = record.offset_
    copy.timestamp_ = record.timestamp_
    copy.timestamp_type_ = record.timestamp_type_
    copy.header_pairs = record.header_pairs
    copy.checksum_ = record.checksum_
    copy.key_size = record.key_size
    copy.value_size = record.value_size
    copy.header_size = record.header_size
    return copy


cdef object construct_record(type cls, object positional, PyObject *named):
    return make_record(*positional, **(<dict>named if named is not NULL else {}))


record_construct_by(<PyTypeObject *>ConsumerRecord, <newfunc>construct_record)
record_construct_by(<PyTypeObject *>DeserializedRecord, <newfunc>construct_record)
