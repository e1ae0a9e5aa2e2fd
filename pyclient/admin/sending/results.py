"""Responses as plain dictionaries, the form in which kafka-python's admin client returns them."""

from typing import Any, Generic, NamedTuple, Protocol, TypeVar

from pyclient.errors import KafkaError, for_code
from pyclient.protocol.primitives import UUID
from pyclient.protocol.schema import Struct
from pyclient.types import format_uuid


class Result(Protocol):
    """A response's part about one thing that the request named."""

    error_code: int


AnyResult = TypeVar("AnyResult", bound=Result)


class Outcome(NamedTuple, Generic[AnyResult]):
    """The outcome for one thing: the broker's result, and its error, if any."""

    result: AnyResult
    error: KafkaError | None


def as_dict(struct: Struct) -> dict[str, Any]:
    """A struct as nested dicts by field names; topic ids are in Kafka's text form."""
    return {
        one.name: _value(one.type is UUID, getattr(struct, one.name)) for one in type(struct).fields
    }


def _value(is_uuid: bool, value: Any) -> Any:
    if isinstance(value, Struct):
        return as_dict(value)
    if isinstance(value, list):
        return [_value(is_uuid, one) for one in value]
    return format_uuid(value) if is_uuid else value


def error_of(name: str, result: Result, remark: str = "") -> KafkaError | None:
    """The error in a result, with the thing's name; None for success."""
    if not result.error_code:
        return None
    message = getattr(result, "error_message", None)  # few have a place for it
    text = f"{name}: {message}" if message else name
    return for_code(result.error_code)(f"{text} ({remark})" if remark else text)
