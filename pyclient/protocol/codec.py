"""Compiles a message's encoder and decoder, one function per version, on first use.

The functions are straight-line source: nested structs and arrays are inlined, runs of
fixed-width fields become one `struct` call, lengths of the old encoding join that call.
They check only what keeps them safe, and fail with whatever exception comes first; `explain`
then walks the same bytes or values slowly and says what is wrong and where. So the common
path pays nothing for good error messages.
"""

from __future__ import annotations

import struct
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from typing import Any, Final

from pyclient.errors import ProtocolError
from pyclient.protocol.primitives import (
    BOOL,
    BYTES,
    RECORDS,
    STRING,
    UUID,
    ArrayType,
    Part,
    StructType,
    WireType,
    decode_uvarint,
    encode_uvarint,
    part_length,
)
from pyclient.protocol.schema import NO_TAGGED_FIELDS, Field, Message, Struct

Encoder = Callable[[Any, list[Part]], None]
Decoder = Callable[[memoryview, int], tuple[Any, int]]


class Malformed(Exception):
    """A compiled codec gave up; `explain` finds out why. Never leaves this package."""


def compile_encoder(cls: type[Message], version: int) -> Encoder:
    """The encoder of `cls` at `version`, kept on the class."""
    encoder: Encoder = _EncoderSource(cls, version).compile()
    cls._encoders[version] = encoder
    return encoder


def compile_decoder(cls: type[Message], version: int) -> Decoder:
    """The decoder of `cls` at `version`, kept on the class."""
    decoder: Decoder = _DecoderSource(cls, version).compile()
    cls._decoders[version] = decoder
    return decoder


def minimum_width(wire_type: WireType, version: int, flexible: bool, nullable: bool = False) -> int:
    """The fewest bytes that a value can take: bounds an array's count before it is read."""
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


class _Source:
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
        self.lines.append(" " * self.indent + line)

    def name(self, prefix: str = "v") -> str:
        """A local name that is not in use."""
        self._names += 1
        return f"{prefix}{self._names}"

    def constant(self, value: Any, prefix: str = "k") -> str:
        name = self.name(prefix)
        self.scope[name] = value
        return name

    @contextmanager
    def block(self, head: str) -> Iterator[None]:
        self.emit(head)
        self.indent += 1
        yield
        self.indent -= 1

    def is_flexible(self, one: Field | None = None) -> bool:
        return self.version in (
            self.cls.flexible if one is None or one.flexible is None else one.flexible
        )

    def is_tagged(self, one: Field | None) -> bool:
        # Kafka marks a missing struct by -1, but by 0 where the struct is a tagged field.
        return one is not None and self.version in one.tagged

    def inline_fields(self, struct_class: type[Struct]) -> list[Field]:
        return [
            one
            for one in struct_class.fields
            if self.version in one.versions and self.version not in one.tagged
        ]

    def tagged_fields(self, struct_class: type[Struct]) -> list[Field]:
        tagged = [one for one in struct_class.fields if self.version in one.tagged]
        return sorted(tagged, key=lambda one: one.tag or 0)

    def finish(self, head: str) -> Callable[..., Any]:
        source = "\n".join([head, *self.lines])
        filename = f"<{self.cls.__name__} v{self.version} {type(self).__name__}>"
        exec(compile(source, filename, "exec"), self.scope)
        function: Callable[..., Any] = self.scope[head[4 : head.index("(")]]
        return function


