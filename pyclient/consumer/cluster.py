"""The part of `net.metadata_manager` that the consumer's managers use."""

from collections.abc import Iterable, Mapping
from typing import Protocol

from pyclient.metadata import ClusterMetadata
from pyclient.types import BrokerMetadata, TopicPartition


class Cluster(Protocol):
    """The metadata snapshot, and how to update it."""

    @property
    def snapshot(self) -> ClusterMetadata:
        """What is known now."""

    def request_update(self) -> None:
        """Request an update soon."""

    def set_topics(self, names: Iterable[str] | None) -> None:
        """Keep the metadata of these topics; None for all topics."""

    def add_topic(self, topic: str) -> None:
        """Keep the metadata of one more topic."""

    def update_leaders(
        self,
        leaders: Mapping[TopicPartition, tuple[int, int]],
        endpoints: Iterable[BrokerMetadata],
    ) -> None:
        """A response named newer leaders, (id, epoch) each."""
