"""The controller: decides about changes to the cluster, and is the one writer of their log.

A change is decided against the image, appended, synced off the serving thread, and only then
applied and answered: nobody sees what a power cut could take back. Changes take turns, so each
is decided against the outcome of the one before, and of the whole log only the last batch may not
be on the disk. That is what recovery goes by: a batch with another behind it was synced once, and
damage to it is never taken for a write that a power cut interrupted. Serving thread only.
"""

from __future__ import annotations

from collections import deque
from collections.abc import Callable, Sequence
from typing import TYPE_CHECKING, Final, NamedTuple, TypeVar

from broker_stub import diagnostics
from broker_stub.blocking_work import Background
from broker_stub.config.broker_config import BrokerConfig
from broker_stub.metadata.elections import elect_leaders
from broker_stub.metadata.image import ClusterImage, Endpoint, collision_key
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
        """Whether a change is under way: a crash now may keep it or not, but nothing else."""
        return self._busy

    @property
    def quorum(self) -> QuorumInfo:
        """Who decides: this node, alone."""
        return QuorumInfo(self._node_id, self._log.leader_epoch, self._log.end_offset)

    def register(self, endpoints: Sequence[Endpoint], rack: str | None) -> None:
        """Tell the cluster that this broker serves, and where; it leads what it alone has.

        Before serving: nothing waits. May block.

        Raises:
            KafkaStorageError: it leads something new, and the disk refused to note that.
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
        elected = elect_leaders(self._image, self._node_id)
        if elected:
            self._apply(self._log.append([record, *elected]))
            self._log.sync()
            return
        # Written with the next change: every start registers, and a start without a sync is faster.
        self._unwritten = [record]
        self._apply([LoggedRecord(self._log.end_offset, record)])

    def create_topics(
        self,
        topics: Sequence[NewTopic],
        done: Callable[[list[PlannedTopic | BrokerResponseError]], None],
        *,
        validate_only: bool = False,
    ) -> None:
        """Create what keeps to the rules; one result per topic, in order."""
        claimed: dict[str, str] = {}  # by this very request
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
        """Let topics grow; the number of partitions that each has then."""
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
        """Change configurations; None for each that is changed."""
        from broker_stub.metadata.config_changes import plan_change  # seldom needed

        def plan(change: ConfigChange) -> tuple[None, list[Message]]:
            return None, plan_change(change, self._image, self._config, self._node_id)

        self._change_each(changes, plan, done, validate_only=validate_only)

    def delete_topics(
        self,
        topic_ids: Sequence[Uuid],
        done: Callable[[list[Uuid | BrokerResponseError]], None],
    ) -> None:
        """Delete the topics of these ids; the id comes back for each that is gone."""
        doomed: set[Uuid] = set()

        def plan(topic_id: Uuid) -> tuple[Uuid, list[Message]]:
            # Asked again here: another change may have deleted it in the meantime.
            if self._image.topic_by_id(topic_id) is None:
                raise UnknownTopicIdError()
            records: list[Message] = []
            if topic_id not in doomed:
                doomed.add(topic_id)
                records.append(RemoveTopicRecord(topic_id=topic_id))
            return topic_id, records

        self._change_each(topic_ids, plan, done)

    def allocate_producer_ids(self, done: Callable[[range | BrokerResponseError], None]) -> None:
        """A block of producer ids that nobody had before."""
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
        """One change of many parts: those that are refused take no others with them."""
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
                # Whether the change is on the disk can't be known any more, and the kernel
                # may have dropped its pages: nothing more is written until a restart reads
                # what is there.
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
