"""Compiles a message's encoder for one version, on first use."""

import struct
from collections.abc import Callable
from typing import Any

from pyclient.protocol.primitives import (
    BOOL,
    RECORDS,
    STRING,
    UUID,
    ArrayType,
    Part,
    StructType,
    WireType,
    part_length,
)
from pyclient.protocol.schema import Field, Message, Struct
from pyclient.protocol.source import Malformed, Source, format_of_many
from pyclient.varint import SMALL_UVARINTS, encode_uvarint

Encoder = Callable[[Any, list[Part]], None]


def compile_encoder(cls: type[Message], version: int) -> Encoder:
    """The encoder of `cls` at `version`, kept on the class."""
    encoder: Encoder = _EncoderSource(cls, version).compile()
    cls._encoders[version] = encoder
    return encoder


class _EncoderSource(Source):
    """Writes `encode(m, parts)`; `w` appends to the bytes since the last records field."""

    def compile(self) -> Encoder:
        self.scope.update(
            U=SMALL_UVARINTS, uvarint=encode_uvarint, pieces=_pieces, tags=_write_tags
        )
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
            self.check_early(f"{source}.unknown_tagged_fields")
            for one in self.tagged_fields(struct_class):
                self.refuse_unless_default(one, f"{source}.{one.name}")

    def refuse_unless_default(self, one: Field, expression: str) -> None:
        with self.block(f"if {self.differs_from_default(one, expression)}:"):
            self.emit("raise Malformed")

    def differs_from_default(self, one: Field, expression: str) -> str:
        if isinstance(one.type, ArrayType) and one.default_is_mutable:
            # any element at all; null is no default either
            return f"{expression} is None or {expression}"
        if isinstance(one.type, StructType) and one.default_is_mutable:
            # field by field: `==` between structs is slow, and a Fetch partition has three
            inner = [
                self.differs_from_default(part, f"{expression}.{part.name}")
                for part in one.type.struct.fields
            ]
            return " or ".join(
                [f"{expression} is None", *inner, f"{expression}.unknown_tagged_fields"]
            )
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
            size = self.name("n")
            self.emit(f"{size} = {expression} + 1")
            self.emit(f"w(U[{size}] if {size} < {len(SMALL_UVARINTS)} else uvarint({size}))")

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
            writers = f"q_{element.code.replace('?', 'o')}"
            self.scope.setdefault(writers, ManyWriters(element.code))
            self.emit(f"w({writers}[len({local})](*{local}))")
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
        self.emit(f"{known} = dict({source}.unknown_tagged_fields or ())")
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
        self.emit(f"tags({known}, w) if {known} else w(b'\\0')")


def _pieces(records: Any) -> tuple[list[Part], int]:
    """The parts of a records field, and their length in all."""
    parts = list(records) if isinstance(records, list | tuple) else [records]
    return parts, sum(map(part_length, parts))


def _write_tags(fields: dict[int, bytes], write: Callable[[bytes], None]) -> None:
    write(encode_uvarint(len(fields)))
    for tag in sorted(fields):
        content = fields[tag]
        if not 0 <= tag <= 0xFFFFFFFF:
            raise Malformed
        write(encode_uvarint(tag))
        write(encode_uvarint(len(content)))
        write(content)


class ManyWriters(dict[int, Callable[..., bytes]]):
    """Writers of `n` values of one fixed width, made when first asked for."""

    REMEMBERED = 64

    def __init__(self, code: str) -> None:
        super().__init__()
        self._code = code

    def __missing__(self, count: int) -> Callable[..., bytes]:
        writer = struct.Struct(format_of_many(self._code, count)).pack
        if count <= self.REMEMBERED:
            self[count] = writer
        return writer
