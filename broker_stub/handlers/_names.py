"""Requests that name topics: each may stand there once."""

from __future__ import annotations

from collections import Counter
from collections.abc import Sequence
from typing import Protocol, TypeVar

from pyclient.error_codes import BrokerResponseError, InvalidRequestError


class Named(Protocol):
    """A topic of a request."""

    name: str


AnyNamed = TypeVar("AnyNamed", bound=Named)


def once_each(topics: Sequence[AnyNamed]) -> tuple[list[AnyNamed], dict[str, BrokerResponseError]]:
    """The topics that stand in the request once; the names of the others, with their error."""
    times = Counter(topic.name for topic in topics)
    repeated: dict[str, BrokerResponseError] = {
        name: InvalidRequestError(f"the topic {name!r} is in the request twice")
        for name, count in times.items()
        if count > 1
    }
    return [topic for topic in topics if topic.name not in repeated], repeated
