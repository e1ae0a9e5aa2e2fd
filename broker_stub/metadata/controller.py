"""The controller: decides changes to the cluster, and is the only writer of the metadata log.

A change is checked against the image, appended, synced off the serving thread, and only then
applied and answered: no client sees a change that a power failure could undo. Changes run one at a
time, so each is checked against the result of the previous one, and only the last batch of the log
may be unsynced. Recovery relies on that: a batch with another one after it was synced, so damage to
it is never mistaken for an interrupted write. Serving thread only.
"""

from __future__ import annotations

from collections import deque
from collections.abc import Callable, Sequence
from typing import TYPE_CHECKING, Final, NamedTuple, TypeVar

from broker_stub import diagnostics
from broker_stub.blocking_work import Background
from broker_stub.config.broker_config import BrokerConfig
from broker_stub.config.listeners import Endpoint
from broker_stub.metadata.elections import elect_leaders
from broker_stub.metadata.image import ClusterImage, collision_key
from broker_stub.metadata.log import LoggedRecord, MetadataLog
from broker_stub.metadata.placement import spread
from broker_stub.metadata.quorum import QuorumInfo
from broker_stub.metadata.topics import (
    MorePartitions,
    NewTopic,
    PlannedTopic,
    partition_record,
    plan_partitions,
    plan_topic,
)
from pyclient.entropy import Entropy
from pyclient.error_codes import (
    BrokerResponseError,
    InvalidTopicError,
    KafkaStorageError,
    UnknownServerError,
    UnknownTopicIdError,
)
from pyclient.protocol.messages.metadata_records import (
    BrokerEndpoint,
    ProducerIdsRecord,
    RegisterBrokerRecord,
    RemoveTopicRecord,
)
from pyclient.protocol.primitives import Uuid
from pyclient.protocol.schema import Message

if TYPE_CHECKING:
    from broker_stub.metadata.config_changes import ConfigChange

PRODUCER_ID_BLOCK: Final = 1000

Item = TypeVar("Item")
Result = TypeVar("Result")


class _Change(NamedTuple):
    decide: Callable[[], Sequence[Message]]
    done: Callable[[BrokerResponseError | None], None]


