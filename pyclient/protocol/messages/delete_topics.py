"""DeleteTopics (API key 20): remove topics with all their records.

Up to version 5 topics are listed in `topic_names`; version 6 lists them in `topics`, by name or
by id.
"""

from pyclient.protocol.primitives import INT16, INT32, STRING, UUID, Uuid
from pyclient.protocol.schema import Message, Struct, array, field


class DeleteTopicState(Struct):
    """A topic to delete, by name or by id."""

    name: str | None = field(STRING, nullable="0+", default=None)
    topic_id: Uuid = field(UUID)


class DeleteTopicsRequest(Message, api_key=20, versions="1-6", flexible="4+"):
    topics: list[DeleteTopicState] = field(array(DeleteTopicState), versions="6+")
    topic_names: list[str] = field(array(STRING), versions="0-5", ignorable=True)
    timeout_ms: int = field(INT32)

    def version_cap(self, transaction_version: int = 0) -> int:
        """5 for a request that lists `topic_names`."""
        return 5 if self.topic_names else super().version_cap(transaction_version)

    def version_floor(self) -> int:
        """6 for a request that lists `topics`."""
        return 6 if self.topics else super().version_floor()


class DeletableTopicResult(Struct):
    name: str | None = field(STRING, nullable="6+")
    topic_id: Uuid = field(UUID, versions="6+", ignorable=True)
    error_code: int = field(INT16)
    error_message: str | None = field(
        STRING, versions="5+", nullable="5+", default=None, ignorable=True
    )


class DeleteTopicsResponse(Message, api_key=20, versions="1-6", flexible="4+"):
    """Which topics were deleted."""

    throttle_time_ms: int = field(INT32)
    responses: list[DeletableTopicResult] = field(array(DeletableTopicResult))
