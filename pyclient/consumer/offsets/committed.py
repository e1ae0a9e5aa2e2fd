"""Looks up committed offsets at the coordinator: for the program, and for partitions that start.

The I/O thread only. A failed lookup is retried until its deadline; that of a partition that starts
has no deadline.
"""

import logging
import math
from collections.abc import Callable, Collection, Iterable, Mapping, Sequence
from functools import partial
from typing import Protocol, TypeAlias

from pyclient.consumer.cluster import Cluster
from pyclient.consumer.group.coordinator import CoordinatorFinder
from pyclient.consumer.group.membership import OffsetReader
from pyclient.consumer.inbox import Inbox
from pyclient.consumer.offsets.named_commits import NamedCommits
from pyclient.consumer.offsets.reset import start_by_default
from pyclient.consumer.partition_state import PartitionEpoch
from pyclient.consumer.subscription_state import SubscriptionState
from pyclient.error_codes import NONE, for_code
from pyclient.errors import KafkaError, KafkaTimeoutError
from pyclient.net.request_manager import Outcome, PollResult, UnsentRequest
from pyclient.protocol.messages.offset_fetch import (
    OffsetFetchRequest,
    OffsetFetchRequestGroup,
    OffsetFetchRequestTopic,
    OffsetFetchRequestTopics,
    OffsetFetchResponse,
    OffsetFetchResponsePartition,
    OffsetFetchResponsePartitions,
)
from pyclient.protocol.primitives import ZERO_UUID
from pyclient.timers import ExponentialBackoff
from pyclient.types import OffsetAndMetadata, TopicPartition

log = logging.getLogger(__name__)

_NOT_COMMITTED = -1

_AnyPartition: TypeAlias = OffsetFetchResponsePartition | OffsetFetchResponsePartitions

CommittedOffsets: TypeAlias = dict[TopicPartition, OffsetAndMetadata]
"""Partitions without a committed offset are left out."""


class OffsetReaders(Protocol):
    """What lookups ask of the membership."""

    def offset_reader(self) -> OffsetReader:
        """The member as which to look up committed offsets."""

    def on_lookup_error(self, error: KafkaError, reader: OffsetReader) -> bool:
        """The coordinator refused a lookup: whether to repeat it as the member that is now."""


class _Lookup:
    __slots__ = ("expires_at_ms", "failures", "on_done", "partitions", "retry_at_ms", "trouble")

    def __init__(
        self,
        partitions: Collection[TopicPartition],
        on_done: Callable[[CommittedOffsets | KafkaError], None],
        expires_at_ms: float,
    ) -> None:
        self.partitions = partitions
        self.on_done = on_done
        self.expires_at_ms = expires_at_ms
        self.retry_at_ms = 0.0
        self.failures = 0
        self.trouble: KafkaError | None = None


