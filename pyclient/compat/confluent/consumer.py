"""confluent-kafka's `Consumer` over `KafkaConsumer`.

Callbacks (rebalances, commits, errors, statistics) run inside `poll`, `consume` and `close`.
"""

import re
from collections.abc import Callable, Collection, Mapping, Sequence
from typing import Any, Self

from pyclient.compat.confluent.cluster_metadata import ClusterMetadata, ClusterQueries
from pyclient.compat.confluent.configuration import CONSUMER, refused, translate
from pyclient.compat.confluent.error import (
    INVALID_ARG,
    NO_OFFSET,
    NOT_IMPLEMENTED,
    PARTITION_EOF,
    STATE,
    UNKNOWN_PARTITION,
    KafkaError,
    KafkaException,
    convert,
    exception,
    failure,
)
from pyclient.compat.confluent.events import Events
from pyclient.compat.confluent.message import ConsumedMessage, Message
from pyclient.compat.confluent.notices import Notices
from pyclient.compat.confluent.rebalance import OnRebalance, RebalanceCallbacks
from pyclient.compat.confluent.stored_offsets import StoredOffsets
from pyclient.compat.confluent.topic_partition import (
    OFFSET_BEGINNING,
    OFFSET_END,
    OFFSET_INVALID,
    OFFSET_TAIL_BASE,
    TopicPartition,
    ours,
    theirs,
)
from pyclient.consumer.consumer import KafkaConsumer
from pyclient.errors import IllegalStateError, KafkaConfigurationError
from pyclient.errors import KafkaError as ClientError
from pyclient.timers import Deadline
from pyclient.types import ConsumerGroupMetadata, OffsetAndMetadata
from pyclient.types import TopicPartition as Partition

END_LOOK_MS = 50
"""How often partitions are looked at for their ends (`enable.partition.eof`)."""


