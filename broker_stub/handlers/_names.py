"""Topics that a request names: duplicates, and topics that do not exist."""

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
    """The topics that a request names once, and an error for each name that is repeated."""
    times = Counter(topic.name for topic in topics)
    repeated: dict[str, BrokerResponseError] = {
        name: InvalidRequestError("Duplicate topic name.")
        for name, count in times.items()
        if count > 1
    }
    return [topic for topic in topics if topic.name not in repeated], repeated


def unknown_topic(name: str) -> BrokerResponseError:
    """The error for a topic that does not exist: the name may be invalid too."""
    try:
        check_name(name)
    except BrokerResponseError as error:
        return error
    return UnknownTopicOrPartitionError(f"there is no topic {name!r}")
