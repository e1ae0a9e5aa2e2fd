"""The wire types that fields are declared with.

Each type knows its zero value and, when its width is fixed, its `struct` code. Everything
else about encoding is in `codec` (compiled) and `explain` (interpreted, for error messages).
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import TYPE_CHECKING, Any, Final, Protocol, TypeAlias

if TYPE_CHECKING:
    from pyclient.protocol.schema import Struct

Buffer: TypeAlias = bytes | bytearray | memoryview

# 16 raw bytes, such as a topic id. A `uuid.UUID` takes a microsecond to build and would be used
# only for display; `pyclient.types` formats the bytes.
Uuid: TypeAlias = bytes
ZERO_UUID: Final[Uuid] = bytes(16)


class FileRange(Protocol):
    """Record bytes in a file, which the socket layer sends without reading them."""

    @property
    def nbytes(self) -> int:
        """How many bytes the range holds."""


Part: TypeAlias = Buffer | FileRange
# The value of a `records` field: always one memoryview when decoded; to be encoded, also pieces
# that the socket writes without joining them, or a range of a file.
Records: TypeAlias = Buffer | FileRange | Sequence[Buffer]


class WireType:
    """A field type. Compared by identity, printed by name."""

    __slots__ = ("code", "name", "width", "zero")

    def __init__(self, name: str, zero: Any, code: str = "", width: int = 0) -> None:
        self.name = name
        self.zero = zero
        self.code = code
        self.width = width

    def __repr__(self) -> str:
        return self.name


INT8: Final = WireType("int8", 0, "b", 1)
INT16: Final = WireType("int16", 0, "h", 2)
INT32: Final = WireType("int32", 0, "i", 4)
INT64: Final = WireType("int64", 0, "q", 8)
UINT16: Final = WireType("uint16", 0, "H", 2)
UINT32: Final = WireType("uint32", 0, "I", 4)
FLOAT64: Final = WireType("float64", 0.0, "d", 8)
BOOL: Final = WireType("bool", False, "?", 1)
UUID: Final = WireType("uuid", ZERO_UUID, "16s", 16)
STRING: Final = WireType("string", "")
BYTES: Final = WireType("bytes", b"")
RECORDS: Final = WireType("records", None)


class ArrayType(WireType):
    """A list of one element type."""

    __slots__ = ("element",)

    def __init__(self, element: WireType) -> None:
        super().__init__(f"[]{element.name}", None)
        self.element = element


class StructType(WireType):
    """A nested structure. Inline on the wire, with a marker byte in front where nullable."""

    __slots__ = ("struct",)

    def __init__(self, struct: type[Struct]) -> None:
        super().__init__(struct.__name__, None)
        self.struct = struct


class VersionRange:
    """Kafka's notation for versions: `0+`, `3-13`, `12`, `none`."""

    __slots__ = ("highest", "lowest")

    UNBOUNDED = 0x7FFF

    def __init__(self, text: str) -> None:
        low, dash, high = text.partition("-")
        if text == "none":
            self.lowest, self.highest = 0, -1
        elif text.endswith("+"):
            self.lowest, self.highest = int(text[:-1]), self.UNBOUNDED
        else:
            self.lowest, self.highest = int(low), int(high if dash else low)

    def __contains__(self, version: object) -> bool:
        return isinstance(version, int) and self.lowest <= version <= self.highest

    def __iter__(self) -> Any:
        return iter(range(self.lowest, self.highest + 1))

    def __repr__(self) -> str:
        if self.highest < self.lowest:
            return "none"
        if self.highest == self.UNBOUNDED:
            return f"{self.lowest}+"
        return f"{self.lowest}-{self.highest}" if self.highest > self.lowest else f"{self.lowest}"


def part_length(part: Part) -> int:
    """The number of bytes of a part on the wire."""
    return len(part) if isinstance(part, (bytes, bytearray)) else part.nbytes
