"""Requests that name topics: each may stand there once, and may not exist."""

from collections import Counter
from collections.abc import Sequence
from typing import Protocol, TypeVar

from broker_stub.metadata.topics import check_name
from pyclient.error_codes import (
    BrokerResponseError,
    InvalidRequestError,
    UnknownTopicOrPartitionError,
)


class Named(Protocol):
    """A topic of a request."""

    name: str


AnyNamed = TypeVar("AnyNamed", bound=Named)


def once_each(topics: Sequence[AnyNamed]) -> tuple[list[AnyNamed], dict[str, BrokerResponseError]]:
    """The topics that stand in the request once; the names of the others, with their error."""
    times = Counter(topic.name for topic in topics)
    repeated: dict[str, BrokerResponseError] = {
        name: InvalidRequestError("Duplicate topic name.")
        for name, count in times.items()
        if count > 1
    }
    return [topic for topic in topics if topic.name not in repeated], repeated


def unknown_topic(name: str) -> BrokerResponseError:
    """What is wrong with the name of a topic that does not exist."""
    try:
        check_name(name)
    except BrokerResponseError as error:
        return error
    return UnknownTopicOrPartitionError(f"there is no topic {name!r}")
