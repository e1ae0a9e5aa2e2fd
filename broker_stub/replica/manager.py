"""Finds this broker's partitions, and keeps them in step with the cluster's image.

Serving thread only (while the node opens: the thread that opens it).
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from typing import TYPE_CHECKING

from broker_stub import diagnostics
from broker_stub.config.broker_config import BrokerConfig
from broker_stub.config.keys import MIN_INSYNC_REPLICAS
from broker_stub.log.internal_batches import read_log
from broker_stub.log.log_config import LogConfig
from broker_stub.log.log_manager import LogManager
from broker_stub.log.partition_log import AppendInfo, AppendOrigin
from broker_stub.metadata.image import ClusterImage, TopicImage
from broker_stub.metadata.log import CLUSTER_METADATA
from broker_stub.purgatory import Purgatory
from broker_stub.replica.partition import Partition
from pyclient.clock import Clock
from pyclient.error_codes import (
    KafkaStorageError,
    UnknownTopicIdError,
    UnknownTopicOrPartitionError,
)
from pyclient.protocol.primitives import ZERO_UUID, Uuid

if TYPE_CHECKING:
    from pyclient.records.record import ConsumerRecord


class ReplicaManager:
    """Every partition with a replica here; created on first use."""

    def __init__(
        self,
        *,
        node_id: int,
        config: BrokerConfig,
        image: ClusterImage,
        logs: LogManager,
        purgatory: Purgatory,
        clock: Clock,
    ) -> None:
        self._node_id = node_id
        self._config = config
        self._image = image
        self._logs = logs
        self._purgatory = purgatory
        self._clock = clock
        self._partitions: dict[Uuid, dict[int, Partition]] = {}

    def partition(self, topic: str, index: int) -> Partition:
        """The partition of a topic.

        Raises:
            UnknownTopicOrPartitionError: there is none, or it has no replica here.
        """
        return self.partition_of(self.topic(topic), index)

    def topic(self, name: str, topic_id: Uuid = ZERO_UUID, *, by_id: bool = False) -> TopicImage:
        """A topic by its name, or by its id.

        Raises:
            UnknownTopicOrPartitionError: there is no topic of this name.
            UnknownTopicIdError: there is no topic of this id.
        """
        topic = self._image.topic_by_id(topic_id) if by_id else self._image.topic(name)
        if topic is None:
            if by_id:
                raise UnknownTopicIdError()
            raise UnknownTopicOrPartitionError(f"there is no topic {name!r}")
        return topic

    def partition_of(self, topic: TopicImage, index: int) -> Partition:
        """The partition of a topic that was looked up."""
        partitions = self._partitions.get(topic.topic_id)
        if partitions is None:
            partitions = self._partitions[topic.topic_id] = {}
        partition = partitions.get(index)
        if partition is None:
            partition = partitions[index] = self._make(topic, index)
        return partition

    def append(
        self,
        partition: Partition,
        batches: memoryview | bytearray,
        *,
        origin: AppendOrigin = AppendOrigin.COORDINATOR,
        transaction_version: int = 0,
    ) -> AppendInfo:
        """Append records of the broker itself, and complete the fetches that wait for them.

        A flush that is due follows in the background; nothing waits for it.
        """
        info = partition.append(
            batches,
            acks=1,
            now_ms=self._clock.now_ms(),
            origin=origin,
            transaction_version=transaction_version,
        )
        if info.flush_due:
            partition.log.flush_soon()
        self._purgatory.check_and_complete(partition.key)
        return info

    def read_all(self, partition: Partition) -> Iterator[ConsumerRecord]:
        """Every record that is there now: for replay at start."""
        return read_log(partition.log)

    def wake_fetches(self, partitions: Iterable[Partition]) -> None:
        """Records were appended: answer the fetches that wait for them."""
        for partition in partitions:
            self._purgatory.check_and_complete(partition.key)

    def adopt_logs(self, removed: Iterable[TopicImage]) -> None:
        """Give every log on disk its topic's configuration, and remove strays.

        A log of a `removed` topic was left by a crash during its deletion: it is deleted. A log
        of an unknown topic is set aside, as Apache Kafka does.
        """
        names = {topic.name for topic in removed}
        ids = {topic.topic_id for topic in removed}
        for (name, index), log in list(self._logs.logs().items()):
            if name == CLUSTER_METADATA:
                continue
            topic = self._image.topic(name)
            # A power cut may have taken the id: then it is the topic's, unless one was removed.
            is_unnamed = log.topic_id == ZERO_UUID and name not in names
            if (
                topic is not None
                and index in topic.partitions
                and (is_unnamed or log.topic_id == topic.topic_id)
            ):
                self.partition_of(topic, index)
            elif log.topic_id in ids:
                diagnostics.warn("%s-%d belongs to a deleted topic: deleting it", name, index)
                self._logs.delete(name, index)
            else:
                folder = self._logs.set_aside(name, index)
                diagnostics.warn("%s-%d belongs to no topic: moved to %s", name, index, folder)

    def _make(self, topic: TopicImage, index: int) -> Partition:
        image = topic.partitions.get(index)
        if image is None or self._node_id not in image.replicas:
            raise UnknownTopicOrPartitionError(f"{topic.name!r} has no partition {index}")
        overrides = self._image.topic_config(topic.name)
        values = self._config.topic_values(overrides)
        log_config = LogConfig.from_values(values)
        log = self._logs.create(
            topic.name,
            index,
            topic_id=topic.topic_id,
            directory_id=image.directory_of(self._node_id),
            config=log_config,
        )
        log.update_config(log_config)
        return Partition(
            node_id=self._node_id,
            topic=topic.name,
            topic_id=topic.topic_id,
            image=image,
            log=log,
            min_insync_replicas=values[MIN_INSYNC_REPLICAS.name],
        )

    def topic_removed(self, topic: TopicImage) -> None:
        """A topic was deleted: delete its logs, and answer the fetches that wait for it."""
        partitions = self._partitions.pop(topic.topic_id, {})
        for partition in partitions.values():
            try:
                self._logs.delete(partition.topic, partition.index)
            except KafkaStorageError as error:
                # For clients the topic is gone; `adopt_logs` finds the folder at the next start.
                diagnostics.warn("%s; the next start tries again", error)
        self.wake_fetches(partitions.values())

    def topic_reconfigured(self, name: str) -> None:
        """The options of a topic changed."""
        topic = self._image.topic(name)
        if topic is not None:
            self._reconfigure(topic)

    def reconfigured(self) -> None:
        """The defaults of topics changed."""
        for topic in self._image.topics():
            self._reconfigure(topic)

    def _reconfigure(self, topic: TopicImage) -> None:
        partitions = self._partitions.get(topic.topic_id)
        if not partitions:
            return
        values = self._config.topic_values(self._image.topic_config(topic.name))
        log_config = LogConfig.from_values(values)
        for partition in partitions.values():
            partition.log.update_config(log_config)
            partition.min_insync_replicas = values[MIN_INSYNC_REPLICAS.name]

    def partition_changed(self, topic: TopicImage, index: int) -> None:
        """The leader or the replicas of a partition changed."""
        partition = self._partitions.get(topic.topic_id, {}).get(index)
        if partition is not None:
            partition.update(topic.partitions[index])
            self._purgatory.check_and_complete(partition.key)
