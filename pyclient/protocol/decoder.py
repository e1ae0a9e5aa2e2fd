"""Compiles a message's decoder for one version, on first use."""

import struct
from collections.abc import Callable
from typing import Any

from pyclient.protocol.primitives import BYTES, STRING, ArrayType, StructType, WireType
from pyclient.protocol.schema import (
    NO_TAGGED_FIELDS,
    Field,
    Message,
    Struct,
    shared_default,
)
from pyclient.protocol.source import Source, format_of_many, minimum_width
from pyclient.varint import decode_uvarint

Decoder = Callable[[bytes | memoryview, int], tuple[Any, int]]


def compile_decoder(cls: type[Message], version: int) -> Decoder:
    """The decoder of `cls` at `version`, kept on the class."""
    decoder: Decoder = _DecoderSource(cls, version).compile()
    cls._decoders[version] = decoder
    return decoder


class _DecoderSource(Source):
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
        if isinstance(one.type, StructType) and one.default_is_mutable:
            value = self.constant(shared_default(one.type.struct))
        elif one.default_is_mutable:
            value = "[]"
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
            with self.block("if b[p] < 128:"):  # two bytes, as the length of most batches
                self.emit(f"{target} += (b[p] - 1) * 128")
                self.emit("p += 1")
            with self.block("else:"):
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
            self.emit(f"{target} = {self.as_bytes(f'b[p:{end}]')}")
        else:
            self.emit(f"{target} = b[p:{end}]")
        self.emit(f"p = {end}")

    def as_bytes(self, taken: str) -> str:
        return taken if self.cls._copies_input else f"bytes({taken})"

    def decode_array(self, element: WireType, target: str, count: str, flexible: bool) -> None:
        least = max(1, minimum_width(element, self.version, flexible))
        with self.block(f"if {count} < 0 or {count} * {least} > e - p:"):
            self.emit("raise Malformed")
        if element.width:
            readers = self.scope_once("r", element.code, ManyReaders(element.code))
            self.emit(f"{target} = list({readers}[{count}](b, p))")
            self.emit(f"p += {count} * {element.width}")
            return
        items, add = self.name("a"), self.name("w")
        self.emit(f"{items} = []")
        self.emit(f"{add} = {items}.append")
        fixed = self.fixed_fields(element)
        if fixed:
            self.decode_fixed_structs(element, fixed, count, add)
        else:
            self.decode_elements(element, count, add)
        self.emit(f"{target} = {items}")

    def decode_elements(self, element: WireType, count: str, add: str) -> None:
        item = self.name("m")
        with self.block(f"for _ in range({count}):"):
            self.decode_value(element, item, nullable=False)
            self.flush()
            self.emit(f"{add}({item})")

    def fixed_fields(self, element: WireType) -> list[Field]:
        """The fields of a struct whose inline fields all have a fixed width; else none."""
        if not isinstance(element, StructType):
            return []
        fields = self.inline_fields(element.struct)
        return fields if all(one.type.width for one in fields) else []

    def decode_fixed_structs(
        self, element: WireType, fields: list[Field], count: str, add: str
    ) -> None:
        """Structs of one width stand like a table: read by one iterator.

        In flexible versions that is so while no struct has tags, which their last bytes tell.
        """
        assert isinstance(element, StructType)
        flexible = self.is_flexible()
        codes = "".join(one.type.code for one in fields) + "x" * flexible
        width = struct.calcsize(">" + codes)
        rows = self.scope_once("i", codes, struct.Struct(">" + codes).iter_unpack)
        end, item = self.name("q"), self.name("m")
        self.emit(f"{end} = p + {count} * {width}")
        if flexible:
            with self.block(f"if {end} > e or any(b[p + {width - 1}:{end}:{width}]):"):
                self.decode_elements(element, count, add)
            self.emit("else:")
            self.indent += 1
        targets = ", ".join(f"{item}.{one.name}" for one in fields)
        with self.block(f"for row in {rows}(b[p:{end}]):"):
            self.emit(f"{item} = new({self.constant(element.struct, 'C')})")
            self.emit(f"{targets}{',' if len(fields) == 1 else ''} = row")
            for one in element.struct.fields:
                if one not in fields:
                    self.assign_default(one, item)
            self.emit(f"{item}.unknown_tagged_fields = NONE")
            self.emit(f"{add}({item})")
        self.emit(f"p = {end}")
        self.indent -= flexible

    def decode_tags(self, struct_class: type[Struct], target: str) -> None:
        tagged = self.tagged_fields(struct_class)
        for one in tagged:
            self.assign_default(one, target)
        self.emit(f"{target}.unknown_tagged_fields = NONE")
        count, last, tag, size, end = (self.name(letter) for letter in "nltsq")
        with self.block("if not b[p]:"):  # nearly always
            self.emit("p += 1")
        with self.block("else:"):
            self.read_uvarint(count)
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
                    self.emit(
                        f"{target}.unknown_tagged_fields[{tag}] = {self.as_bytes(f'b[p:{end}]')}"
                    )
                    self.emit(f"p = {end}")


class ManyReaders(dict[int, Callable[..., tuple[Any, ...]]]):
    """Readers of `n` values of one fixed width, made when first asked for."""

    REMEMBERED = 64  # counts of replicas and the like; an odd long list is not worth a place

    def __init__(self, code: str) -> None:
        super().__init__()
        self._code = code

    def __missing__(self, count: int) -> Callable[..., tuple[Any, ...]]:
        reader = struct.Struct(format_of_many(self._code, count)).unpack_from
        if count <= self.REMEMBERED:
            self[count] = reader
        return reader
