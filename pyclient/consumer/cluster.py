"""What the consumer's cores ask of the client's metadata; `net.metadata_manager` has it all."""

from collections.abc import Iterable, Mapping
from typing import Protocol

from pyclient.metadata import ClusterMetadata
from pyclient.types import BrokerMetadata, TopicPartition


class Cluster(Protocol):
    """The cluster as known now, and how to know it better."""

    @property
    def snapshot(self) -> ClusterMetadata:
        """What is known now."""

    def request_update(self) -> None:
        """Something has changed: ask again, soon."""

    def set_topics(self, names: Iterable[str] | None) -> None:
        """Describe these topics from now on; None for all there are."""

    def add_topic(self, topic: str) -> None:
        """Describe this topic too."""

    def update_leaders(
        self,
        leaders: Mapping[TopicPartition, tuple[int, int]],
        endpoints: Iterable[BrokerMetadata],
    ) -> None:
        """A response named newer leaders, (id, epoch) each."""
