"""Converts keys and values to bytes and back: kafka-python's interfaces, and plain callables.

`serializer` and `deserializer` normalize what a program configured: an object with the interface of
either major version of kafka-python, a callable, or None. Serializers run on the caller's thread.
"""

import inspect
import json
from abc import ABC, abstractmethod
from collections.abc import Callable, Sequence
from typing import Any, Protocol, TypeAlias

Headers: TypeAlias = Sequence[tuple[str, bytes | None]]
Bytes: TypeAlias = bytes | bytearray | memoryview
SerializeFunction: TypeAlias = Callable[[str, Headers, Any], Bytes | None]
DeserializeFunction: TypeAlias = Callable[[str, Headers, bytes | None], Any]


class SupportsSerialize(Protocol):
    """What `key_serializer` and `value_serializer` take, besides functions."""

    # With these arguments, a type checker takes a method of either version of kafka-python.
    def serialize(self, *args: Any, **kwargs: Any) -> Any:
        """Convert a key or value to bytes."""


class SupportsDeserialize(Protocol):
    """What `key_deserializer` and `value_deserializer` take, besides functions."""

    def deserialize(self, *args: Any, **kwargs: Any) -> Any:
        """Convert a key or value from bytes."""


class Serializer(ABC):
    """Converts a key or value to bytes."""

    @abstractmethod
    def serialize(self, topic: str, headers: Headers, data: Any) -> Bytes | None:
        """Convert `data` to bytes; None is a null."""

    def close(self) -> None:  # noqa: B027  an optional hook, as in kafka-python
        """Called when the producer closes."""


class Deserializer(ABC):
    """Converts a key or value from bytes."""

    @abstractmethod
    def deserialize(self, topic: str, headers: Headers, data: bytes | None) -> Any:
        """Convert `data` from bytes; None is a null."""

    def close(self) -> None:  # noqa: B027  an optional hook, as in kafka-python
        """Called when the consumer closes."""


class DefaultSerializer(Serializer, Deserializer):
    """Text as UTF-8 or another encoding; bytes are passed through."""

    def __init__(self, encoding: str = "utf-8") -> None:
        self.encoding = encoding

    def serialize(self, topic: str, headers: Headers, data: Any) -> Bytes | None:  # noqa: ARG002
        """Encode a value; None stays None."""
        if data is None or isinstance(data, bytes | bytearray | memoryview):
            return data
        encoded: bytes = data.encode(self.encoding)
        return encoded

    def deserialize(self, topic: str, headers: Headers, data: bytes | None) -> Any:  # noqa: ARG002
        """Decode a value; None stays None."""
        return None if data is None else data.decode(self.encoding)


class JsonSerializer(DefaultSerializer):
    """Anything that JSON can hold; None stays a null."""

    def serialize(self, topic: str, headers: Headers, data: Any) -> Bytes | None:
        """Encode a value; None stays None."""
        return None if data is None else super().serialize(topic, headers, json.dumps(data))

    def deserialize(self, topic: str, headers: Headers, data: bytes | None) -> Any:
        """Decode a value; None stays None."""
        return None if data is None else json.loads(super().deserialize(topic, headers, data))


class SerializeWrapper(Serializer):
    """A function as a `Serializer`; None passes bytes through."""

    def __init__(self, fn: Callable[[Any], Bytes | None] | None) -> None:
        self.fn = fn

    def serialize(self, topic: str, headers: Headers, data: Any) -> Bytes | None:  # noqa: ARG002
        """Call the function."""
        return data if self.fn is None else self.fn(data)


class DeserializeWrapper(Deserializer):
    """A function as a `Deserializer`; None passes bytes through."""

    def __init__(self, fn: Callable[[bytes | None], Any] | None) -> None:
        self.fn = fn

    def deserialize(self, topic: str, headers: Headers, data: bytes | None) -> Any:  # noqa: ARG002
        """Call the function."""
        return data if self.fn is None else self.fn(data)


def serializer(configured: object) -> SerializeFunction | None:
    """The function of a configured serializer; None to pass bytes through."""
    return _function(configured, "serialize")


def deserializer(configured: object) -> DeserializeFunction | None:
    """The function of a configured deserializer; None to pass bytes through."""
    return _function(configured, "deserialize")


def _function(configured: object, method_name: str) -> Callable[[str, Headers, Any], Any] | None:
    if configured is None:
        return None
    method: Callable[..., Any] | None = getattr(configured, method_name, None)
    if method is not None:
        if _positional_count(method) == 2:  # kafka-python 2: serialize(topic, value)
            return lambda topic, _headers, data: method(topic, data)
        return method
    if callable(configured):
        return lambda _topic, _headers, data: configured(data)
    raise TypeError(f"neither a callable nor an object with {method_name}(): {configured!r}")


def _positional_count(function: Callable[..., Any]) -> int:
    kinds = (inspect.Parameter.POSITIONAL_ONLY, inspect.Parameter.POSITIONAL_OR_KEYWORD)
    return sum(p.kind in kinds for p in inspect.signature(function).parameters.values())
