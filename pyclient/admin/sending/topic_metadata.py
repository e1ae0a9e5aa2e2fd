"""Describes topics by a Metadata request that creates none."""

from collections.abc import Iterable
from typing import Protocol, TypeAlias

from pyclient.errors import for_code
from pyclient.protocol.messages.metadata import (
    MetadataRequest,
    MetadataRequestTopic,
    MetadataResponse,
    MetadataResponseTopic,
)


class TopicId(Protocol):
    """The id of a topic: a `uuid.UUID` is one."""

    @property
    def bytes(self) -> bytes:
        """The 16 bytes of the id."""

    def __hash__(self) -> int: ...


Topic: TypeAlias = str | TopicId
"""A topic by name, or by id where brokers know ids."""


def metadata_request(
    topics: Iterable[Topic] | None, *, with_operations: bool = False
) -> MetadataRequest:
    """A request for these topics, or for all with None, that creates none."""
    return MetadataRequest(
        topics=None if topics is None else [_asked(topic) for topic in topics],
        allow_auto_topic_creation=False,
        include_topic_authorized_operations=with_operations,
    )


def _asked(topic: Topic) -> MetadataRequestTopic:
    if isinstance(topic, str):
        return MetadataRequestTopic(name=topic)
    return MetadataRequestTopic(name=None, topic_id=topic.bytes)


def topics_in(response: MetadataResponse) -> list[MetadataResponseTopic]:
    """The topics that were asked for.

    Raises:
        KafkaError: one of them does not exist, or can't be described.
    """
    for topic in response.topics:
        if topic.error_code:
            raise for_code(topic.error_code)(f"topic {topic.name!r}")
    return response.topics
