"""`KafkaConsumer`: read records, with kafka-python's arguments and Kafka's behaviour."""

from __future__ import annotations

import itertools
import re
from collections.abc import Callable, Collection, Iterable, Iterator, Mapping
from typing import TYPE_CHECKING, Any, ClassVar, Literal, NoReturn, Unpack, overload

from pyclient.config import consumer as consumer_config
from pyclient.config.common import default_config
from pyclient.consumer.arguments import (
    check_committable,
    check_partitions,
    checked_record_count,
    checked_seek,
    checked_times,
    checked_topics,
)
from pyclient.consumer.caller_lookups import CallerLookups
from pyclient.consumer.core import ConsumerCore
from pyclient.consumer.fetch.completed_fetch import UNLIMITED
from pyclient.consumer.health.report import ConsumerHealth
from pyclient.consumer.interceptors import InterceptedRecords
from pyclient.consumer.offsets.list_offsets import EARLIEST, LATEST
from pyclient.consumer.partition_state import OffsetReset
from pyclient.consumer.poll_loop import PollLoop
from pyclient.consumer.rebalance_listener import ConsumerRebalanceListener
from pyclient.consumer.use_guard import UseGuard
from pyclient.errors import IllegalStateError, KafkaError, KafkaTimeoutError
from pyclient.net.pickling import not_picklable
from pyclient.net.refusals import refuse_missing, refuse_positional
from pyclient.timers import Deadline
from pyclient.types import (
    ConsumerGroupMetadata,
    OffsetAndMetadata,
    OffsetAndTimestamp,
    TopicPartition,
)

if TYPE_CHECKING:
    import pyarrow as pa

    from pyclient.config.options import ConsumerOptions
    from pyclient.consumer.pending import Pending
    from pyclient.metrics import KafkaMetric, MetricName
    from pyclient.records.record import ConsumerRecord

_TABLE_BYTES = 8 << 20  # of fetches in an Arrow table; memory of larger ones is not used again
_NOT_THERE = {
    "bootstrap": "the constructor connects",
    # confluent-kafka's
    "consume": "use poll(timeout_ms, max_records), which returns lists by partition",
    "get_watermark_offsets": "use beginning_offsets() and end_offsets()",
    "incremental_assign": "use assign(), which keeps the positions of partitions that stay",
    "list_topics": "use topics() and partitions_for_topic(topic)",
    "store_offsets": "commit what is processed: commit(offsets)",
}
"""Methods of other clients that consumers do not have, and what to use instead."""

_client_ids = itertools.count(1)


