"""Checks the arguments of faults: a fault that could never work is an error in the test.

A wrong type raises TypeError, a value out of range ValueError (raised by the caller, who knows the
range). Both say what is allowed. Pure functions.
"""

import math
import operator
from numbers import Real
from typing import Final

from pyclient.protocol.registry import API_KEYS, API_NAMES, module_name, request_class

_PRODUCE: Final = 0


def whole_number(what: str, value: object) -> int:
    """Accept an integer, also of another library's type, but not a bool.

    Raises:
        TypeError: it is something else.
    """
    try:
        if not isinstance(value, bool):
            return operator.index(value)  # type: ignore[arg-type]
    except TypeError:
        pass
    raise TypeError(f"{what} is a whole number, not {value!r}")


def real_number(what: str, value: object) -> float:
    """Accept a finite number.

    Raises:
        TypeError: it is something else.
        ValueError: it is infinite, or not a number (NaN).
    """
    if isinstance(value, bool) or not isinstance(value, Real):
        raise TypeError(f"{what} is a number, not {value!r}")
    if not math.isfinite(value):
        raise ValueError(f"{what} is a finite number, not {value!r}")
    return float(value)


def yes_or_no(what: str, value: object) -> bool:
    """Accept True or False only.

    Raises:
        TypeError: it is something else.
    """
    if not isinstance(value, bool):
        raise TypeError(f"{what} is True or False, not {value!r}")
    return value


def api_key_of(api: object) -> int:
    """The API key of a request class.

    Raises:
        TypeError: it is none.
    """
    api_key = getattr(api, "api_key", None)
    if isinstance(api_key, int) and api_key in API_NAMES and request_class(api_key) is api:
        return api_key
    meant = _meant(api)
    raise TypeError(
        f"{api!r} is not the class of a request, as {API_NAMES[meant]}Request of"
        f" pyclient.protocol.messages.{module_name(meant)} is"
    )


def _meant(api: object) -> int:
    """The API that was probably meant; Produce as an example if unknown."""
    named = getattr(api, "api_key", api)
    if isinstance(named, str):
        named = API_KEYS.get(named.removesuffix("Request"))
    return named if isinstance(named, int) and named in API_NAMES else _PRODUCE