class Controller:
    """Decides, logs and applies changes, one after another."""

    def __init__(
        self,
        *,
        node_id: int,
        directory_ids: Sequence[Uuid],
        config: BrokerConfig,
        image: ClusterImage,
        log: MetadataLog,
        background: Background,
        entropy: Entropy,
    ) -> None:
        self._node_id = node_id
        self._directory_ids = directory_ids
        self._config = config
        self._image = image
        self._log = log
        self._background = background
        self._entropy = entropy
        self._waiting: deque[_Change] = deque()
        self._busy = False
        self._failure: KafkaStorageError | None = None
        self._unwritten: list[Message] = []  # goes with the next change, as one batch

    @property
    def is_busy(self) -> bool:
        """Whether a change is under way. Only that change can be lost in a crash."""
        return self._busy

    @property
    def quorum(self) -> QuorumInfo:
        """The quorum: only this node."""
        return QuorumInfo(self._node_id, self._log.leader_epoch, self._log.end_offset)

    def register(self, endpoints: Sequence[Endpoint], rack: str | None, *, was_clean: bool) -> None:
        """Register this broker and its listeners; elect it leader of the partitions it alone has.

        Called before requests are served. May block. `was_clean` tells that it was shut down
        cleanly before.

        Raises:
            KafkaStorageError: it was elected, and the disk refused the change.
        """
        record = RegisterBrokerRecord(
            broker_id=self._node_id,
            incarnation_id=self._entropy.uuid(),
            broker_epoch=-1,
            end_points=[
                BrokerEndpoint(
                    name=one.listener,
                    host=one.host,
                    port=one.port,
                    security_protocol=one.security_protocol,
                )
                for one in endpoints
            ],
            rack=rack,
            fenced=False,
            log_dirs=list(self._directory_ids),
        )
        elected = elect_leaders(self._image, self._node_id, was_clean=was_clean)
        if elected and self._elect([record, *elected]):
            return
        # Written with the next change: every start registers, and not syncing makes it faster.
        self._unwritten = [record]
        self._apply([LoggedRecord(self._log.end_offset, record)])

    def _elect(self, records: Sequence[Message]) -> bool:
        """Log and apply an election; False if the disk refused one that is not vital."""
        try:
            logged = self._log.append(records)
        except KafkaStorageError as error:
            topics = self._image.topics()
            leaders = {one.leader for topic in topics for one in topic.partitions.values()}
            if leaders != {self._node_id}:
                raise
            diagnostics.warn(
                "consumers may not notice lost records: no new leader epoch: %s", error
            )
            return False
        self._apply(logged)
        self._log.sync()
        return True

    def create_topics(
        self,
        topics: Sequence[NewTopic],
        done: Callable[[list[PlannedTopic | BrokerResponseError]], None],
        *,
        validate_only: bool = False,
    ) -> None:
        """Create the topics that are valid; one result per topic, in order."""
        claimed: dict[str, str] = {}  # by this request
        directory_ids = spread(self._directory_ids, self._image)

        def plan(topic: NewTopic) -> tuple[PlannedTopic, list[Message]]:
            planned = self._plan(topic, claimed)
            return planned, planned.records(directory_ids)

        self._change_each(topics, plan, done, validate_only=validate_only)

    def create_partitions(
        self,
        topics: Sequence[MorePartitions],
        done: Callable[[list[int | BrokerResponseError]], None],
        *,
        validate_only: bool = False,
    ) -> None:
        """Add partitions to topics; the results are their new partition counts."""
        directory_ids = spread(self._directory_ids, self._image)

        def plan(wanted: MorePartitions) -> tuple[int, list[Message]]:
            placed = plan_partitions(wanted, self._image, self._entropy.below(1 << 16))
            topic = self._image.topic(wanted.topic)
            assert topic is not None
            first = len(topic.partitions)
            records: list[Message] = [
                partition_record(topic.topic_id, first + index, replicas, next(directory_ids))
                for index, replicas in enumerate(placed)
            ]
            return wanted.total, records

        self._change_each(topics, plan, done, validate_only=validate_only)

    def alter_configs(
        self,
        changes: Sequence[ConfigChange],
        done: Callable[[list[BrokerResponseError | None]], None],
        *,
        validate_only: bool = False,
    ) -> None:
        """Change configurations; the result is None for each that was changed."""
        from broker_stub.metadata.config_changes import plan_change  # rarely needed

        def plan(change: ConfigChange) -> tuple[None, list[Message]]:
            return None, plan_change(change, self._image, self._config, self._node_id)

        self._change_each(changes, plan, done, validate_only=validate_only)

    def delete_topics(
        self,
        topic_ids: Sequence[Uuid],
        done: Callable[[list[Uuid | BrokerResponseError]], None],
    ) -> None:
        """Delete topics by id; the result is the id for each that was deleted."""
        doomed: set[Uuid] = set()

        def plan(topic_id: Uuid) -> tuple[Uuid, list[Message]]:
            # Checked again: an earlier change may have deleted it.
            if self._image.topic_by_id(topic_id) is None:
                raise UnknownTopicIdError()
            records: list[Message] = []
            if topic_id not in doomed:
                doomed.add(topic_id)
                records.append(RemoveTopicRecord(topic_id=topic_id))
            return topic_id, records

        self._change_each(topic_ids, plan, done)

    def allocate_producer_ids(self, done: Callable[[range | BrokerResponseError], None]) -> None:
        """Allocate a block of new producer ids."""
        block = range(0)

        def decide() -> list[Message]:
            nonlocal block
            first = self._image.next_producer_id
            block = range(first, first + PRODUCER_ID_BLOCK)
            return [
                ProducerIdsRecord(
                    broker_id=self._node_id,
                    broker_epoch=self._image.brokers[self._node_id].epoch,
                    next_producer_id=block.stop,
                )
            ]

        self._change(decide, lambda error: done(block if error is None else error))

    def _plan(self, topic: NewTopic, claimed: dict[str, str]) -> PlannedTopic:
        key = collision_key(topic.name)
        if key in claimed:
            raise InvalidTopicError(
                f"Topic '{topic.name}' collides with another topic of the request: {claimed[key]}"
            )
        planned = plan_topic(
            topic,
            topic_id=self._entropy.uuid(),
            image=self._image,
            config=self._config,
            start=self._entropy.below(1 << 16),
        )
        claimed[key] = topic.name
        return planned

    def _change_each(
        self,
        items: Sequence[Item],
        plan: Callable[[Item], tuple[Result, list[Message]]],
        done: Callable[[list[Result | BrokerResponseError]], None],
        *,
        validate_only: bool = False,
    ) -> None:
        """Make one change of many parts. A part that is refused does not affect the others."""
        results: list[Result | BrokerResponseError] = []

        def decide() -> list[Message]:
            records: list[Message] = []
            for item in items:
                try:
                    result, made = plan(item)
                except BrokerResponseError as error:
                    results.append(error)
                else:
                    results.append(result)
                    records += made
            return [] if validate_only else records

        def decided(error: BrokerResponseError | None) -> None:
            done(results if error is None else [error] * len(items))

        self._change(decide, decided)

    def _change(
        self,
        decide: Callable[[], Sequence[Message]],
        done: Callable[[BrokerResponseError | None], None],
    ) -> None:
        self._waiting.append(_Change(decide, done))
        if not self._busy:
            self._next()

    def _next(self) -> None:
        while self._waiting and not self._busy:
            change = self._waiting.popleft()
            if self._failure is not None:
                change.done(self._failure)
                continue
            try:
                records = change.decide()
                logged = self._log.append([*self._unwritten, *records]) if records else []
            except BrokerResponseError as error:
                change.done(error)
                continue
            except Exception as error:  # noqa: BLE001  logged, and answered as an error
                diagnostics.exception("a change of metadata failed")
                change.done(UnknownServerError(repr(error)))
                continue
            if not records:
                change.done(None)
                continue
            logged = logged[len(self._unwritten) :]  # the others are applied
            self._unwritten = []
            self._busy = True
            self._sync(change, logged)

    def _sync(self, change: _Change, logged: list[LoggedRecord]) -> None:
        def synced(error: Exception | None) -> None:
            self._busy = False
            if error is not None:
                # Whether the change is on disk is unknown, and the kernel
                # may have dropped its pages. Write nothing more until a restart has read
                # what is really there.
                diagnostics.warn("the metadata log can't be synced: %s", error)
                self._failure = KafkaStorageError(f"the metadata log can't be synced: {error}")
                outcome: BrokerResponseError | None = self._failure
            else:
                outcome = self._try_to_apply(logged)
            change.done(outcome)
            self._next()

        self._background.submit(self._log.sync, synced)

    def _try_to_apply(self, logged: Sequence[LoggedRecord]) -> BrokerResponseError | None:
        try:
            self._apply(logged)
        except Exception as error:  # noqa: BLE001  logged; who waits for the change is told
            diagnostics.exception("a change of metadata could not be carried out")
            return UnknownServerError(repr(error))
        return None

    def _apply(self, logged: Sequence[LoggedRecord]) -> None:
        for offset, record in logged:
            self._image.apply(record, offset)
