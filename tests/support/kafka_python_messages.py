"""kafka-python's messages, and the way from ours to them and back.

The names are the same, but for its `authorized_operations`, which it also keeps as a set of
bits. It has None where we have a zero uuid, and where we have a tagged struct of defaults.
"""

import uuid
from importlib import import_module
from typing import Any

from kafka.protocol.api_data import ApiData
from kafka.protocol.api_message import ApiMessage
from kafka.protocol.schemas.fields.codecs import BitField

from pyclient.protocol.primitives import UUID, ZERO_UUID, ArrayType, StructType, WireType
from pyclient.protocol.schema import Struct

_MODULES = ("admin", "consumer", "metadata", "producer", "sasl")


def kafka_python_messages() -> dict[str, Any]:
    """Its requests, responses and consumer protocol, by name."""
    modules = [import_module(f"kafka.protocol.{name}") for name in _MODULES]
    return {
        name: cls
        for module in modules
        for name, cls in vars(module).items()
        if isinstance(cls, type)
        and issubclass(cls, ApiData | ApiMessage)
        and cls not in (ApiData, ApiMessage)
    }


def versions_of(theirs: Any) -> range:
    """The versions that its schema is valid for."""
    lowest, highest = theirs.valid_versions
    return range(lowest, highest + 1)


def encode_theirs(theirs: Any, version: int) -> bytes:
    """The body alone, without header and frame."""
    return bytes(theirs.encode(version=version, header=False))


def decode_theirs(cls: Any, body: bytes, version: int) -> Any:
    """The message in a body."""
    return cls.decode(body, version=version, header=False)


def to_theirs(ours: Struct, schema: Any, version: int) -> Any:
    """Our struct as an instance of the data class that goes with `schema`."""
    values = {}
    for one in type(ours).fields:
        if version in one.versions:
            held = getattr(ours, one.name)
            their_field = schema.fields[_their_name(one.name, schema)]
            if version in one.tagged and held == one.fresh_default():
                continue
            values[their_field.name] = _value_to_theirs(one.type, held, their_field, version)
    return schema.data_class(version=version, **values)


def _value_to_theirs(wire_type: WireType, value: Any, schema: Any, version: int) -> Any:
    if value is None:
        return None
    if isinstance(wire_type, ArrayType):
        inner = schema.array_of
        return [_value_to_theirs(wire_type.element, item, inner, version) for item in value]
    if isinstance(wire_type, StructType):
        return to_theirs(value, schema, version)
    if wire_type is UUID:
        return None if value == ZERO_UUID else uuid.UUID(bytes=value)
    if getattr(schema, "_type", None) is BitField:
        return BitField.from_32_bit_field(value & 0xFFFFFFFF)
    return value


def from_theirs(cls: type[Struct], theirs: Any, version: int) -> Any:
    """Its struct as an instance of ours."""
    schema = theirs._struct
    values = {}
    for one in cls.fields:
        if version in one.versions:
            their_field = schema.fields[_their_name(one.name, schema)]
            held = getattr(theirs, their_field.name)
            if held is None and version in one.tagged and isinstance(one.type, StructType):
                continue
            values[one.name] = _value_from_theirs(one.type, held, their_field, version)
    return cls(**values)


def _value_from_theirs(wire_type: WireType, value: Any, schema: Any, version: int) -> Any:
    if getattr(schema, "_type", None) is BitField:
        bits = BitField.to_32_bit_field({31} if value is None else value)
        return bits - 2**32 if bits >= 2**31 else bits
    if wire_type is UUID:
        return ZERO_UUID if value is None else value.bytes
    if value is None:
        return None
    if isinstance(wire_type, ArrayType):
        inner = schema.array_of
        return [_value_from_theirs(wire_type.element, item, inner, version) for item in value]
    if isinstance(wire_type, StructType):
        return from_theirs(wire_type.struct, value, version)
    return value


def _their_name(name: str, schema: Any) -> str:
    if name.endswith("_authorized_operations") and name not in schema.fields:
        return "authorized_operations"
    return name
