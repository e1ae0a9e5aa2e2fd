"""What the caller's thread looks up in the cluster, and waits for.

The caller's thread only.
"""

from collections.abc import Mapping

from pyclient.consumer.caller_requests import CallerRequests
from pyclient.consumer.caller_wait import CallerWait
from pyclient.protocol.messages.metadata import MetadataRequest, MetadataResponse
from pyclient.types import OffsetAndMetadata, OffsetAndTimestamp, TopicPartition


class CallerLookups:
    """Offsets and topics, from the brokers."""

    def __init__(self, requests: CallerRequests, wait: CallerWait, api_timeout_ms: float) -> None:
        """`api_timeout_ms` is for calls without a timeout of their own."""
        self._requests = requests
        self._wait = wait
        self._api_timeout_ms = api_timeout_ms

    def offsets(
        self, timestamps: Mapping[TopicPartition, int], timeout_ms: float | None
    ) -> dict[TopicPartition, OffsetAndTimestamp | None]:
        """Offsets by timestamp; None where there is none from that moment on."""
        if not timestamps:
            return {}
        timeout_ms = self._api_timeout_ms if timeout_ms is None else timeout_ms
        pending = self._requests.list_offsets(timestamps, timeout_ms)
        return self._wait.result(pending, timeout_ms, "the lookup of offsets")

    def committed(
        self, partition: TopicPartition, timeout_ms: float | None
    ) -> OffsetAndMetadata | None:
        """The group's committed offset."""
        timeout_ms = self._api_timeout_ms if timeout_ms is None else timeout_ms
        pending = self._requests.committed([partition], timeout_ms)
        return self._wait.result(pending, timeout_ms, "committed()").get(partition)

    def topics(self, internal: bool) -> dict[str, list[int]]:
        """All topics that this user may see, with their partitions."""
        request = MetadataRequest(topics=None, allow_auto_topic_creation=False)
        pending = self._requests.send_to_any(request, self._api_timeout_ms)
        response = self._wait.result(pending, self._api_timeout_ms, "a list of topics")
        assert isinstance(response, MetadataResponse)
        return {
            topic.name: [partition.partition_index for partition in topic.partitions]
            for topic in response.topics
            if topic.name and not topic.error_code and (internal or not topic.is_internal)
        }
