"""Responses as plain dictionaries, the form in which kafka-python's admin client returns them."""

from __future__ import annotations

from typing import Any, Protocol

from pyclient.errors import KafkaError, for_code
from pyclient.protocol.primitives import UUID
from pyclient.protocol.schema import Struct
from pyclient.types import format_uuid


class Result(Protocol):
    """What became of one thing that a request named."""

    error_code: int
    error_message: str | None


def as_dict(struct: Struct) -> dict[str, Any]:
    """A struct and all in it, by field names; a topic id in the form that Kafka's tools print."""
    return {
        one.name: _value(one.type is UUID, getattr(struct, one.name)) for one in type(struct).fields
    }


def _value(is_uuid: bool, value: Any) -> Any:
    if isinstance(value, Struct):
        return as_dict(value)
    if isinstance(value, list):
        return [_value(is_uuid, one) for one in value]
    return format_uuid(value) if is_uuid else value


def error_of(name: str, result: Result) -> KafkaError | None:
    """The error that a result tells of, with the name it is about; None for success."""
    if not result.error_code:
        return None
    error = for_code(result.error_code)
    return error(f"{name}: {result.error_message}" if result.error_message else name)
