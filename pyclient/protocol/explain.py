"""Says what is wrong with bytes or values that a compiled codec refused.

Walks the same schema field by field, slowly, keeping the path and the offset, and returns the
`ProtocolError` to raise. Runs only after a failure.
"""

import struct
from typing import Any, NoReturn

from pyclient.errors import ProtocolError
from pyclient.protocol.primitives import (
    BOOL,
    BYTES,
    RECORDS,
    STRING,
    UUID,
    ArrayType,
    StructType,
    WireType,
)
from pyclient.protocol.schema import Field, Message, Struct
from pyclient.protocol.source import minimum_width
from pyclient.varint import decode_uvarint


def decode_failure(
    cls: type[Message], buffer: bytes | memoryview, position: int, version: int, cause: Exception
) -> ProtocolError:
    """The error for bytes that did not decode."""
    if isinstance(cause, ProtocolError):
        return cause
    walk = _DecodeWalk(cls, version, memoryview(buffer), position)
    try:
        walk.struct(cls, "")
    except ProtocolError as found:
        return found
    # The walk found nothing wrong, which is a bug here; still raise a clean error.
    return walk.error("", position, f"could not be decoded ({type(cause).__name__}: {cause})")


def encode_failure(message: Message, version: int, cause: Exception) -> ProtocolError:
    """The error for values that did not encode."""
    if isinstance(cause, ProtocolError):
        return cause
    walk = _EncodeWalk(type(message), version)
    try:
        walk.struct(type(message), message, "")
    except ProtocolError as found:
        return found
    return walk.error("", f"could not be encoded ({type(cause).__name__}: {cause})")


def trailing_bytes(cls: type[Message], version: int, position: int, end: int) -> ProtocolError:
    """The error for bytes behind a whole message."""
    return ProtocolError(
        f"{end - position} trailing bytes after the message",
        message_name=cls.__name__,
        version=version,
        offset=position,
    )


def _join(path: str, name: str) -> str:
    return f"{path}.{name}" if path else name


class _DecodeWalk:
    """Reads one message without building it, and raises at the first error."""

    def __init__(self, cls: type[Message], version: int, buffer: memoryview, position: int) -> None:
        self.cls = cls
        self.version = version
        self.buffer = buffer
        self.start = position
        self.position = position

    def error(self, path: str, offset: int, reason: str) -> ProtocolError:
        return ProtocolError(
            reason,
            message_name=self.cls.__name__,
            version=self.version,
            path=path or None,
            offset=offset - self.start,
        )

    def fail(self, path: str, reason: str, offset: int | None = None) -> NoReturn:
        raise self.error(path, self.position if offset is None else offset, reason)

    @property
    def left(self) -> int:
        return len(self.buffer) - self.position

    def flexible(self, one: Field | None = None) -> bool:
        versions = self.cls.flexible if one is None or one.flexible is None else one.flexible
        return self.version in versions

    def take(self, path: str, width: int) -> memoryview:
        if width > self.left:
            self.fail(path, f"truncated: {width} bytes wanted, {self.left} left")
        taken = self.buffer[self.position : self.position + width]
        self.position += width
        return taken

    def uvarint(self, path: str) -> int:
        start = self.position
        try:
            value, self.position = decode_uvarint(self.buffer, start)
        except IndexError:
            self.fail(path, "truncated inside a varint", start)
        except ValueError as error:
            self.fail(path, str(error), start)
        return value

    def struct(self, struct_class: type[Struct], path: str) -> None:
        tagged = {}
        for one in struct_class.fields:
            if self.version in one.tagged:
                tagged[one.tag] = one
            elif self.version in one.versions:
                self.field(one, _join(path, one.name))
        if self.flexible():
            self.tags(tagged, path)

    def field(self, one: Field, path: str) -> None:
        nullable = self.version in one.nullable
        if isinstance(one.type, StructType) and nullable:
            (marker,) = struct.unpack("b", self.take(path, 1))
            # as in `codec`: null is -1, but 0 in a tagged field
            if marker >= (1 if self.version in one.tagged else 0):
                self.struct(one.type.struct, path)
        else:
            self.value(one.type, path, nullable, self.flexible(one))

    def value(self, wire_type: WireType, path: str, nullable: bool, flexible: bool) -> None:
        if wire_type.width:
            self.take(path, wire_type.width)
        elif isinstance(wire_type, StructType):
            self.struct(wire_type.struct, path)
        else:
            self.sized(wire_type, path, nullable, flexible)

    def sized(self, wire_type: WireType, path: str, nullable: bool, flexible: bool) -> None:
        start = self.position
        what = "count" if isinstance(wire_type, ArrayType) else "length"
        if flexible:
            size = self.uvarint(path) - 1
        elif wire_type is STRING:
            (size,) = struct.unpack(">h", self.take(path, 2))
        else:
            (size,) = struct.unpack(">i", self.take(path, 4))
        if size == -1 and nullable:
            return
        if size == -1:
            self.fail(path, "null where this version allows none", start)
        if size < 0:
            self.fail(path, f"negative {what} {size}", start)
        if isinstance(wire_type, ArrayType):
            least = max(1, minimum_width(wire_type.element, self.version, flexible))
            if size * least > self.left:
                self.fail(path, f"count {size} is more than the {self.left} bytes left", start)
            for index in range(size):
                self.value(wire_type.element, f"{path}[{index}]", False, flexible)
            return
        if size > self.left:
            self.fail(path, f"length {size} is more than the {self.left} bytes left", start)
        content = self.take(path, size)
        if wire_type is STRING:
            try:
                str(content, "utf-8")
            except UnicodeDecodeError as error:
                begin = self.position - size
                self.fail(path, f"invalid UTF-8: {error.reason}", begin + error.start)

    def tags(self, tagged: dict[int | None, Field], path: str) -> None:
        last = -1
        for _ in range(self.uvarint(_join(path, "tagged fields"))):
            start = self.position
            tag = self.uvarint(_join(path, "tagged fields"))
            here = _join(path, tagged[tag].name if tag in tagged else f"tag {tag}")
            if tag <= last:
                self.fail(here, f"tag {tag} after tag {last}: tags must rise", start)
            last = tag
            size = self.uvarint(here)
            if size > self.left:
                self.fail(here, f"length {size} is more than the {self.left} bytes left", start)
            end = self.position + size
            if tag in tagged:
                self.field(tagged[tag], here)
                if self.position != end:
                    self.fail(here, f"takes {self.position - end + size} bytes, not {size}", start)
            self.position = end


