"""Messages as JSON, with the names and the shapes that Kafka's own tools print. Pure functions."""

import base64
import re
from typing import Any

from pyclient.protocol.primitives import BYTES, UUID, ArrayType, StructType, WireType
from pyclient.protocol.schema import Message, Struct


def message_json(message: Message, version: int) -> dict[str, Any]:
    """The fields that this version has; tagged ones only where they differ from their defaults."""
    return _struct_json(message, version)


def _struct_json(struct: Struct, version: int) -> dict[str, Any]:
    shown = {}
    for one in type(struct).fields:
        if version not in one.versions:
            continue
        value = getattr(struct, one.name)
        if version in one.tagged and value == one.fresh_default():
            continue
        shown[camel_case(one.name)] = _value_json(one.type, value, version)
    return shown


def _value_json(wire_type: WireType, value: Any, version: int) -> Any:
    if value is None:
        return None
    if isinstance(wire_type, ArrayType):
        return [_value_json(wire_type.element, item, version) for item in value]
    if isinstance(wire_type, StructType):
        return _struct_json(value, version)
    if wire_type is UUID:
        return base64.urlsafe_b64encode(value).decode().rstrip("=")
    if wire_type is BYTES:
        return base64.b64encode(value).decode()
    return value


def camel_case(name: str) -> str:
    """`leader_epoch` as Kafka spells it: `leaderEpoch`."""
    first, *rest = name.split("_")
    return first + "".join(map(str.capitalize, rest))


def constant_case(class_name: str) -> str:
    """`TopicRecord` as Kafka spells a type of record: `TOPIC_RECORD`."""
    return re.sub(r"(?<!^)(?=[A-Z])", "_", class_name).upper()
