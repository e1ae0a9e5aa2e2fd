# The bytes of one record, and how many they are.

cdef enum:
    HEADER_SIZE = 61  # of a batch

cdef const uint8_t *NO_HEADERS = <const uint8_t *>b"\0"


cdef inline Py_ssize_t size_of_bytes(Py_ssize_t size) noexcept nogil:
    return wire_varint_size(size) + (size if size > 0 else 0)


cdef inline uint8_t *put_bytes(uint8_t *at, const uint8_t *data, Py_ssize_t size) noexcept nogil:
    at = wire_put_varint(at, size)
    if size > 0:
        wire_copy(at, data, size)
        at += size
    return at


cdef inline Py_ssize_t record_body_size(
    int64_t timestamp_delta, int64_t offset_delta, Py_ssize_t key_size, Py_ssize_t value_size,
    Py_ssize_t headers_size,
) noexcept nogil:
    return (
        1 + wire_varint_size(timestamp_delta) + wire_varint_size(offset_delta)
        + size_of_bytes(key_size) + size_of_bytes(value_size) + headers_size
    )


def encode_headers(headers) -> bytes:
    """The header section of a record: a count, then names and values."""
    cdef bytes name
    cdef bytes content
    cdef uint8_t number[10]
    pieces = []
    pairs = list(headers)
    pieces.append((<char *>number)[:wire_put_varint(number, len(pairs)) - number])
    for key, value in pairs:
        if not isinstance(key, str):
            raise TypeError(f"a header's name is a str, not {type(key).__name__}")
        name = key.encode()
        pieces.append((<char *>number)[:wire_put_varint(number, len(name)) - number])
        pieces.append(name)
        if value is None:
            pieces.append(b"\x01")
        else:
            content = bytes(memoryview(value))
            pieces.append((<char *>number)[:wire_put_varint(number, len(content)) - number])
            pieces.append(content)
    return b"".join(pieces)


def batch_size_of(key, value, headers=()) -> int:
    """The exact size of an uncompressed batch that holds this one record."""
    cdef const uint8_t *data
    cdef Py_ssize_t key_size, value_size, body
    keep_key = open_payload(key, &data, &key_size)
    keep_value = open_payload(value, &data, &value_size)
    body = record_body_size(
        0, 0, key_size, value_size, len(encode_headers(headers)) if headers else 1)
    return HEADER_SIZE + wire_varint_size(body) + body

# Where the fields of a v2 batch's header lie.
cdef enum:
    LENGTH_AT = 8
    AFTER_LENGTH = 12
    LEADER_EPOCH_AT = 12
    MAGIC_AT = 16
    CRC_AT = 17
    CRC_FROM = 21
    ATTRIBUTES_AT = 21
    LAST_OFFSET_DELTA_AT = 23
    BASE_TIMESTAMP_AT = 27
    MAX_TIMESTAMP_AT = 35
    PRODUCER_ID_AT = 43
    PRODUCER_EPOCH_AT = 51
    BASE_SEQUENCE_AT = 53
    RECORD_COUNT_AT = 57