class _EncodeWalk:
    """Checks every value against its field."""

    def __init__(self, cls: type[Message], version: int) -> None:
        self.cls = cls
        self.version = version

    def error(self, path: str, reason: str) -> ProtocolError:
        return ProtocolError(
            reason, message_name=self.cls.__name__, version=self.version, path=path or None
        )

    def fail(self, path: str, reason: str) -> NoReturn:
        raise self.error(path, reason)

    def struct(self, struct_class: type[Struct], value: Any, path: str) -> None:
        if not isinstance(value, struct_class):
            self.fail(path, f"wants {struct_class.__name__}, not {_describe(value)}")
        for one in struct_class.fields:
            here, held = _join(path, one.name), getattr(value, one.name)
            flexible = self.version in self.cls.flexible
            carried = self.version in one.versions and (self.version not in one.tagged or flexible)
            if carried:
                self.value(one.type, held, here, self.version in one.nullable)
            elif not one.ignorable and held != one.fresh_default():
                self.fail(here, f"{_describe(held)} can't be sent: not in this version")
        if value.unknown_tagged_fields and self.version not in self.cls.flexible:
            self.fail(
                _join(path, "unknown_tagged_fields"),
                f"{dict(value.unknown_tagged_fields)} can't be sent: this version has no tags",
            )
        for tag, content in value.unknown_tagged_fields.items():
            if not isinstance(tag, int) or not isinstance(content, bytes):
                self.fail(_join(path, "unknown_tagged_fields"), "wants int to bytes")
            if not 0 <= tag <= 0xFFFFFFFF:
                self.fail(_join(path, "unknown_tagged_fields"), f"{tag} can't be a tag")

    def value(self, wire_type: WireType, value: Any, path: str, nullable: bool) -> None:
        if value is None and nullable:
            return
        if value is None:
            self.fail(path, "None where this version allows none")
        if isinstance(wire_type, StructType):
            self.struct(wire_type.struct, value, path)
        elif isinstance(wire_type, ArrayType):
            if not isinstance(value, list | tuple):
                self.fail(path, f"wants a list, not {_describe(value)}")
            for index, item in enumerate(value):
                self.value(wire_type.element, item, f"{path}[{index}]", nullable=False)
        elif wire_type is STRING:
            self.string(value, path)
        elif wire_type is BYTES:
            if not isinstance(value, bytes | bytearray | memoryview):
                self.fail(path, f"wants bytes, not {_describe(value)}")
        elif wire_type is RECORDS:
            for piece in value if isinstance(value, list | tuple) else (value,):
                if not isinstance(piece, bytes | bytearray) and not hasattr(piece, "nbytes"):
                    self.fail(path, f"wants bytes or pieces of bytes, not {_describe(piece)}")
        else:
            self.fixed(wire_type, value, path)

    def string(self, value: Any, path: str) -> None:
        if not isinstance(value, str):
            self.fail(path, f"wants str, not {_describe(value)}")
        try:
            size = len(value.encode())
        except UnicodeEncodeError as error:
            self.fail(path, f"can't be UTF-8: {error.reason}")
        if size > 0x7FFF:
            self.fail(path, f"{size} bytes of UTF-8, 32767 at most")

    def fixed(self, wire_type: WireType, value: Any, path: str) -> None:
        if wire_type is BOOL:
            if not isinstance(value, bool):
                self.fail(path, f"wants bool, not {_describe(value)}")
        elif wire_type is UUID:
            if not isinstance(value, bytes) or len(value) != 16:
                self.fail(path, f"wants 16 bytes, not {_describe(value)}")
        elif wire_type.code == "d":
            if not isinstance(value, float | int):
                self.fail(path, f"wants float, not {_describe(value)}")
        elif not hasattr(value, "__index__"):
            self.fail(path, f"wants int, not {_describe(value)}")
        else:
            try:
                struct.pack(">" + wire_type.code, value)
            except struct.error:
                self.fail(path, f"{value} is out of range for {wire_type.name}")


def _describe(value: Any) -> str:
    text = repr(value)
    return f"{type(value).__name__} {text if len(text) <= 40 else text[:37] + '...'}"