class Consumer:
    """Reads messages as a member of a group, or of assigned partitions. For one thread."""

    def __init__(self, *config: Mapping[str, Any], **options: Any) -> None:
        """Take a dict of librdkafka's options, and keywords with underscores for dots."""
        translated = translate(CONSUMER, config, options)
        own = translated.own
        if not translated.options.get("group.id"):
            raise ValueError("Failed to create consumer: group.id must be set")
        self._stores_by_itself: bool = own["enable.auto.offset.store"]
        commits_by_itself = own["enable.auto.commit"]
        enable = {"enable.auto.commit": commits_by_itself and self._stores_by_itself}
        try:
            self._consumer = consumer = KafkaConsumer(**{**translated.options, **enable})
        except KafkaConfigurationError as error:
            raise refused(error) from error
        core = consumer._core
        self._clock = core.engine.clock
        self._on_commit: Callable[[KafkaError | None, list[TopicPartition]], Any] | None = own[
            "on_commit"
        ]
        self._stored = StoredOffsets(
            self._clock,
            consumer.config["auto.commit.interval.ms"]
            if commits_by_itself and not self._stores_by_itself
            else None,
        )
        self._reports_ends: bool = own["enable.partition.eof"]
        self._ends: dict[Partition, int] = {}
        self._rebalance = RebalanceCallbacks(self)
        self._events = Events(self._clock)
        self._queries = ClusterQueries(translated.options)
        self._notices = Notices(
            own, core.engine, consumer.metrics, "consumer", core.client_id, lambda: 0
        )
        self._loop = consumer._loop
        # Whether `poll` has nothing to look at but messages.
        self._is_simple = not (
            self._reports_ends or own["error_cb"] or own["stats_cb"] or not self._stores_by_itself
        )
        self._is_closed = False

    # --- what to read ------------------------------------------------------------------------

    def subscribe(
        self,
        topics: Sequence[str],
        on_assign: OnRebalance | None = None,
        on_revoke: OnRebalance | None = None,
        on_lost: OnRebalance | None = None,
    ) -> None:
        """Subscribe to topics; a name that begins with `^` is a regular expression."""
        if isinstance(topics, str) or not all(isinstance(one, str) for one in topics):
            raise TypeError("expected a list of topic names")
        self._check_open()
        self._rebalance.call(on_assign, on_revoke, on_lost)
        try:
            if self._consumer.subscription() is None and self._consumer.assignment():
                self._consumer.unsubscribe()
            if not topics:
                self._consumer.unsubscribe()
            elif any(one.startswith("^") for one in topics):
                # Names among expressions match as a whole.
                parts = [one if one.startswith("^") else f"{re.escape(one)}$" for one in topics]
                self._consumer.subscribe(pattern="|".join(parts), listener=self._rebalance)
            else:
                self._consumer.subscribe(topics, listener=self._rebalance)
        except (ClientError, ValueError, re.error) as error:
            raise self._translated(error) from error

    def unsubscribe(self) -> None:
        """Drop the subscription and leave the group."""
        self._check_open()
        self._consumer.unsubscribe()

    def assign(self, partitions: Sequence[TopicPartition]) -> None:
        """Read exactly these partitions, from the offsets that they carry.

        Without an offset: from the committed one, or else as `auto.offset.reset` says. In a
        rebalance callback, this only says where to start.
        """
        self._check_open()
        wanted = {ours(one): one.offset for one in partitions}
        if self._rebalance.is_calling:
            self._start_at(wanted)
            return
        if self._consumer.subscription() is not None:
            self._consumer.unsubscribe()
        gone = self._consumer.assignment() - set(wanted)
        self._consumer.assign(list(wanted))
        self._stored.forget(gone)
        self._ends.clear()
        self._start_at(wanted)

    def unassign(self) -> None:
        """Read nothing."""
        if not self._rebalance.is_calling:
            self.assign([])

    def incremental_assign(self, partitions: Sequence[TopicPartition]) -> None:
        """Read these partitions, too."""
        self._check_open()
        wanted = {ours(one): one.offset for one in partitions}
        if not self._rebalance.is_calling:
            self._consumer.assign([*self._consumer.assignment(), *wanted])
        self._start_at(wanted)

    def incremental_unassign(self, partitions: Sequence[TopicPartition]) -> None:
        """Read these partitions no longer."""
        self._check_open()
        gone = {ours(one) for one in partitions}
        if not self._rebalance.is_calling:
            missing = gone - self._consumer.assignment()
            if missing:
                raise failure(INVALID_ARG, f"{sorted(missing)[0]} is not assigned")
            self._consumer.assign(list(self._consumer.assignment() - gone))
            self._stored.forget(gone)

    def assignment(self) -> list[TopicPartition]:
        """The partitions that are assigned now."""
        self._check_open()
        return [theirs(one) for one in sorted(self._consumer.assignment())]

    def _start_at(self, wanted: Mapping[Partition, int]) -> None:
        assigned = self._consumer.assignment()
        for partition, offset in wanted.items():
            if partition not in assigned:
                continue
            self._ends.pop(partition, None)
            if offset >= 0:
                self._consumer.seek(partition, offset)
            elif offset == OFFSET_BEGINNING:
                self._consumer.seek_to_beginning(partition)
            elif offset == OFFSET_END:
                self._consumer.seek_to_end(partition)
            elif offset <= OFFSET_TAIL_BASE:
                first = self._consumer.beginning_offsets([partition])[partition]
                end = self._consumer.end_offsets([partition])[partition]
                self._consumer.seek(partition, max(first, end - (OFFSET_TAIL_BASE - offset)))

    def _give_up(self, partitions: Collection[Partition], is_lost: bool) -> None:
        """Partitions are gone: commit what was stored of them, unless others have them already."""
        stored = self._stored.of(partitions)
        self._stored.forget(partitions)
        for partition in partitions:
            self._ends.pop(partition, None)
        if stored and self._stored.commits_by_itself and not is_lost:
            self._consumer.commit(stored)

    # --- messages ----------------------------------------------------------------------------

    def poll(self, timeout: float = -1) -> Message | None:
        """The next message or error; None if none comes within `timeout` seconds.

        A negative timeout waits for as long as it takes.
        """
        try:
            if self._is_simple and not self._is_closed:
                record = self._loop.next_record(_timeout_ms(timeout))
                return None if record is None else ConsumedMessage(record)
            return self._poll(_timeout_ms(timeout))
        except ClientError as error:
            return self._error_message(error)

    def consume(self, num_messages: int = 1, timeout: float = -1) -> list[Message]:
        """Up to `num_messages` messages: all that come within `timeout` seconds."""
        self._check_open()
        if not 0 <= num_messages <= 1_000_000:
            raise ValueError("num_messages must be between 0 and 1000000 (1M)")
        deadline = Deadline(self._clock, _timeout_ms(timeout))
        messages: list[Message] = []
        while len(messages) < num_messages:
            missing = num_messages - len(messages)
            try:
                self._attend()
                found = self._consumer.poll(self._slice_ms(deadline), missing)
            except ClientError as error:
                messages.append(self._error_message(error))
                break
            for records in found.values():
                messages += map(ConsumedMessage, records)
            if not found:
                messages += self._new_ends()[:missing]
                if deadline.expired:
                    break
        return messages

    def _poll(self, timeout_ms: float) -> Message | None:
        """`poll` with everything that may happen besides messages."""
        self._check_open()
        deadline = Deadline(self._clock, timeout_ms)
        while True:
            self._attend()
            record = self._loop.next_record(self._slice_ms(deadline))
            if record is not None:
                return ConsumedMessage(record)
            ends = self._new_ends(1)
            if ends:
                return ends[0]
            if deadline.expired:
                return None

    def _slice_ms(self, deadline: Deadline) -> float:
        """How long to wait at once, so that nothing else is late."""
        slice_ms = min(deadline.remaining_ms(), self._notices.next_ms())
        return min(slice_ms, END_LOOK_MS) if self._reports_ends else slice_ms

    def _attend(self) -> None:
        self._notices.collect(self._events)
        self._events.serve(0)
        due = self._stored.due()
        if due:
            self._consumer.commit_async(due, self._committed)

    def _new_ends(self, limit: int | None = None) -> list[Message]:
        """An end-of-partition event for each partition whose end was reached since the last one."""
        ends: list[Message] = []
        if not self._reports_ends:
            return ends
        for partition in sorted(self._consumer.assignment()):
            if len(ends) == limit:
                break
            if self._consumer.lag(partition) != 0:
                continue
            offset = self._loop.core.subscription.position(partition)
            if offset is None or self._ends.get(partition) == offset:
                continue
            self._ends[partition] = offset
            error = KafkaError(PARTITION_EOF, f"the end of {partition} is reached: {offset}")
            ends.append(Message(partition.topic, partition.partition, offset, error=error))
        return ends

    def _error_message(self, error: ClientError) -> Message:
        if self._is_closed:
            raise RuntimeError("Consumer closed") from error
        if isinstance(error, IllegalStateError):
            raise exception(error) from error
        return Message(error=convert(error))

    def pause(self, partitions: Sequence[TopicPartition]) -> None:
        """Return no messages of these partitions until `resume`."""
        self._on_assigned(self._consumer.pause, partitions)

    def resume(self, partitions: Sequence[TopicPartition]) -> None:
        """Return messages of these partitions again."""
        self._on_assigned(self._consumer.resume, partitions)

    def _on_assigned(self, call: Callable[..., None], partitions: Sequence[TopicPartition]) -> None:
        self._check_open()
        try:
            call(*(ours(one) for one in partitions))
        except (ClientError, ValueError) as error:
            raise self._translated(error) from error

    # --- offsets -----------------------------------------------------------------------------

    def seek(self, partition: TopicPartition) -> None:
        """Continue at the partition's offset."""
        self._check_open()
        wanted = ours(partition)
        if wanted not in self._consumer.assignment():
            raise failure(UNKNOWN_PARTITION, f"{wanted} is not assigned")
        self._start_at({wanted: partition.offset})

    def position(self, partitions: Sequence[TopicPartition]) -> list[TopicPartition]:
        """The offset of the next message of each partition, if it is known."""
        self._check_open()
        self._loop.settle()
        found = []
        for one in partitions:
            offset = self._loop.core.subscription.positions().get(ours(one))
            found.append(theirs(ours(one), OFFSET_INVALID if offset is None else offset.offset))
        return found

    def store_offsets(
        self, message: Message | None = None, offsets: Sequence[TopicPartition] | None = None
    ) -> None:
        """Have the next commit include these: behind a message, or given offsets.

        Raises:
            KafkaException: `enable.auto.offset.store` is on, or a partition is not assigned.
        """
        self._check_open()
        if self._stores_by_itself:
            raise failure(INVALID_ARG, "store_offsets() needs enable.auto.offset.store=false")
        wanted = _offsets(message, offsets)
        if wanted is None:
            raise TypeError("expected a message or offsets")
        assigned = self._consumer.assignment()
        for partition in wanted:
            if partition not in assigned:
                raise failure(STATE, f"{partition} is not assigned")
        self._stored.store(wanted)

    def commit(
        self,
        message: Message | None = None,
        offsets: Sequence[TopicPartition] | None = None,
        asynchronous: bool = True,
    ) -> list[TopicPartition] | None:
        """Commit behind a message, given offsets, or else what was returned or stored.

        Args:
            message: a message that was processed.
            offsets: partitions with the offset to commit.
            asynchronous: do not wait; `on_commit` is told the outcome.

        Raises:
            KafkaException: the commit failed, or there is nothing to commit.
        """
        self._check_open()
        if message is not None and message.error() is not None:
            raise failure(INVALID_ARG, "a message with an error cannot be committed")
        given = _offsets(message, offsets)
        try:
            wanted = self._uncommitted() if given is None else given
            if asynchronous:
                self._consumer.commit_async(wanted, self._committed)
                return None
            self._consumer.commit(wanted)
        except (ClientError, ValueError) as error:
            raise self._translated(error) from error
        return [theirs(one, offset.offset, offset.metadata) for one, offset in wanted.items()]

    def _uncommitted(self) -> Mapping[Partition, OffsetAndMetadata]:
        found: Mapping[Partition, OffsetAndMetadata]
        if self._stores_by_itself:
            self._loop.settle()
            found = self._loop.core.subscription.positions()
        else:
            found = self._stored.all()
        if not found:
            raise failure(NO_OFFSET, "there is no offset to commit")
        return found

    def _committed(
        self, offsets: Mapping[Partition, OffsetAndMetadata], error: ClientError | None
    ) -> None:
        if self._on_commit is not None:
            failed = None if error is None else convert(error)
            self._on_commit(
                failed,
                [theirs(one, it.offset, it.metadata, failed) for one, it in offsets.items()],
            )

    def committed(
        self, partitions: Sequence[TopicPartition], timeout: float = -1
    ) -> list[TopicPartition]:
        """The committed offsets; OFFSET_INVALID where there is none."""
        self._check_open()
        core = self._loop.core
        timeout_ms = self._api_timeout_ms(timeout)
        if timeout_ms is None:
            timeout_ms = self._consumer.config["default.api.timeout.ms"]
        try:
            pending = core.requests.committed([ours(one) for one in partitions], timeout_ms)
            found = core.wait.result(pending, timeout_ms, "committed()")
        except ClientError as error:
            raise exception(error) from error
        committed = []
        for one in partitions:
            offset = found.get(ours(one))
            if offset is None:
                committed.append(theirs(ours(one)))
            else:
                committed.append(theirs(ours(one), offset.offset, offset.metadata))
        return committed

    def get_watermark_offsets(
        self, partition: TopicPartition, timeout: float = -1, cached: bool = False
    ) -> tuple[int, int]:
        """The first offset and the one behind the last message.

        Args:
            partition: any partition.
            timeout: seconds.
            cached: as of the last fetch, without asking a broker.
        """
        self._check_open()
        wanted = ours(partition)
        if cached:
            offsets = self._loop.core.subscription.offsets(wanted)
            if offsets is None or offsets.high_watermark is None:
                return OFFSET_INVALID, OFFSET_INVALID
            start = offsets.log_start_offset
            return OFFSET_INVALID if start is None else start, offsets.high_watermark
        timeout_ms = self._api_timeout_ms(timeout)
        try:
            first = self._consumer.beginning_offsets([wanted], timeout_ms)
            end = self._consumer.end_offsets([wanted], timeout_ms)
        except ClientError as error:
            raise exception(error) from error
        return first[wanted], end[wanted]

    def offsets_for_times(
        self, partitions: Sequence[TopicPartition], timeout: float = -1
    ) -> list[TopicPartition]:
        """The first offsets at or after the times (ms) that the partitions carry as offsets."""
        self._check_open()
        try:
            found = self._consumer.offsets_for_times(
                {ours(one): one.offset for one in partitions}, self._api_timeout_ms(timeout)
            )
        except (ClientError, ValueError) as error:
            raise self._translated(error) from error
        located = []
        for one in partitions:
            at = found.get(ours(one))
            located.append(theirs(ours(one), OFFSET_END if at is None else at.offset))
        return located

    # --- the group and the cluster -----------------------------------------------------------

    def memberid(self) -> str:
        """The member's id in its group."""
        self._check_open()
        return self._consumer.group_metadata().member_id

    def consumer_group_metadata(self) -> ConsumerGroupMetadata:
        """The membership, for a producer's `send_offsets_to_transaction`."""
        self._check_open()
        return self._consumer.group_metadata()

    def list_topics(self, topic: str | None = None, timeout: float = -1) -> ClusterMetadata:
        """Brokers, topics and their partitions."""
        self._check_open()
        return self._queries.metadata(topic, timeout)

    def cluster_id(self, timeout: float = -1) -> str | None:
        """The id of the cluster."""
        return self.list_topics(timeout=timeout).cluster_id

    def set_sasl_credentials(self, username: str, password: str) -> None:
        """Not possible: SASL is not supported yet."""
        del username, password
        raise failure(NOT_IMPLEMENTED, "SASL is not supported yet")

    # --- the end -----------------------------------------------------------------------------

    def close(self) -> None:
        """Commit, leave the group, and end. Closing twice does no harm."""
        if self._is_closed:
            return
        try:
            stored = self._stored.all()
            if stored and self._stored.commits_by_itself and self._consumer.assignment():
                self._consumer.commit(stored)
        except ClientError as error:
            raise exception(error) from error
        finally:
            self._is_closed = True
            self._consumer.close()
            self._queries.close()

    def __enter__(self) -> Self:
        return self

    def __exit__(self, *_: object) -> None:
        self.close()

    # --- checks ------------------------------------------------------------------------------

    def _check_open(self) -> None:
        if self._is_closed:
            raise RuntimeError("Consumer closed")

    def _api_timeout_ms(self, timeout: float) -> float | None:
        return None if timeout is None or timeout < 0 else timeout * 1000

    def _translated(self, error: Exception) -> Exception:
        if isinstance(error, ClientError):
            return exception(error)
        return KafkaException(KafkaError(INVALID_ARG, str(error)))


def _timeout_ms(timeout: float) -> float:
    return float("inf") if timeout is None or timeout < 0 else timeout * 1000


def _offsets(
    message: Message | None, offsets: Sequence[TopicPartition] | None
) -> dict[Partition, OffsetAndMetadata] | None:
    """The offsets in the arguments of a commit; None if there are none."""
    if message is not None and offsets is not None:
        raise ValueError("expected either a message or offsets, not both")
    if message is not None:
        topic, partition, offset = message.topic(), message.partition(), message.offset()
        if topic is None or partition is None or offset is None:
            raise ValueError("the message has no offset")
        return {Partition(topic, partition): OffsetAndMetadata(offset + 1, "")}
    if offsets is not None:
        return {ours(one): OffsetAndMetadata(one.offset, one.metadata or "") for one in offsets}
    return None
