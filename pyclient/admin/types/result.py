"""The base of results: typed objects that are kafka-python's dicts, too."""

from __future__ import annotations

from collections.abc import Mapping
from typing import TYPE_CHECKING, Any, ClassVar, Self

from pyclient.protocol.primitives import UUID
from pyclient.protocol.schema import Struct
from pyclient.types import format_uuid


class AdminResult(dict[str, Any]):
    """A result with named fields: `result.offset` and `result["offset"]` are the same.

    It is a dict, because kafka-python returns dicts: it compares, prints and serializes as one.
    Some of kafka-python's results are tuples as well: `result[0]` is the first field.
    Subclasses annotate their fields, and name the classes of nested results in `PARTS`.
    """

    PARTS: ClassVar[Mapping[str, type[AdminResult]]] = {}

    @classmethod
    def of(cls, struct: Struct) -> Self:
        """A part of a response, with the names of its fields; topic ids in Kafka's text form."""
        return cls(
            (
                one.name,
                _value(
                    cls.PARTS.get(one.name, AdminResult),
                    one.type is UUID,
                    getattr(struct, one.name),
                ),
            )
            for one in type(struct).fields
        )

    def __missing__(self, key: object) -> Any:
        if isinstance(key, int) and 0 <= key < len(self):
            return list(self.values())[key]
        raise KeyError(key)

    if not TYPE_CHECKING:  # a type checker knows the annotated fields only

        def __getattr__(self, name: str) -> Any:
            try:
                return self[name]
            except KeyError:
                fields = ", ".join(self)
                raise AttributeError(
                    f"{type(self).__name__} has no {name!r}; it has {fields}"
                ) from None


def _value(part: type[AdminResult], is_uuid: bool, value: Any) -> Any:
    if isinstance(value, Struct):
        return part.of(value)
    if isinstance(value, list):
        return [_value(part, is_uuid, one) for one in value]
    return format_uuid(value) if is_uuid else value
