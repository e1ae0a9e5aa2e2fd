"""The questions that a consumer can answer without reading: offsets, topics, figures.

The caller's thread only. A part of `KafkaConsumer`, in a file of its own.
"""

from __future__ import annotations

from collections.abc import Collection, Mapping

from pyclient.consumer.arguments import check_partitions, checked_times
from pyclient.consumer.offsets.list_offsets import EARLIEST, LATEST
from pyclient.consumer.poll_loop import PollLoop
from pyclient.consumer.use_guard import UseGuard
from pyclient.protocol.messages.metadata import MetadataRequest, MetadataResponse
from pyclient.types import OffsetAndTimestamp, TopicPartition


class ClusterQueries:
    """What can be asked about partitions and topics, assigned or not."""

    def __init__(self, loop: PollLoop, in_use: UseGuard, api_timeout_ms: float) -> None:
        self._loop = loop
        self._core = loop.core
        self._engine = loop.core.engine
        self._in_use = in_use
        self._api_timeout_ms = api_timeout_ms

    def beginning_offsets(
        self, partitions: Collection[TopicPartition], timeout_ms: float | None = None
    ) -> dict[TopicPartition, int]:
        """The first offset of each partition.

        Raises:
            KafkaTimeoutError: it was not found in time, the partition may not exist.
        """
        found = self._list_offsets(dict.fromkeys(partitions, EARLIEST), timeout_ms)
        return {partition: one.offset for partition, one in found.items() if one is not None}

    def end_offsets(
        self, partitions: Collection[TopicPartition], timeout_ms: float | None = None
    ) -> dict[TopicPartition, int]:
        """The offset behind the last record of each partition. Raises as `beginning_offsets`."""
        found = self._list_offsets(dict.fromkeys(partitions, LATEST), timeout_ms)
        return {partition: one.offset for partition, one in found.items() if one is not None}

    def offsets_for_times(
        self, timestamps: Mapping[TopicPartition, int], timeout_ms: float | None = None
    ) -> dict[TopicPartition, OffsetAndTimestamp | None]:
        """The first record of each partition from a time on (ms since 1970); None if none is.

        Raises:
            ValueError: a time is negative.
            KafkaTimeoutError: it was not found in time, the partition may not exist.
        """
        return self._list_offsets(checked_times(timestamps), timeout_ms)

    def _list_offsets(
        self, timestamps: Mapping[TopicPartition, int], timeout_ms: float | None
    ) -> dict[TopicPartition, OffsetAndTimestamp | None]:
        with self._in_use:
            self._engine.check_usable("looking up offsets")
            check_partitions(timestamps)
            if not timestamps:
                return {}
            timeout_ms = self._api_timeout_ms if timeout_ms is None else timeout_ms
            pending = self._core.list_offsets(timestamps, timeout_ms)
            return self._loop.result_of(pending, timeout_ms, "the lookup of offsets")

    def partitions_for_topic(self, topic: str) -> set[int]:
        """The partitions of a topic; empty if there is no such topic."""
        known = self._engine.metadata.snapshot.partitions_for_topic(topic)
        return set(self._all_topics().get(topic, ()) if known is None else known)

    def topics(self) -> set[str]:
        """All topics that this user may see, without Kafka's own."""
        return set(self._all_topics(internal=False))

    def _all_topics(self, internal: bool = True) -> dict[str, list[int]]:
        with self._in_use:
            self._engine.check_usable("looking up topics")
            request = MetadataRequest(topics=None, allow_auto_topic_creation=False)
            pending = self._core.ask_any(request, self._api_timeout_ms)
            response = self._loop.result_of(pending, self._api_timeout_ms, "a list of topics")
            assert isinstance(response, MetadataResponse)
            return {
                topic.name: [partition.partition_index for partition in topic.partitions]
                for topic in response.topics
                if topic.name and not topic.error_code and (internal or not topic.is_internal)
            }

    def bootstrap_connected(self) -> bool:
        """Whether a broker has answered."""
        return self._engine.metadata.snapshot.version > 0

    def metrics(self) -> dict[str, dict[str, float]]:
        """Figures by Kafka's groups and names."""
        return self._core.figures()
