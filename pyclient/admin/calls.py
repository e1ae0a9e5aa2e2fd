"""What the calls of all nouns share."""

from enum import Enum
from typing import Any, TypeVar

from pyclient.admin.requests import AdminRequests

AnyEnum = TypeVar("AnyEnum", bound=Enum)


class AdminCalls:
    """The base of each noun's calls; `KafkaAdminClient` has them all."""

    _requests: AdminRequests


def member_of(enum: type[AnyEnum], value: Any) -> AnyEnum:
    """A member given as such, by its value, or by its name in any case, with `-` or `_`.

    Raises:
        ValueError: there is no such member.
    """
    try:
        return enum(value)
    except ValueError:
        name = str(value).strip().upper().replace("-", "_")
        if name not in enum.__members__:
            known = ", ".join(one.lower() for one in enum.__members__)
            raise ValueError(f"{value!r} is no {enum.__name__}; there are {known}") from None
        return enum[name]
