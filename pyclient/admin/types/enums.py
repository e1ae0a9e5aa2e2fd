"""Enums as arguments and as values from brokers."""

from enum import Enum, IntEnum
from typing import Any, Self, TypeVar

AnyEnum = TypeVar("AnyEnum", bound=Enum)


class FromTheWire(IntEnum):
    """An enum whose 0 stands for the values that only newer brokers know."""

    @classmethod
    def _missing_(cls, value: object) -> Self | None:
        return cls(0) if isinstance(value, int) else None


def member_of(enum: type[AnyEnum], value: Any) -> AnyEnum:
    """An enum's member, given as such, by value, or by name in any case, with `-` or `_`.

    Raises:
        ValueError: there is no such member.
    """
    if isinstance(value, str):
        name = value.strip().upper().replace("-", "_")
        if name in enum.__members__:
            return enum[name]
    try:
        return enum(value)
    except ValueError:
        known = ", ".join(one.lower() for one in enum.__members__)
        raise ValueError(f"{value!r} is no {enum.__name__}; there are {known}") from None