class KafkaConsumer:
    """Reads records from a Kafka cluster, alone or as a member of a group. For one thread.

        consumer = KafkaConsumer(
            "orders", group_id="kitchen", bootstrap_servers="localhost:9092"
        )
        for record in consumer:
            print(record.topic, record.partition, record.offset, record.value)

    A thread of the consumer's own fetches ahead and sends heartbeats; decoding, rebalance
    listeners and callbacks run on the caller's thread, inside `poll` or the loop above. A
    consumer joins its group by its first poll. Without `group_id` it reads all partitions of its
    topics and commits nothing.

    The options are kafka-python's and Java's. `pyclient.config.options.ConsumerOptions` lists them
    with their types, docs/configuration.md also with their defaults. Every call may raise
    IllegalStateError: the consumer is closed, in a forked child, or in use by another thread.

    Attributes:
        DEFAULT_CONFIG: the options and their defaults.
        config: the options in use, by either spelling of their names.
    """

    DEFAULT_CONFIG: ClassVar[dict[str, Any]] = default_config(consumer_config.DEFINITION)

    def __init__(
        self, *topics: str, environment: Any = None, **configs: Unpack[ConsumerOptions]
    ) -> None:
        """Connect to the cluster, and subscribe to the topics, if any.

        Args:
            topics: what to read; or use `subscribe` or `assign` later.
            environment: an `Environment`: clock, network and threads, for tests and simulation.
            configs: options, as in `group_id="kitchen"` or `**{"group.id": "kitchen"}`.

        Raises:
            KafkaConfigurationError: an option is unknown, wrong, or contradicts another.
            NoBrokersAvailable: no broker answered within `bootstrap_timeout_ms`.
        """
        refuse_positional(self, [one for one in topics if isinstance(one, dict)])
        config = consumer_config.parse(configs)
        names = checked_topics(topics)
        client_id = config["client.id"] or f"pyclient-consumer-{next(_client_ids)}"
        self.config = config = config.derive({"client.id": client_id})
        self._core = ConsumerCore(config, client_id, environment)
        self._engine = self._core.engine
        self._subscription = self._core.subscription
        self._in_use = UseGuard()
        self._loop = PollLoop(self._core, self._in_use)
        self._api_timeout_ms: float = config["default.api.timeout.ms"]
        self._lookups = CallerLookups(self._core.requests, self._core.wait, self._api_timeout_ms)
        self._records: Iterator[ConsumerRecord] = self._loop.iterator.cursor
        if self._core.interceptors:
            self._records = InterceptedRecords(self._records, self._core.interceptors)
        try:
            self._core.start()
        except BaseException:
            self._core.interceptors.close()
            raise
        if names:
            self.subscribe(names)

    # --- what to read ------------------------------------------------------------------------

    def subscribe(
        self,
        topics: Iterable[str] = (),
        pattern: str | re.Pattern[str] | None = None,
        listener: ConsumerRebalanceListener | None = None,
    ) -> None:
        """Subscribe to topics, or to all that match a pattern; the group assigns their partitions.

        Replaces an earlier subscription; the next polls rebalance.

        Args:
            topics: names.
            pattern: a regular expression, matched from the start of the name.
            listener: told of partitions that come and go.

        Raises:
            IllegalStateError: partitions were assigned by `assign`; call `unsubscribe` first.
            ValueError: neither topics nor a pattern, or both; not a topic's name.
        """
        with self._in_use:
            self._engine.check_usable("subscribe()")
            names = checked_topics(topics)
            if (pattern is None) == (not names):
                raise ValueError("subscribe() takes either topics or a pattern")
            if listener is not None and not isinstance(listener, ConsumerRebalanceListener):
                raise TypeError("the listener must be a ConsumerRebalanceListener")
            if pattern is None:
                self._subscription.subscribe_topics(names, listener)
            else:
                self._subscription.subscribe_pattern(re.compile(pattern), listener)
            self._core.requests.subscription_changed()

    def subscription(self) -> set[str] | None:
        """The subscribed topics, or those that match the pattern; None without a subscription."""
        if not self._subscription.has_auto_assigned_partitions():
            return None
        return set(self._subscription.topics)

    def assign(self, partitions: Collection[TopicPartition]) -> None:
        """Read exactly these partitions, without group assignment; an empty list unsubscribes.

        Raises:
            IllegalStateError: topics are subscribed to; call `unsubscribe` first.
        """
        with self._in_use:
            self._engine.check_usable("assign()")
            check_partitions(partitions)
            if not partitions:
                self.unsubscribe()
                return
            self._loop.settle()
            self._core.auto_commit.commit_now()
            self._subscription.assign_from_user(list(partitions))
            self._loop.iterator.prune()
            self._core.requests.assignment_changed()

    def assignment(self) -> set[TopicPartition]:
        """The partitions that are assigned now."""
        return self._subscription.assigned()

    def unsubscribe(self) -> None:
        """Drop the subscription or assignment: make the automatic commit, and leave the group."""
        with self._in_use:
            self._engine.check_usable("unsubscribe()")
            self._loop.unsubscribe()

    # --- records -----------------------------------------------------------------------------

    def poll(
        self, timeout_ms: float = 0, max_records: int | None = None, update_offsets: bool = True
    ) -> dict[TopicPartition, list[ConsumerRecord]]:
        """The next records, by partition; empty if none came in time.

        Waits for the first records only, and returns what is there then. With auto-commit, a
        poll commits what earlier polls returned. After an interrupt, the records come again.

        Args:
            timeout_ms: how long to wait.
            max_records: the most to return; by default `max_poll_records`.
            update_offsets: False leaves the positions: the next poll returns the same again.

        Raises:
            NoOffsetForPartitionError, OffsetOutOfRangeError: `auto_offset_reset` is none.
            LogTruncationError: as these; a broker has lost records that were read.
            RecordDeserializationError: a deserializer failed; seek past the record to continue.
            WakeupError: `wakeup` was called.
            CorruptRecordError: a batch is damaged; seek past it to continue.
            GroupAuthorizationError, TopicAuthorizationError: this user may not read it.
        """
        with self._in_use:
            self._check_subscribed()
            count = checked_record_count(max_records, self.config["max.poll.records"])
            found: dict[TopicPartition, list[ConsumerRecord]] = {}
            try:
                for one in self._loop.poll(timeout_ms, count, update_offsets):
                    found[one.at.partition] = one.records
                self._loop.returned()
                return self._core.interceptors.on_consume(found) if found else found
            except BaseException:
                self._loop.recover(is_cut_off=bool(found))
                raise

    def poll_arrow(
        self,
        timeout_ms: float = 0,
        max_records: int | None = None,
        max_bytes: int | None = None,
        end_offsets: Mapping[TopicPartition, int] | None = None,
        headers: bool = False,
    ) -> pa.Table:
        """The next records as one Arrow table, without an object per record; empty if none came.

        The columns: key, value (binary: neither deserializers nor the interceptors' `on_consume`
        are called, which take an object per record), topic (dictionary of
        string), partition (int32), offset (int64), timestamp (timestamp[ms, UTC]), timestamp_type
        (int32: 0 CreateTime, 1 LogAppendTime, -1 none), and headers if asked for (list of struct
        of key: string, value: binary). Positions move as with `poll`.

        Args:
            timeout_ms: how long to wait for the first records.
            max_records: the most rows to return; by default as many as are there.
            max_bytes: stop at the fetch with which it is reached; by default 8 MiB, or
                `fetch_max_bytes` if that is set.
            end_offsets: return no record at or behind these; at once if all are reached.
            headers: have a column of headers.
        """
        with self._in_use:
            self._check_subscribed()
            size = _TABLE_BYTES if max_bytes is None else max_bytes
            if max_bytes is None and self.config.is_explicit("fetch.max.bytes"):
                size = self.config["fetch.max.bytes"]
            count = checked_record_count(max_records, UNLIMITED)
            check_partitions(end_offsets or ())
            table = None
            try:
                table = self._loop.poll_arrow(timeout_ms, max(size, 1), count, end_offsets, headers)
                self._loop.returned()
                return table
            except BaseException:
                self._loop.recover(is_cut_off=table is not None)
                raise

    def __iter__(self) -> Iterator[ConsumerRecord]:
        # A subclass, or a library that traces, may have replaced `__next__`.
        return self._records if type(self).__next__ is _NEXT else self

    def __next__(self) -> ConsumerRecord:
        return next(self._records)

    def wakeup(self) -> None:
        """Make the waiting call, or else the next one, raise WakeupError. Any thread."""
        self._loop.wakeup()

    def pause(self, *partitions: TopicPartition) -> None:
        """Return no records of these partitions until `resume`, without a rebalance."""
        with self._in_use:
            check_partitions(partitions)
            self._loop.iterator.rewind(partitions)
            self._subscription.pause(partitions)

    def resume(self, *partitions: TopicPartition) -> None:
        """Return records of these partitions again."""
        with self._in_use:
            check_partitions(partitions)
            self._subscription.resume(partitions)
            self._engine.wake()

    def paused(self) -> set[TopicPartition]:
        """The partitions that are paused."""
        return self._subscription.paused()

    # --- positions ---------------------------------------------------------------------------

    def seek(self, partition: TopicPartition, offset: int | OffsetAndMetadata) -> None:
        """Continue at an offset.

        With the leader epoch of an OffsetAndMetadata it is validated: if the log has lost the
        record before it since, reading begins where the log differs.

        Raises:
            ValueError: the offset is not an integer from 0 on, or the partition not assigned.
        """
        with self._in_use:
            self._check_assigned([partition])
            at, leader_epoch = checked_seek(offset)
            self._loop.iterator.rewind([partition])
            self._subscription.seek(partition, at, leader_epoch)
            self._engine.wake()

    def seek_to_beginning(self, *partitions: TopicPartition) -> None:
        """Continue at the first offset of these partitions, or of all assigned ones."""
        self._seek_to(partitions, OffsetReset.EARLIEST)

    def seek_to_end(self, *partitions: TopicPartition) -> None:
        """Continue behind the last record of these partitions, or of all assigned ones."""
        self._seek_to(partitions, OffsetReset.LATEST)

    def _seek_to(self, partitions: Collection[TopicPartition], where: OffsetReset) -> None:
        with self._in_use:
            wanted = partitions or sorted(self._subscription.assigned())
            if not wanted:
                raise ValueError("no partitions are assigned")
            self._check_assigned(wanted)
            self._loop.iterator.rewind(wanted)
            self._subscription.request_reset(wanted, where)
            self._engine.wake()

    def position(self, partition: TopicPartition, timeout_ms: float | None = None) -> int:
        """The offset of the next record that `poll` returns; looks it up if necessary.

        Raises:
            IllegalStateError: the partition is not assigned.
            KafkaTimeoutError: it could not be looked up in time.
        """
        with self._in_use:
            check_partitions([partition])
            self._loop.settle()
            if self._subscription.position(partition) is None:
                self._subscription.release([partition])
                self._engine.wake()

            def found_or_failed() -> bool:
                self._core.inbox.raise_error()
                return self._subscription.position(partition) is not None

            self._core.wait.until(found_or_failed, self._deadline(timeout_ms))
            found = self._subscription.position(partition)
            if found is None:
                why = self._core.why_no_position(partition)
                raise KafkaTimeoutError(f"the position in {partition} was not found in time: {why}")
            return found

    def highwater(self, partition: TopicPartition) -> int | None:
        """The offset behind the partition's last record, as of the last fetch."""
        check_partitions([partition])
        offsets = self._subscription.offsets(partition)
        return None if offsets is None else offsets.high_watermark

    def lag(self, partition: TopicPartition) -> int | None:
        """How far the position is behind the end, or the last stable offset; None if unknown."""
        with self._in_use:
            check_partitions([partition])
            self._loop.settle()
            return self._subscription.lag(partition)

    # --- commits -----------------------------------------------------------------------------

    def commit(
        self,
        offsets: Mapping[TopicPartition, OffsetAndMetadata] | None = None,
        timeout_ms: float | None = None,
    ) -> None:
        """Commit offsets to the group, by default the positions, and wait until it is done.

        Raises:
            CommitFailedError: the group has rebalanced without this consumer.
            RebalanceInProgressError: keep polling, then commit again.
            KafkaTimeoutError: it did not happen within `timeout_ms`.
            IllegalStateError: there is no `group_id`.
        """
        with self._in_use:
            self._core.commits.commit(self._offsets(offsets), timeout_ms)

    def commit_async(
        self,
        offsets: Mapping[TopicPartition, OffsetAndMetadata] | None = None,
        callback: Callable[[Mapping[TopicPartition, OffsetAndMetadata], KafkaError | None], object]
        | None = None,
    ) -> Pending[None]:
        """Commit offsets to the group, by default the positions, without waiting.

        A later poll calls callback(offsets, None or the error).
        """
        with self._in_use:
            return self._core.commits.commit_async(self._offsets(offsets), callback)

    @overload
    def committed(
        self,
        partition: TopicPartition,
        metadata: Literal[False] = False,
        timeout_ms: float | None = None,
    ) -> int | None: ...

    @overload
    def committed(
        self, partition: TopicPartition, metadata: Literal[True], timeout_ms: float | None = None
    ) -> OffsetAndMetadata | None: ...

    @overload
    def committed(
        self, partition: TopicPartition, metadata: bool, timeout_ms: float | None = None
    ) -> int | OffsetAndMetadata | None: ...

    def committed(
        self,
        partition: TopicPartition,
        metadata: bool = False,
        timeout_ms: float | None = None,
    ) -> int | OffsetAndMetadata | None:
        """The committed offset of any partition, or OffsetAndMetadata; None if there is none."""
        with self._in_use:
            check_partitions([partition])
            found = self._lookups.committed(partition, timeout_ms)
            return found if found is None or metadata else found.offset

    def enforce_rebalance(self, reason: str | None = None) -> None:
        """Have the group rebalance, though nothing has changed that it knows of.

        The next polls rejoin the group; a rebalance that is under way is not repeated. For
        assignors that take more into account than topics and members.

        Args:
            reason: for the coordinator's log.

        Raises:
            IllegalStateError: there is no `group_id`.
        """
        with self._in_use:
            self._engine.check_usable("enforce_rebalance()")
            self._core.requests.enforce_rebalance(reason or "the program asked for a rebalance")

    def group_metadata(self) -> ConsumerGroupMetadata:
        """A snapshot of the membership, for a producer's transactions."""
        return self._core.membership.metadata()

    # --- offsets, topics and figures ---------------------------------------------------------

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
        """The first offset at or after a timestamp (ms since 1970), by partition; None if none.

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
            return self._lookups.offsets(timestamps, timeout_ms)

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
            return self._lookups.topics(internal)

    def bootstrap_connected(self) -> bool:
        """Whether a broker has answered."""
        return self._engine.metadata.snapshot.version > 0

    @overload
    def metrics(self, raw: Literal[False] = False) -> dict[str, dict[str, float]]: ...

    @overload
    def metrics(self, raw: Literal[True]) -> dict[MetricName, KafkaMetric]: ...

    def metrics(
        self, raw: bool = False
    ) -> dict[str, dict[str, float]] | dict[MetricName, KafkaMetric]:
        """The metrics, by Kafka's groups and names; `raw` returns a `KafkaMetric` for each."""
        metrics = self._core.metrics
        if raw:
            return metrics.metrics(self._subscription, self._core.client_id)
        return metrics.snapshot(self._subscription)

    def health(self) -> ConsumerHealth:
        """What each partition and the membership are doing, since when, and what is stalled.

        Stalls are noticed within ten seconds; each is logged once, and again when it ends. Any
        thread may call this.
        """
        return self._core.health.health()

    # --- the end -----------------------------------------------------------------------------

    def close(self, autocommit: bool = True, timeout_ms: float | None = None) -> None:
        """Make the automatic commit, leave the group, and end. Closing twice does no harm.

        Args:
            autocommit: False leaves out the last automatic commit.
            timeout_ms: how long this may take; by default `request_timeout_ms`.
        """
        with self._in_use:
            if self._loop.is_closed:
                return
            timeout_ms = self.config["request.timeout.ms"] if timeout_ms is None else timeout_ms
            try:
                self._loop.close(autocommit, timeout_ms)
            finally:
                self._core.interceptors.close()
                for key in ("key.deserializer", "value.deserializer"):
                    close = getattr(self.config[key], "close", None)
                    if callable(close):
                        close()

    if not TYPE_CHECKING:  # a type checker would take every name

        def __getattr__(self, name: str) -> NoReturn:
            refuse_missing(self, name, _NOT_THERE)

    def __reduce__(self) -> NoReturn:
        raise not_picklable(self)

    def __enter__(self) -> KafkaConsumer:
        return self

    def __exit__(self, exception_type: object, *exception: object) -> None:
        # After an error the last records may not have been processed.
        self.close(autocommit=exception_type is None)

    # --- checks ------------------------------------------------------------------------------

    def _deadline(self, timeout_ms: float | None) -> Deadline:
        return Deadline(
            self._engine.clock, self._api_timeout_ms if timeout_ms is None else timeout_ms
        )

    def _check_subscribed(self) -> None:
        self._engine.check_usable("poll()")
        if not self._subscription.has_any():
            raise IllegalStateError("there is nothing to poll: subscribe() or assign() first")

    def _check_assigned(self, partitions: Collection[TopicPartition]) -> None:
        check_partitions(partitions)
        for partition in partitions:
            if not self._subscription.is_assigned(partition):
                raise ValueError(f"{partition} is not assigned to this consumer")

    def _offsets(
        self, offsets: Mapping[TopicPartition, OffsetAndMetadata] | None
    ) -> Mapping[TopicPartition, OffsetAndMetadata]:
        self._engine.check_usable("committing")
        if offsets is None:
            self._loop.settle()
            return self._subscription.positions()
        check_committable(offsets)
        return dict(offsets)


_NEXT = KafkaConsumer.__next__
