"""The broker's core, without sockets and threads: requests in, replies out.

`handle` takes a request's bytes and returns the reply, or a parked one. The clock and the
background for blocking work are injected, so the same core runs under the server, in unit tests
and in simulation. Serving thread only (while it opens: the thread that opens it).
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from functools import cached_property
from typing import TYPE_CHECKING

from broker_stub import diagnostics
from broker_stub.blocking_work import Background
from broker_stub.config.broker_config import BrokerConfig
from broker_stub.config.listeners import Endpoint
from broker_stub.dispatch import Dispatcher
from broker_stub.log.files.open_files import OpenFiles
from broker_stub.log.log_manager import LogManager, LogManagerSettings
from broker_stub.metadata.controller import Controller
from broker_stub.metadata.image import (
    BROKER_RESOURCE,
    CONSUMER_OFFSETS,
    TOPIC_RESOURCE,
    TRANSACTION_STATE,
    BrokerImage,
    ClusterImage,
    TopicImage,
)
from broker_stub.metadata.loading import check_single_node, load_image
from broker_stub.metadata.log import CLUSTER_METADATA, MetadataLog
from broker_stub.metadata.producer_ids import ProducerIds
from broker_stub.purgatory import Purgatory, Timers
from broker_stub.replica.fetch_sessions import FetchSessionCache
from broker_stub.replica.manager import ReplicaManager
from broker_stub.request import ConnectionContext, Parked, Reply
from broker_stub.turn import Turn
from pyclient.clock import Clock
from pyclient.entropy import Entropy
from pyclient.errors import KafkaError

if TYPE_CHECKING:
    from broker_stub.coordinator.groups.group_coordinator import GroupCoordinator
    from broker_stub.coordinator.transactions.transaction_coordinator import (
        TransactionCoordinator,
    )


class Node:
    """Wires the parts of a broker and owns their lifecycle."""

    def __init__(
        self,
        config: BrokerConfig,
        log_dirs: Sequence[str],
        *,
        clock: Clock,
        entropy: Entropy,
        background: Background,
        files: OpenFiles | None = None,
    ) -> None:
        """Make the parts; nothing is read yet. `files` opens and syncs files."""
        self.config = config
        self.clock = clock
        self.entropy = entropy
        self.background = background
        self.node_id: int = config["node.id"]
        self.image = ClusterImage()
        self.timers = Timers(clock)
        self.turn = Turn()
        self.purgatory = Purgatory(self.timers)
        self.fetch_sessions = FetchSessionCache(
            config["max.incremental.fetch.session.cache.slots"], entropy
        )
        self.dispatcher = Dispatcher(self)
        self.logs = LogManager(
            log_dirs,
            clock=clock,
            entropy=entropy,
            node_id=self.node_id,
            default_config=config.log_config({}),
            settings=LogManagerSettings(
                retention_check_interval_ms=config["log.retention.check.interval.ms"],
                cleaner_enable=config["log.cleaner.enable"],
                cleaner_backoff_ms=config["log.cleaner.backoff.ms"],
                cleaner_dedupe_buffer_size=config["log.cleaner.dedupe.buffer.size"],
            ),
            files=files,
            never_cut=(CLUSTER_METADATA,),
        )
        self.controller: Controller
        self.producer_ids: ProducerIds
        self.replicas: ReplicaManager
        self.cluster_id = ""

    def open(self, endpoints: Sequence[Endpoint]) -> None:
        """Read the disk, recover after a crash, and be ready for requests. May block.

        Raises:
            KafkaStorageError, CorruptRecordError: a data folder is locked, damaged or foreign.
        """
        self.logs.open()
        try:
            self._open(endpoints)
        except BaseException:
            self.logs.abandon()  # release the folders
            raise

    def _open(self, endpoints: Sequence[Endpoint]) -> None:
        self.cluster_id = self.logs.cluster_id
        removed: list[TopicImage] = []
        self.image.on_topic_removed.append(removed.append)
        metadata_log = self._load_metadata()
        self.image.on_topic_removed.clear()
        self._set_dynamic_config()
        self.controller = Controller(
            node_id=self.node_id,
            directory_ids=list(self.logs.directory_ids.values()),
            config=self.config,
            image=self.image,
            log=metadata_log,
            background=self.background,
            entropy=self.entropy,
        )
        self.producer_ids = ProducerIds(self.controller)
        self.replicas = ReplicaManager(
            node_id=self.node_id,
            config=self.config,
            image=self.image,
            logs=self.logs,
            purgatory=self.purgatory,
            clock=self.clock,
        )
        rack = self.config["broker.rack"]
        self.controller.register(endpoints, rack, was_clean=self.logs.was_clean)
        self.replicas.adopt_logs(removed)
        if self.image.topic(CONSUMER_OFFSETS) is not None:
            self.coordinator.load()
        if self.image.topic(TRANSACTION_STATE) is not None:
            self.transactions.load()
        self._tell_of_hanging_transactions()
        self.image.on_topic_removed += [
            self.replicas.topic_removed,
            self._forget_offsets,
            self._forget_transactions,
        ]
        self.image.on_partition_changed.append(self.replicas.partition_changed)
        self.image.on_config_changed.append(self._on_config_changed)

    def _load_metadata(self) -> MetadataLog:
        try:
            log = MetadataLog(self.logs, self.clock)
            load_image(self.image, log)
            check_single_node(self.image, log, self.logs, self.node_id)
            self.logs.claim()
        except KafkaError:
            self.logs.give_back()
            raise
        return log

    @cached_property
    def coordinator(self) -> GroupCoordinator:
        """The group coordinator, imported on first use."""
        from broker_stub.coordinator.groups.group_coordinator import GroupCoordinator

        return GroupCoordinator(self)

    @cached_property
    def transactions(self) -> TransactionCoordinator:
        """The transaction coordinator, imported on first use."""
        from broker_stub.coordinator.transactions.transaction_coordinator import (
            TransactionCoordinator,
        )

        return TransactionCoordinator(self)

    def handle(self, frame: memoryview, connection: ConnectionContext) -> Reply | Parked[Reply]:
        """Handle the request in `frame` (without its length), whose bytes may be changed."""
        return self.dispatcher.dispatch(frame, connection)

    def close(self) -> None:
        """Stop cleanly: flush everything, so that the next start recovers nothing. May block."""
        self.logs.close(self.image.brokers[self.node_id].epoch)

    def abandon(self) -> None:
        """Stop as a killed process does: write nothing."""
        self.logs.abandon()

    def brokers(self, listener: str) -> Iterator[tuple[BrokerImage, Endpoint]]:
        """The brokers that a listener's clients can reach, and their addresses."""
        for broker in self.image.brokers.values():
            endpoint = broker.endpoints.get(listener)
            if endpoint is not None and not broker.fenced:
                yield broker, endpoint

    def _on_config_changed(self, resource_type: int, resource_name: str) -> None:
        if resource_type == TOPIC_RESOURCE:
            self.replicas.topic_reconfigured(resource_name)
        elif resource_type == BROKER_RESOURCE:
            self._set_dynamic_config()
            self.replicas.reconfigured()

    def _set_dynamic_config(self) -> None:
        self.config.set_dynamic(
            self.image.config(BROKER_RESOURCE, str(self.node_id)),
            self.image.config(BROKER_RESOURCE, ""),
        )

    def _tell_of_hanging_transactions(self) -> None:
        """Name the transactions that are open in a log, and that no coordinator will end."""
        found = [
            (f"{name}-{index}", producer_id)
            for (name, index), log in self.logs.logs().items()
            for producer_id in log.producer_state.open_transactions
        ]
        if not found:
            return
        known = set()
        if self.image.topic(TRANSACTION_STATE) is not None:
            for producer_id, partitions in self.transactions.open_partitions():
                known |= {(f"{topic}-{index}", producer_id) for topic, index in partitions}
        hanging = [one for one in sorted(found) if one not in known]
        if hanging:
            diagnostics.warn(
                "hanging transactions: %s; read_committed consumers stop before them until they are"
                " aborted (KafkaAdminClient.abort_transaction, or kafka-transactions.sh abort)",
                ", ".join(f"{where} (producer id {which})" for where, which in hanging),
            )

    def _forget_transactions(self, topic: TopicImage) -> None:
        if topic.name == TRANSACTION_STATE and "transactions" in self.__dict__:
            self.transactions.unload()

    def _forget_offsets(self, topic: TopicImage) -> None:
        # The coordinator is created with the first group.
        if topic.name != CONSUMER_OFFSETS and self.image.topic(CONSUMER_OFFSETS) is None:
            return
        if topic.name == CONSUMER_OFFSETS and "coordinator" not in self.__dict__:
            return
        try:
            self.coordinator.forget_topic(topic.name)
        except KafkaError as error:
            # Harmless: it is as if the groups had committed after the deletion.
            diagnostics.warn("offsets of the deleted topic %s stay: %s", topic.name, error)
