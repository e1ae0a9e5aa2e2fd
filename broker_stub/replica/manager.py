"""The partitions this broker has: found by name, appended to, and kept in step with the image.

Serving thread only (while the node opens: the thread that opens it).
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from typing import TYPE_CHECKING

from broker_stub import diagnostics
from broker_stub.config.broker_config import BrokerConfig
from broker_stub.config.keys import MIN_INSYNC_REPLICAS
from broker_stub.log.log_config import LogConfig
from broker_stub.log.log_manager import LogManager
from broker_stub.log.partition_log import AppendInfo, AppendOrigin
from broker_stub.metadata.image import ClusterImage, TopicImage
from broker_stub.metadata.log import CLUSTER_METADATA
from broker_stub.purgatory import Purgatory
from broker_stub.replica.batches import read_log
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
    """Every partition that has a replica here; made when first asked for."""

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
        """The partition of a topic that was looked up already."""
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
    ) -> AppendInfo:
        """Append the broker's own records, and wake whoever waits for them.

        A flush that is due follows at once, but nothing waits for it.
        """
        info = partition.append(batches, acks=1, now_ms=self._clock.now_ms(), origin=origin)
        if info.flush_due:
            partition.log.flush_soon()
        self._purgatory.check_and_complete(partition.key)
        return info

    def read_all(self, partition: Partition) -> Iterator[ConsumerRecord]:
        """Every record there is now: for what is replayed at start."""
        return read_log(partition.log)

    def wake_fetches(self, partitions: Iterable[Partition]) -> None:
        """Records were appended: answer the fetches that waited for them."""
        for partition in partitions:
            self._purgatory.check_and_complete(partition.key)

    def adopt_logs(self, removed: Iterable[TopicImage]) -> None:
        """Give every log found on disk its topic's configuration; put away what has no topic.

        That of a `removed` topic is what a crash between the deletion's record and its folders
        leaves: it goes. What nobody knows of is set aside, as Apache Kafka does.
        """
        names = {topic.name for topic in removed}
        ids = {topic.topic_id for topic in removed}
        undecided = []
        for (name, index), log in list(self._logs.logs().items()):
            if name == CLUSTER_METADATA:
                continue
            topic = self._image.topic(name)
            # Without an id, which a power loss took, it is the topic's unless there were others.
            is_unnamed = log.topic_id == ZERO_UUID and name not in names
            if (
                topic is not None
                and index in topic.partitions
                and (is_unnamed or log.topic_id == topic.topic_id)
            ):
                self.partition_of(topic, index)
                if log.producer_state.open_transactions:
                    undecided.append(f"{name}-{index}")
            elif log.topic_id in ids:
                diagnostics.warn("%s-%d belongs to a deleted topic: removed", name, index)
                self._logs.delete(name, index)
            else:
                folder = self._logs.set_aside(name, index)
                diagnostics.warn("%s-%d belongs to no topic: it is in %s now", name, index, folder)
        if undecided:
            diagnostics.warn(
                "transactions are open that nobody can end here, and readers of committed records"
                " stop before them: %s",
                ", ".join(sorted(undecided)),
            )

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
        """A topic is gone: its logs go, and the fetches that wait for it are told."""
        partitions = self._partitions.pop(topic.topic_id, {})
        for partition in partitions.values():
            try:
                self._logs.delete(partition.topic, partition.index)
            except KafkaStorageError as error:
                # The topic is gone for clients all the same; `adopt_logs` will find the folder.
                diagnostics.warn("%s; the next start will try again", error)
        self.wake_fetches(partitions.values())

    def topic_reconfigured(self, name: str) -> None:
        """A topic has other options now."""
        topic = self._image.topic(name)
        if topic is not None:
            self._reconfigure(topic)

    def reconfigured(self) -> None:
        """The defaults of topics are others now."""
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
        """A partition has another leader or other replicas."""
        partition = self._partitions.get(topic.topic_id, {}).get(index)
        if partition is not None:
            partition.update(topic.partitions[index])
            self._purgatory.check_and_complete(partition.key)