class _DecoderSource(_Source):
    """Writes `decode(b, p)`: buffer `b` (to its end `e`), position `p` -> (message, position)."""

    def compile(self) -> Decoder:
        self.scope.update(uvarint=decode_uvarint, NONE=NO_TAGGED_FIELDS, new=object.__new__)
        self._pending: list[tuple[str, str, int]] = []  # targets of the next struct call
        self.emit("e = len(b)")
        message = self.name("m")
        self.decode_struct(self.cls, message)
        self.flush()
        self.emit(f"return {message}, p")
        return self.finish("def decode(b, p):")

    # Fixed-width values are collected and read by one call, just before anything else happens.
    def fixed(self, target: str, code: str, width: int) -> None:
        self._pending.append((target, code, width))

    def flush(self) -> None:
        if not self._pending:
            return
        codes = "".join(code for _, code, _ in self._pending)
        width = sum(width for _, _, width in self._pending)
        unpack = self.scope_once("u", codes, struct.Struct(">" + codes).unpack_from)
        targets = ", ".join(target for target, _, _ in self._pending)
        comma = "," if len(self._pending) == 1 else ""
        self.emit(f"{targets}{comma} = {unpack}(b, p)")
        self.emit(f"p += {width}")
        self._pending.clear()

    def scope_once(self, prefix: str, codes: str, value: Any) -> str:
        name = f"{prefix}_{codes.replace('?', 'o')}"
        self.scope.setdefault(name, value)
        return name

    def decode_struct(self, struct_class: type[Struct], target: str) -> None:
        self.emit(f"{target} = new({self.constant(struct_class, 'C')})")
        absent = [one for one in struct_class.fields if self.version not in one.versions]
        for one in absent:
            self.assign_default(one, target)
        for one in self.inline_fields(struct_class):
            self.decode_value(one.type, f"{target}.{one.name}", self.nullable(one), one)
        if self.is_flexible():
            self.flush()
            self.decode_tags(struct_class, target)
        else:
            for one in self.tagged_fields(struct_class):
                self.assign_default(one, target)
            self.emit(f"{target}.unknown_tagged_fields = NONE")

    def assign_default(self, one: Field, target: str) -> None:
        if isinstance(one.type, ArrayType) and one.default_is_mutable:
            value = "[]"
        elif one.default_is_mutable:
            value = f"{self.constant(one.fresh_default, 'f')}()"
        else:
            default = one.fresh_default()
            literal = default is None or isinstance(default, bool | int | str)
            value = repr(default) if literal else self.constant(default)
        self.emit(f"{target}.{one.name} = {value}")

    def nullable(self, one: Field) -> bool:
        return self.version in one.nullable

    def decode_value(
        self, wire_type: WireType, target: str, nullable: bool, one: Field | None = None
    ) -> None:
        if wire_type.width:
            self.fixed(target, wire_type.code, wire_type.width)
        elif isinstance(wire_type, StructType):
            self.decode_nested(wire_type, target, nullable, self.is_tagged(one))
        else:
            self.decode_sized(wire_type, target, nullable, self.is_flexible(one))

    def decode_nested(
        self, wire_type: StructType, target: str, nullable: bool, tagged: bool
    ) -> None:
        local = self.name("m")
        if not nullable:
            self.flush()
            self.decode_struct(wire_type.struct, local)
        else:
            marker = self.name()
            self.fixed(marker, "b", 1)
            self.flush()
            self.emit(f"{local} = None")
            with self.block(f"if {marker} {'>' if tagged else '>='} 0:"):
                self.decode_struct(wire_type.struct, local)
                self.flush()
        # Assigned before the pending reads run: they only reach into the object itself.
        self.emit(f"{target} = {local}")

    def decode_sized(
        self, wire_type: WireType, target: str, nullable: bool, flexible: bool
    ) -> None:
        size = self.read_size(wire_type, flexible)
        if nullable:
            with self.block(f"if {size} == -1:"):
                self.emit(f"{target} = None")
            with self.block("else:"):
                self.decode_content(wire_type, target, size, flexible)
        else:
            self.decode_content(wire_type, target, size, flexible)

    def read_size(self, wire_type: WireType, flexible: bool) -> str:
        """Read a length or count into a local; -1 stands for null in both encodings."""
        size = self.name("n")
        if not flexible:
            self.fixed(size, "h", 2) if wire_type is STRING else self.fixed(size, "i", 4)
            self.flush()
            return size
        self.flush()
        self.read_uvarint(size)
        self.emit(f"{size} -= 1")
        return size

    def read_uvarint(self, target: str) -> None:
        self.emit(f"{target} = b[p]")
        self.emit("p += 1")
        with self.block(f"if {target} > 127:"):
            self.emit(f"{target}, p = uvarint(b, p - 1)")

    def decode_content(self, wire_type: WireType, target: str, size: str, flexible: bool) -> None:
        if isinstance(wire_type, ArrayType):
            self.decode_array(wire_type.element, target, size, flexible)
            return
        end = self.name("q")
        self.emit(f"{end} = p + {size}")
        with self.block(f"if {size} < 0 or {end} > e:"):
            self.emit("raise Malformed")
        if wire_type is STRING:
            self.emit(f"{target} = str(b[p:{end}], 'utf-8')")
        elif wire_type is BYTES:
            self.emit(f"{target} = bytes(b[p:{end}])")
        else:
            self.emit(f"{target} = b[p:{end}]")
        self.emit(f"p = {end}")

    def decode_array(self, element: WireType, target: str, count: str, flexible: bool) -> None:
        least = max(1, minimum_width(element, self.version, flexible))
        with self.block(f"if {count} < 0 or {count} * {least} > e - p:"):
            self.emit("raise Malformed")
        if element.width:
            self.scope["Struct"] = struct.Struct
            read = self.constant(_reader_of_many(element.code), "r")
            self.emit(f"{target} = {read}(b, p, {count})")
            self.emit(f"p += {count} * {element.width}")
            return
        items, add, item = self.name("a"), self.name("w"), self.name("m")
        self.emit(f"{items} = []")
        self.emit(f"{add} = {items}.append")
        with self.block(f"for _ in range({count}):"):
            self.decode_value(element, item, nullable=False)
            self.flush()
            self.emit(f"{add}({item})")
        self.emit(f"{target} = {items}")

    def decode_tags(self, struct_class: type[Struct], target: str) -> None:
        tagged = self.tagged_fields(struct_class)
        for one in tagged:
            self.assign_default(one, target)
        self.emit(f"{target}.unknown_tagged_fields = NONE")
        count, last, tag, size, end = (self.name(letter) for letter in "nltsq")
        self.read_uvarint(count)
        with self.block(f"if {count}:"):
            self.emit(f"{last} = -1")
            with self.block(f"for _ in range({count}):"):
                self.read_uvarint(tag)
                self.read_uvarint(size)
                self.emit(f"{end} = p + {size}")
                with self.block(f"if {tag} <= {last} or {end} > e:"):
                    self.emit("raise Malformed")
                self.emit(f"{last} = {tag}")
                keyword = "if"
                for one in tagged:
                    with self.block(f"{keyword} {tag} == {one.tag}:"):
                        self.decode_value(one.type, f"{target}.{one.name}", self.nullable(one), one)
                        self.flush()
                        with self.block(f"if p != {end}:"):
                            self.emit("raise Malformed")
                    keyword = "elif"
                with self.block("if True:" if keyword == "if" else "else:"):
                    with self.block(f"if {target}.unknown_tagged_fields is NONE:"):
                        self.emit(f"{target}.unknown_tagged_fields = {{}}")
                    self.emit(f"{target}.unknown_tagged_fields[{tag}] = bytes(b[p:{end}])")
                    self.emit(f"p = {end}")


