"""kcat's format strings: `%t [%p] at %o: %k -> %s\\n`."""

import re
from collections.abc import Callable
from typing import Any, Final

from pyclient.errors import KafkaConfigurationError

Field = Callable[[Any], bytes]

FIELDS: Final[dict[str, tuple[str, Field]]] = {
    "t": ("topic", lambda record: record.topic.encode()),
    "p": ("partition", lambda record: b"%d" % record.partition),
    "o": ("offset", lambda record: b"%d" % record.offset),
    "k": ("key", lambda record: record.key or b""),
    "s": ("value", lambda record: record.value or b""),
    "K": ("key size; -1 for null", lambda record: _size(record.key)),
    "S": ("value size; -1 for null", lambda record: _size(record.value)),
    "R": ("value size, 4 bytes, big endian", lambda record: _framed(record.value)),
    "T": ("timestamp, ms since 1970", lambda record: b"%d" % record.timestamp),
    "h": ("headers, as a=1,b=2", lambda record: _headers(record.headers)),
    "%": ("a percent sign", lambda _record: b"%"),
}
_ESCAPES: Final = {"n": b"\n", "t": b"\t", "r": b"\r", "0": b"\0", "\\": b"\\"}
_TOKEN: Final = re.compile(r"%(.?)|\\(x[0-9a-fA-F]{2}|.)|([^%\\]+)", re.DOTALL)


def compile_format(text: str) -> Callable[[Any], bytes]:
    """A function that formats a record.

    Raises:
        KafkaConfigurationError: the text has a field that does not exist.
    """
    parts: list[Field] = []
    for percent, escape, plain in _TOKEN.findall(text):
        if plain:
            parts.append(_constant(plain.encode()))
        elif escape:
            parts.append(_constant(_unescaped(escape)))
        elif percent in FIELDS:
            parts.append(FIELDS[percent][1])
        else:
            known = ", ".join(f"%{one}" for one in FIELDS)
            raise KafkaConfigurationError(f"the format has no %{percent}; there are {known}")
    return lambda record: b"".join([part(record) for part in parts])


def _constant(text: bytes) -> Field:
    return lambda _record: text


def _unescaped(escape: str) -> bytes:
    if len(escape) == 3:
        return bytes([int(escape[1:], 16)])
    return _ESCAPES.get(escape, escape.encode())


def _size(data: bytes | None) -> bytes:
    return b"-1" if data is None else b"%d" % len(data)


def _framed(data: bytes | None) -> bytes:
    return (-1 if data is None else len(data)).to_bytes(4, "big", signed=True)


def _headers(headers: Any) -> bytes:
    return b",".join(
        name.encode() + b"=" + (b"NULL" if value is None else value) for name, value in headers
    )
