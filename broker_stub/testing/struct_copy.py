"""Copies of messages, made where the original belongs to somebody else."""

from __future__ import annotations

from typing import TypeVar

from pyclient.protocol.schema import Struct

AnyStruct = TypeVar("AnyStruct", bound=Struct)


def changed(struct: AnyStruct, **changes: object) -> AnyStruct:
    """A copy with other values in some fields; the rest is shared."""
    values = {one.name: getattr(struct, one.name) for one in type(struct).fields}
    copy = type(struct)(**{**values, **changes})
    copy.unknown_tagged_fields = struct.unknown_tagged_fields
    return copy