def _reader_of_many(code: str) -> Callable[[memoryview, int, int], list[Any]]:
    """Reads `count` values of one fixed width. Small counts share their compiled formats."""
    formats: Final = {n: struct.Struct(f">{code * n}") for n in (1, 2, 3)}

    def read(buffer: memoryview, position: int, count: int) -> list[Any]:
        compiled = formats.get(count)
        if compiled is None:
            compiled = struct.Struct(">" + code * count)
        return list(compiled.unpack_from(buffer, position))

    return read


class _EncoderSource(_Source):
    """Writes `encode(m, parts)`; `w` appends to the bytes since the last records field."""

    def compile(self) -> Encoder:
        self.scope.update(uvarint=encode_uvarint, pieces=_pieces, tags=_write_tags)
        self._pending: list[tuple[str, str]] = []
        self.emit("o = []")
        self.emit("w = o.append")
        self.encode_struct(self.cls, "m")
        self.flush()
        self.emit("parts.append(b''.join(o))")
        return self.finish("def encode(m, parts):")

    def fixed(self, expression: str, code: str) -> None:
        self._pending.append((expression, code))

    def flush(self) -> None:
        if not self._pending:
            return
        codes = "".join(code for _, code in self._pending)
        name = f"p_{codes.replace('?', 'o')}"
        self.scope.setdefault(name, struct.Struct(">" + codes).pack)
        self.emit(f"w({name}({', '.join(expression for expression, _ in self._pending)}))")
        self._pending.clear()

    def encode_struct(self, struct_class: type[Struct], source: str) -> None:
        for one in struct_class.fields:
            if self.version not in one.versions and not one.ignorable:
                self.refuse_unless_default(one, f"{source}.{one.name}")
        for one in self.inline_fields(struct_class):
            nullable = self.version in one.nullable
            self.encode_value(one.type, f"{source}.{one.name}", nullable, one)
        if self.is_flexible():
            self.encode_tags(struct_class, source)
        else:
            for one in self.tagged_fields(struct_class):
                self.refuse_unless_default(one, f"{source}.{one.name}")

    def refuse_unless_default(self, one: Field, expression: str) -> None:
        with self.block(f"if {self.differs_from_default(one, expression)}:"):
            self.emit("raise Malformed")

    def differs_from_default(self, one: Field, expression: str) -> str:
        if isinstance(one.type, ArrayType) and one.default_is_mutable:
            # any element at all; null is no default either
            return f"{expression} is None or {expression}"
        default = one.fresh_default()
        if default is None:
            return f"{expression} is not None"
        if isinstance(default, bool | int | str):
            return f"{expression} != {default!r}"
        return f"{expression} != {self.constant(default)}"

    def encode_value(
        self, wire_type: WireType, source: str, nullable: bool, one: Field | None = None
    ) -> None:
        if wire_type is BOOL:
            self.check_early(f"{source} is not True and {source} is not False")
        elif wire_type is UUID:
            self.check_early(f"len({source}) != 16")
        if wire_type.width:
            self.fixed(source, wire_type.code)
        elif isinstance(wire_type, StructType):
            self.encode_nested(wire_type, source, nullable, self.is_tagged(one))
        else:
            self.encode_sized(wire_type, source, nullable, self.is_flexible(one))

    def check_early(self, condition: str) -> None:
        with self.block(f"if {condition}:"):
            self.emit("raise Malformed")

    def encode_nested(
        self, wire_type: StructType, source: str, nullable: bool, tagged: bool
    ) -> None:
        local = self.name("m")
        self.emit(f"{local} = {source}")
        if not nullable:
            self.encode_struct(wire_type.struct, local)
            return
        self.flush()
        with self.block(f"if {local} is None:"):
            self.emit("w(b'\\0')" if tagged else "w(b'\\xff')")
        with self.block("else:"):
            self.fixed("1", "b")
            self.encode_struct(wire_type.struct, local)
            self.flush()

    def encode_sized(
        self, wire_type: WireType, source: str, nullable: bool, flexible: bool
    ) -> None:
        local = self.name()
        self.emit(f"{local} = {source}")
        if not nullable:
            self.encode_content(wire_type, local, flexible)
            return
        self.flush()
        with self.block(f"if {local} is None:"):
            null = b"\0" if flexible else b"\xff\xff" if wire_type is STRING else b"\xff" * 4
            self.emit(f"w({null!r})")
        with self.block("else:"):
            self.encode_content(wire_type, local, flexible)
            self.flush()

    def write_size(self, wire_type: WireType, expression: str, flexible: bool) -> None:
        if not flexible:
            self.fixed(expression, "h" if wire_type is STRING else "i")
            self.flush()
        else:
            self.flush()
            self.emit(f"w(uvarint({expression} + 1))")

    def encode_content(self, wire_type: WireType, local: str, flexible: bool) -> None:
        if isinstance(wire_type, ArrayType):
            self.write_size(wire_type, f"len({local})", flexible)
            self.encode_elements(wire_type.element, local)
        elif wire_type is STRING:
            encoded = self.name("s")
            self.emit(f"{encoded} = {local}.encode()")
            if flexible:  # the old encoding's length is bounded by its int16
                self.check_early(f"len({encoded}) > 32767")
            self.write_size(wire_type, f"len({encoded})", flexible)
            self.emit(f"w({encoded})")
        elif wire_type is RECORDS:
            held, size = self.name(), self.name("n")
            self.emit(f"{held}, {size} = pieces({local})")
            self.write_size(wire_type, size, flexible)
            self.emit("parts.append(b''.join(o))")
            self.emit("o.clear()")
            self.emit(f"parts.extend({held})")
        else:
            self.write_size(wire_type, f"len({local})", flexible)
            self.emit(f"w({local})")

    def encode_elements(self, element: WireType, local: str) -> None:
        if element.width and element is not UUID:
            self.scope["pack"] = struct.pack
            self.emit(f"w(pack(f'>{{len({local})}}{element.code}', *{local}))")
            return
        item = self.name("m")
        with self.block(f"for {item} in {local}:"):
            self.encode_value(element, item, nullable=False)
            self.flush()

    def encode_tags(self, struct_class: type[Struct], source: str) -> None:
        tagged = self.tagged_fields(struct_class)
        self.flush()
        if not tagged:
            self.emit(f"tags({source}.unknown_tagged_fields, w) if "
                      f"{source}.unknown_tagged_fields else w(b'\\0')")  # fmt: skip
            return
        known, outer = self.name("t"), self.name("w")
        self.emit(f"{known} = dict({source}.unknown_tagged_fields)")
        for one in tagged:
            with self.block(f"if {self.differs_from_default(one, f'{source}.{one.name}')}:"):
                # The tag's value is written by the same code, into a list of its own.
                self.emit(f"{outer} = w")
                content = self.name("o")
                self.emit(f"{content} = []")
                self.emit(f"w = {content}.append")
                nullable = self.version in one.nullable
                self.encode_value(one.type, f"{source}.{one.name}", nullable, one)
                self.flush()
                self.emit(f"w = {outer}")
                self.emit(f"{known}[{one.tag}] = b''.join({content})")
        self.emit(f"tags({known}, w)")


def _pieces(records: Any) -> tuple[list[Part], int]:
    """The parts of a records field, and their length in all."""
    parts = list(records) if isinstance(records, list | tuple) else [records]
    return parts, sum(map(part_length, parts))


def _write_tags(fields: dict[int, bytes], write: Callable[[bytes], None]) -> None:
    write(encode_uvarint(len(fields)))
    for tag in sorted(fields):
        content = fields[tag]
        write(encode_uvarint(tag))
        write(encode_uvarint(len(content)))
        write(content)
