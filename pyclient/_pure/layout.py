"""The encoding of one record, and its size."""

from collections.abc import Iterable

from pyclient._pure.checksums import Buffer
from pyclient._pure.wire import VARINTS
from pyclient.records.header import HEADER_SIZE

Headers = Iterable[tuple[str, Buffer | None]]


def batch_size_of(key: Buffer | None, value: Buffer | None, headers: Headers = ()) -> int:
    """The exact size of an uncompressed batch that holds this one record."""
    return HEADER_SIZE + record_size(0, 0, key, value, headers)


def encode_headers(headers: Headers) -> bytes:
    """The header section of a record: a count, then names and values."""
    pairs = list(headers)
    pieces = [VARINTS[len(pairs)]]
    for key, value in pairs:
        if not isinstance(key, str):
            raise TypeError(f"a header's name is a str, not {type(key).__name__}")
        name = key.encode()
        pieces += (VARINTS[len(name)], name, *sized(value))
    return b"".join(pieces)


def record_size(
    timestamp_delta: int,
    offset_delta: int,
    key: Buffer | None,
    value: Buffer | None,
    headers: Headers,
) -> int:
    body = 1 + len(VARINTS[timestamp_delta]) + len(VARINTS[offset_delta])
    for content in (key, value):
        size, data = sized(content)
        body += len(size) + len(data)
    body += len(encode_headers(headers)) if headers else 1
    return len(VARINTS[body]) + body


def sized(content: Buffer | None) -> tuple[bytes, bytes]:
    """Length and bytes of a key, value or header value."""
    if content is None:
        return VARINTS[-1], b""
    data = bytes(memoryview(content))  # a memoryview's len() need not be its bytes
    return VARINTS[len(data)], data
