"""How a message is declared: annotations for people and type checkers, `field()` for the wire.

`Struct` is a group of fields, `Message` a struct that stands alone: an API's request or
response, a record of an internal topic, a header. Declaring a class costs almost nothing;
its encoder and decoder are compiled per version on first use (see `encoder`, `decoder`).
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from types import MappingProxyType
from typing import TYPE_CHECKING, Any, ClassVar, Final, Self, dataclass_transform

from pyclient.protocol.primitives import (
    RECORDS,
    ArrayType,
    Buffer,
    Part,
    StructType,
    VersionRange,
    WireType,
)

_ZERO: Final = object()
NO_TAGGED_FIELDS: Final[Mapping[int, bytes]] = MappingProxyType({})


class Field:
    """One declared field: its wire type and the versions that carry it."""

    __slots__ = ("default", "flexible", "ignorable", "name", "nullable", "tag", "tagged", "type",
                 "versions")  # fmt: skip

    def __init__(
        self,
        wire_type: WireType,
        versions: VersionRange,
        nullable: VersionRange,
        default: Any,
        tag: int | None,
        tagged: VersionRange,
        ignorable: bool,
        flexible: VersionRange | None,
    ) -> None:
        self.name = ""
        self.type = wire_type
        self.versions = versions
        self.nullable = nullable
        self.default = default
        self.tag = tag
        self.tagged = tagged
        self.ignorable = ignorable
        self.flexible = flexible

    def fresh_default(self) -> Any:
        """The value of an absent field; a new object if it is mutable."""
        if self.default is not _ZERO:
            return self.default
        if isinstance(self.type, ArrayType):
            return []
        if isinstance(self.type, StructType):
            return self.type.struct()
        return self.type.zero

    @property
    def default_is_mutable(self) -> bool:
        """Whether `fresh_default` must be called for every instance."""
        return self.default is _ZERO and isinstance(self.type, ArrayType | StructType)


def field(
    wire_type: WireType,
    *,
    versions: str = "0+",
    nullable: str = "none",
    default: Any = _ZERO,
    tag: int | None = None,
    tagged: str | None = None,
    ignorable: bool = False,
    flexible: str | None = None,
) -> Any:
    """Declare a field.

    Args:
        wire_type: a type of `primitives`, `array(...)` or `struct(...)`.
        versions: the message versions that carry the field.
        nullable: those of them in which it may be None.
        default: the value where the field is absent; the type's zero if not given.
        tag: the number of a tagged field.
        tagged: the versions in which it is tagged; all of its versions if not given.
        ignorable: a value that the version can't carry is dropped instead of refused.
        flexible: overrides the message's flexible versions (the request header needs it).
    """
    if tag is None:
        tagged = "none"
    elif tagged is None:
        tagged = versions
    return Field(
        wire_type,
        VersionRange(versions),
        VersionRange(nullable),
        default,
        tag,
        VersionRange(tagged),
        ignorable,
        None if flexible is None else VersionRange(flexible),
    )


def array(element: WireType | type[Struct]) -> ArrayType:
    """A list of `element`."""
    return ArrayType(element if isinstance(element, WireType) else StructType(element))


def struct(of: type[Struct]) -> StructType:
    """A nested structure, as a field type."""
    return StructType(of)


# Type checkers do not know `field` as a specifier, so to them every field has a default.
@dataclass_transform(kw_only_default=True)
class StructMeta(type):
    """Turns declared fields into slots and a keyword-only constructor."""

    fields: tuple[Field, ...]

    def __new__(
        metaclass, name: str, bases: tuple[type, ...], namespace: dict[str, Any], **keywords: Any
    ) -> StructMeta:
        fields = tuple(value for value in namespace.values() if type(value) is Field)
        for key, value in namespace.items():
            if type(value) is Field:
                value.name = key
        for one in fields:
            del namespace[one.name]
        namespace["fields"] = fields
        namespace["__slots__"] = (
            *namespace.get("__slots__", ()),
            *(one.name for one in fields),
        )
        made = super().__new__(metaclass, name, bases, namespace, **keywords)
        if fields:
            made._write_constructor_later()
        return made

    def _write_constructor_later(cls) -> None:
        """Generate `__init__` for the first instance, because most messages are never used."""

        def __init__(self: object, **values: Any) -> None:  # noqa: N807
            constructor = _constructor(cls.__name__, cls.fields)
            cls.__init__ = constructor  # type: ignore[misc]
            constructor(self, **values)

        cls.__init__ = __init__  # type: ignore[misc]


def _constructor(owner: str, fields: tuple[Field, ...]) -> Callable[..., None]:
    """Generate the source of `__init__`, as dataclasses do: it runs for every message."""
    scope: dict[str, Any] = {"_ZERO": _ZERO, "_NONE": NO_TAGGED_FIELDS}
    arguments, body = [], ["self.unknown_tagged_fields = unknown_tagged_fields"]
    for index, one in enumerate(fields):
        if one.default_is_mutable:
            scope[f"_f{index}"] = one.fresh_default
            arguments.append(f"{one.name}=_ZERO")
            body.append(f"self.{one.name} = _f{index}() if {one.name} is _ZERO else {one.name}")
        else:
            scope[f"_d{index}"] = one.fresh_default()
            arguments.append(f"{one.name}=_d{index}")
            body.append(f"self.{one.name} = {one.name}")
    arguments.append("unknown_tagged_fields=_NONE")
    source = f"def __init__(self, *, {', '.join(arguments)}):\n " + "\n ".join(body)
    exec(compile(source, f"<{owner}.__init__>", "exec"), scope)
    constructor: Callable[..., None] = scope["__init__"]
    return constructor


class Struct(metaclass=StructMeta):
    """A group of fields. Mutable, compared by value."""

    __slots__ = ("unknown_tagged_fields",)

    if TYPE_CHECKING:
        # Tagged fields that are unknown here; kept, so that they survive a round trip.
        unknown_tagged_fields: Mapping[int, bytes] = NO_TAGGED_FIELDS

    def __init__(self) -> None:
        self.unknown_tagged_fields = NO_TAGGED_FIELDS

    def __eq__(self, other: object) -> bool:
        if not isinstance(other, Struct) or type(other).fields is not type(self).fields:
            return NotImplemented
        return dict(self.unknown_tagged_fields) == dict(other.unknown_tagged_fields) and all(
            getattr(self, one.name) == getattr(other, one.name) for one in type(self).fields
        )

    __hash__ = None  # type: ignore[assignment]

    def __repr__(self) -> str:
        shown = [f"{one.name}={getattr(self, one.name)!r}" for one in type(self).fields]
        if self.unknown_tagged_fields:
            shown.append(f"unknown_tagged_fields={dict(self.unknown_tagged_fields)!r}")
        return f"{type(self).__name__}({', '.join(shown)})"


def shared_default(struct_class: type[Struct]) -> Struct:
    """A read-only struct of defaults, shared by all decoded messages that lack the field.

    A Fetch response has three such fields in each partition; fresh ones would cost more than
    decoding the rest.
    """
    name = struct_class.__name__

    def refuse(_self: Struct, field_name: str, _value: object) -> None:
        raise AttributeError(
            f"this {name} is a shared default: to set {field_name}, assign a new {name}"
        )

    frozen = StructMeta(name, (struct_class,), {"__setattr__": refuse})
    frozen.fields = struct_class.fields
    default: Struct = object.__new__(frozen)  # type: ignore[arg-type]
    for one in struct_class.fields:
        object.__setattr__(default, one.name, one.fresh_default())
    object.__setattr__(default, "unknown_tagged_fields", NO_TAGGED_FIELDS)
    return default


def _holds_records(struct_class: type[Struct]) -> bool:
    types = [one.type for one in struct_class.fields]
    types = [one.element if isinstance(one, ArrayType) else one for one in types]
    return any(
        one is RECORDS or (isinstance(one, StructType) and _holds_records(one.struct))
        for one in types
    )


class Message(Struct):
    """A struct that stands alone on the wire, with versions of its own."""

    api_key: ClassVar[int | None]
    record_type: ClassVar[int | None]
    versions: ClassVar[VersionRange]
    stable: ClassVar[VersionRange]
    flexible: ClassVar[VersionRange]
    _encoders: ClassVar[dict[int, Callable[[Any, list[Part]], None]]]
    _decoders: ClassVar[dict[int, Callable[[bytes | memoryview, int], tuple[Any, int]]]]
    _copies_input: ClassVar[bool]

    def __init_subclass__(
        cls,
        *,
        versions: str,
        flexible: str,
        stable: str | None = None,
        api_key: int | None = None,
        record_type: int | None = None,
        prefix: bool = False,
    ) -> None:
        """Declare a message.

        Args:
            versions: every version that is defined.
            flexible: those with compact lengths and tagged fields.
            stable: those that a released Kafka serves, if not all of them.
            api_key: the number of the API, for requests and responses.
            record_type: the number in front of a record of an internal topic.
            prefix: other bytes follow, which decoding ignores, as after a header.
        """
        super().__init_subclass__()
        cls.api_key = api_key
        cls.record_type = record_type
        cls.versions = VersionRange(versions)
        cls.stable = VersionRange(stable or versions)
        cls.flexible = VersionRange(flexible)
        # `bytes` are faster to take apart than a memoryview, by more than the copy costs; but
        # record bytes are never copied, nor is what follows a header.
        cls._copies_input = not prefix and not _holds_records(cls)
        cls._encoders = {}
        cls._decoders = {}

    def version_cap(self, transaction_version: int = 0) -> int:  # noqa: ARG002
        """The highest version that can carry this message.

        Overridden by messages whose content rules out newer versions, such as topic names where a
        version has only ids, or a transaction if the cluster's `transaction.version` is too low.
        """
        return self.stable.highest

    def version_floor(self) -> int:
        """The lowest version that can carry this message.

        Overridden by messages whose content has no field, or another meaning, in older versions,
        such as a count of -1 (the broker's default), a topic id, or a filter.
        """
        return self.stable.lowest

    def encode(self, version: int) -> list[Part]:
        """The message's bytes as parts: record bytes stay apart, as they were given.

        Raises:
            ProtocolError: a field has a wrong type or an integer out of range, or a value
                that this version can't carry.
        """
        encoder = self._encoders.get(version)
        if encoder is None:
            from pyclient.protocol.encoder import compile_encoder

            encoder = compile_encoder(type(self), version)
        parts: list[Part] = []
        try:
            encoder(self, parts)
        except Exception as error:
            from pyclient.protocol import explain

            raise explain.encode_failure(self, version, error) from error
        return parts

    def encode_bytes(self, version: int) -> bytes:
        """The message's bytes, joined: for small messages and for tests."""
        return b"".join(self.encode(version))  # type: ignore[arg-type]

    @classmethod
    def decode(cls, buffer: Buffer, version: int) -> Self:
        """The message that fills `buffer`.

        Raises:
            ProtocolError: the bytes are not such a message, or more than that.
        """
        message, position = cls.decode_from(buffer, 0, version)
        if position != len(buffer):
            from pyclient.protocol import explain

            raise explain.trailing_bytes(cls, version, position, len(buffer))
        return message

    @classmethod
    def decode_from(cls, buffer: Buffer, position: int, version: int) -> tuple[Self, int]:
        """The message that starts at `position`, and the position behind it."""
        decoder = cls._decoders.get(version)
        if decoder is None:
            from pyclient.protocol.decoder import compile_decoder

            decoder = compile_decoder(cls, version)
        data = bytes(buffer) if cls._copies_input else memoryview(buffer)
        try:
            return decoder(data, position)
        except Exception as error:
            from pyclient.protocol import explain

            raise explain.decode_failure(cls, data, position, version, error) from error