class CommittedOffsetManager:
    """Asks the coordinator for committed offsets."""

    def __init__(
        self,
        group_id: str,
        coordinator: CoordinatorFinder,
        subscription: SubscriptionState,
        cluster: Cluster,
        backoff: ExponentialBackoff,
        inbox: Inbox,
        named: NamedCommits,
        membership: OffsetReaders,
    ) -> None:
        self._group_id = group_id
        self._coordinator = coordinator
        self._subscription = subscription
        self._cluster = cluster
        self._named = named
        self._membership = membership
        self._backoff = backoff
        self._inbox = inbox
        self._waiting: list[_Lookup] = []
        self._in_flight: dict[_Lookup, None] = {}
        self._starting: set[PartitionEpoch] = set()
        self._seen_version = -1

    def lookup(
        self,
        partitions: Collection[TopicPartition],
        on_done: Callable[[CommittedOffsets | KafkaError], None],
        expires_at_ms: float,
    ) -> None:
        """Look partitions up; `on_done` is called on the I/O thread."""
        self._waiting.append(_Lookup(partitions, on_done, expires_at_ms))

    def poll(self, now_ms: float) -> PollResult:
        """The OffsetFetch requests that can be sent now."""
        self._start_partitions()
        for lookup in [one for one in self._in_flight if now_ms >= one.expires_at_ms]:
            del self._in_flight[lookup]
            lookup.on_done(self._timeout(lookup))
        if not self._waiting:
            return PollResult((), self._next_expiry_ms())
        self._coordinator.want()
        connection = self._coordinator.free_connection
        requests = []
        waiting, self._waiting = self._waiting, []
        for lookup in waiting:
            if now_ms >= lookup.expires_at_ms:
                lookup.on_done(self._timeout(lookup))
            elif connection is None or now_ms < lookup.retry_at_ms:
                self._waiting.append(lookup)
            else:
                requests.append(self._request(lookup, connection))
        wake_at_ms = min(
            (
                min(one.expires_at_ms, math.inf if connection is None else one.retry_at_ms)
                for one in self._waiting
            ),
            default=math.inf,
        )
        return PollResult(requests, min(wake_at_ms, self._next_expiry_ms()))

    def _next_expiry_ms(self) -> float:
        return min((one.expires_at_ms for one in self._in_flight), default=math.inf)

    def close(self, error: KafkaError) -> None:
        """Fail the lookups that were not answered."""
        waiting, self._waiting = self._waiting, []
        for lookup in waiting:
            lookup.on_done(error)

    # --- partitions that start ---------------------------------------------------------------

    def _start_partitions(self) -> None:
        version = self._subscription.version
        if version == self._seen_version:
            return
        self._seen_version = version
        needed = self._subscription.to_initialize()
        self._starting.intersection_update(needed)
        new = [at for at in needed if at not in self._starting]
        if new:
            self._starting.update(new)
            partitions = [at.partition for at in new]
            self.lookup(partitions, partial(self._on_start, new), math.inf)

    def _on_start(
        self, partitions: Collection[PartitionEpoch], found: CommittedOffsets | KafkaError
    ) -> None:
        self._starting.difference_update(partitions)
        if isinstance(found, KafkaError):
            failed = [at for at in partitions if self._subscription.fail(at)]
            if failed:
                retry = partial(self._subscription.retry_any, failed)
                self._inbox.post_error(found, before_raise=retry)
            return
        for at in partitions:
            if at.partition in found:
                offset = found[at.partition]
                self._subscription.start_at(at, offset.offset, offset.leader_epoch)
        self._inbox.ring()  # wakes a caller that waits for a position
        missing = [at for at in partitions if at.partition not in found]
        start_by_default(self._subscription, missing, self._inbox)

    # --- the request -------------------------------------------------------------------------

    def _timeout(self, lookup: _Lookup) -> KafkaTimeoutError:
        reason = lookup.trouble or self._coordinator.describe()
        error = KafkaTimeoutError(f"the committed offsets were not found in time: {reason}")
        error.__cause__ = lookup.trouble
        return error

    def _request(self, lookup: _Lookup, connection: int) -> UnsentRequest:
        topics: dict[str, list[int]] = {}
        for topic, number in lookup.partitions:
            topics.setdefault(topic, []).append(number)
        snapshot = self._cluster.snapshot
        topic_ids = {topic: snapshot.topic_id(topic) for topic in topics}
        # Both ways: brokers before 3.0 know the first, later ones the second.
        reader = self._membership.offset_reader()
        group = OffsetFetchRequestGroup(
            group_id=self._group_id,
            member_id=reader.member_id,
            member_epoch=reader.member_epoch,
            topics=[
                OffsetFetchRequestTopics(
                    name=name, topic_id=topic_ids[name], partition_indexes=numbers
                )
                for name, numbers in topics.items()
            ],
        )
        request = OffsetFetchRequest(
            group_id=self._group_id,
            topics=[
                OffsetFetchRequestTopic(name=name, partition_indexes=numbers)
                for name, numbers in topics.items()
            ],
            groups=[group],
            # Offsets of a transaction that is not decided yet: wait for the decision.
            require_stable=True,
        )
        lookup.trouble = KafkaTimeoutError(f"{self._coordinator.describe()} has not answered")
        self._in_flight[lookup] = None
        on_done = partial(self._on_done, lookup, topic_ids, reader)
        return UnsentRequest(request, connection, on_done)

    def _on_done(
        self,
        lookup: _Lookup,
        topic_ids: Mapping[str, bytes],
        reader: OffsetReader,
        outcome: Outcome,
        now_ms: float,
    ) -> None:
        if lookup not in self._in_flight:
            return  # it has expired
        del self._in_flight[lookup]
        found = outcome if isinstance(outcome, KafkaError) else self._committed(outcome, topic_ids)
        if not isinstance(found, KafkaError):
            lookup.on_done(found)
            return
        self._coordinator.on_error(found, now_ms)
        lookup.trouble = found
        if found.refresh_metadata:
            self._cluster.request_update()
        if found.retriable or self._membership.on_lookup_error(found, reader):
            lookup.retry_at_ms = now_ms + self._backoff.backoff_ms(lookup.failures)
            lookup.failures += 1
            self._waiting.append(lookup)
        else:
            lookup.on_done(found)

    def _committed(
        self, response: object, topic_ids: Mapping[str, bytes]
    ) -> CommittedOffsets | KafkaError:
        """What a response says, or its first error."""
        assert isinstance(response, OffsetFetchResponse)
        if not response.groups:
            if response.error_code != NONE:
                return for_code(response.error_code)()
            topics = [(topic.name, False, topic.partitions) for topic in response.topics]
            return self._offsets(topics, topic_ids)
        names = {topic_id: name for name, topic_id in topic_ids.items()}
        (group,) = response.groups
        if group.error_code != NONE:
            return for_code(group.error_code)()
        by_id = [
            (topic.name or names.get(topic.topic_id, ""), not topic.name, topic.partitions)
            for topic in group.topics
        ]
        return self._offsets(by_id, topic_ids)

    def _offsets(
        self,
        topics: Iterable[tuple[str, bool, Sequence[_AnyPartition]]],
        topic_ids: Mapping[str, bytes],
    ) -> CommittedOffsets | KafkaError:
        offsets: CommittedOffsets = {}
        for topic, is_by_id, partitions in topics:
            for one in partitions:
                partition = TopicPartition(topic, one.partition_index)
                name = f"{topic}-{one.partition_index}"
                if one.error_code != NONE:
                    return for_code(one.error_code)(f"the committed offset of {name}")
                offset = one.committed_offset
                if offset == _NOT_COMMITTED:
                    continue
                topic_id = topic_ids.get(topic, ZERO_UUID)
                if not is_by_id and self._named.is_of_another_topic(partition, topic_id, offset):
                    log.warning(
                        "ignoring offset %d, committed for %s before the topic was deleted and "
                        "recreated", offset, name,
                    )  # fmt: skip
                    continue
                offsets[partition] = OffsetAndMetadata(
                    offset, one.metadata, one.committed_leader_epoch
                )
        return offsets
