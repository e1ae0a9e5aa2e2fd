"""Helps `encoder` and `decoder` to generate source code.

The generated functions are straight-line code: nested structs and arrays are inlined, and runs of
fixed-width fields, with lengths of the old encoding, become one `struct` call. They check only what
keeps them safe, and fail with any exception; then `explain` walks the same bytes or values slowly
and says what is wrong and where. So good error messages cost nothing as long as all goes well.
"""

from collections.abc import Callable, Iterator
from contextlib import contextmanager
from typing import Any

from pyclient.errors import ProtocolError
from pyclient.protocol.primitives import STRING, StructType, WireType
from pyclient.protocol.schema import Field, Message, Struct


class Malformed(Exception):
    """A compiled codec gave up; `explain` finds out why. Never leaves this package."""


def minimum_width(wire_type: WireType, version: int, flexible: bool, nullable: bool = False) -> int:
    """The fewest bytes that a value can take; limits the count of an array before it is read."""
    if wire_type.width:
        return wire_type.width
    if isinstance(wire_type, StructType):
        if nullable:
            return 1  # the marker alone
        fields = [one for one in wire_type.struct.fields if version in one.versions]
        return flexible + sum(
            minimum_width(one.type, version, flexible, version in one.nullable)
            for one in fields
            if version not in one.tagged
        )
    if wire_type is STRING:
        return 1 if flexible else 2
    return 1 if flexible else 4


def format_of_many(code: str, count: int) -> str:
    """The `struct` format of `count` values.

    As a count where one is possible: a repeated code costs `struct` 32 bytes a value, and the
    peer chooses how many there are. A uuid's code has a count of its own.
    """
    return f">{count}{code}" if len(code) == 1 else ">" + code * count


class Source:
    """Lines of a function under construction, with the constants it refers to."""

    def __init__(self, cls: type[Message], version: int) -> None:
        if version not in cls.versions:
            raise ProtocolError(
                f"unknown version: {cls.__name__} has versions {cls.versions}",
                message_name=cls.__name__,
                version=version,
            )
        self.cls = cls
        self.version = version
        self.lines: list[str] = []
        self.indent = 1
        self.scope: dict[str, Any] = {"Malformed": Malformed}
        self._names = 0

    def emit(self, line: str) -> None:
        """Add a line at the present depth."""
        self.lines.append(" " * self.indent + line)

    def name(self, prefix: str = "v") -> str:
        """A local name that is not in use."""
        self._names += 1
        return f"{prefix}{self._names}"

    def constant(self, value: Any, prefix: str = "k") -> str:
        """Bind `value` to a new global name of the function, and return the name."""
        name = self.name(prefix)
        self.scope[name] = value
        return name

    @contextmanager
    def block(self, head: str) -> Iterator[None]:
        """Indent the lines that follow `head`."""
        self.emit(head)
        self.indent += 1
        yield
        self.indent -= 1

    def is_flexible(self, one: Field | None = None) -> bool:
        """Whether lengths are compact: as the field says, or else the message."""
        return self.version in (
            self.cls.flexible if one is None or one.flexible is None else one.flexible
        )

    def is_tagged(self, one: Field | None) -> bool:
        """Whether the field is a tagged field in this version."""
        # Kafka marks a missing struct by -1, but by 0 where the struct is a tagged field.
        return one is not None and self.version in one.tagged

    def inline_fields(self, struct_class: type[Struct]) -> list[Field]:
        """The fields that are not tagged, in their order."""
        return [
            one
            for one in struct_class.fields
            if self.version in one.versions and self.version not in one.tagged
        ]

    def tagged_fields(self, struct_class: type[Struct]) -> list[Field]:
        """The tagged fields, in their order."""
        tagged = [one for one in struct_class.fields if self.version in one.tagged]
        return sorted(tagged, key=lambda one: one.tag or 0)

    def finish(self, head: str) -> Callable[..., Any]:
        """Compile the lines into the function that `head` declares."""
        source = "\n".join([head, *self.lines])
        filename = f"<{self.cls.__name__} v{self.version} {type(self).__name__}>"
        exec(compile(source, filename, "exec"), self.scope)
        function: Callable[..., Any] = self.scope[head[4 : head.index("(")]]
        return function
