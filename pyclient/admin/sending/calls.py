"""What the admin client's calls share."""

from enum import Enum
from typing import Any, TypeVar

from pyclient.admin.sending.requests import AdminRequests

AnyEnum = TypeVar("AnyEnum", bound=Enum)


class AdminCalls:
    """The base class of each group of calls; `KafkaAdminClient` inherits all of them."""

    _requests: AdminRequests


def member_of(enum: type[AnyEnum], value: Any) -> AnyEnum:
    """An enum's member, given as such, by value, or by name in any case, with `-` or `_`.

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
