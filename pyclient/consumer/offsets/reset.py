"""Gives a position to partitions that have none: the beginning or the end, as configured.

The I/O thread only. Without a group there are no committed offsets to look for, so partitions
come here straight away.
"""

import logging
import math
from collections.abc import Callable, Collection
from functools import partial

from pyclient.consumer.inbox import Inbox
from pyclient.consumer.offsets.list_offsets import FoundOffset, ListOffsetsManager
from pyclient.consumer.partition_state import (
    LATEST,
    NO_LEADER_EPOCH,
    OffsetReset,
    PartitionEpoch,
)
from pyclient.consumer.subscription_state import SubscriptionState
from pyclient.errors import KafkaError, NoOffsetForPartitionError
from pyclient.metadata import ClusterMetadata
from pyclient.net.request_manager import NOTHING_TO_DO, PollResult
from pyclient.protocol.primitives import ZERO_UUID

log = logging.getLogger(__name__)


def start_by_default(
    subscription: SubscriptionState, partitions: Collection[PartitionEpoch], inbox: Inbox
) -> None:
    """Reset partitions for which no offset was found; with `auto.offset.reset=none`, raise."""
    failed = [at for at in partitions if not subscription.start_by_default(at)]
    if failed:
        names = ", ".join(f"{topic}-{number}" for (topic, number), _ in failed)
        error = NoOffsetForPartitionError(
            f"no offset is committed for {names}, and auto.offset.reset is none"
        )
        inbox.post_error(error, before_raise=partial(subscription.retry_any, failed))


def restart_recreated(
    subscription: SubscriptionState, snapshot: ClusterMetadata, inbox: Inbox
) -> None:
    """Reset partitions whose topic has another id than before: it was deleted and recreated.

    Brokers that do not tell ids (before Kafka 2.8) give no sign of it.
    """
    ids = {
        name: topic.topic_id
        for name, topic in snapshot.topics.items()
        if topic.topic_id != ZERO_UUID
    }
    recreated = subscription.update_topic_ids(ids)
    if recreated:
        names = ", ".join(f"{topic}-{number}" for (topic, number), _ in recreated)
        log.warning("the topic was deleted and recreated: dropping the positions in %s", names)
        start_by_default(subscription, recreated, inbox)


class OffsetResetManager:
    """Looks up the positions of partitions that are to be reset."""

    def __init__(
        self,
        subscription: SubscriptionState,
        list_offsets: ListOffsetsManager,
        inbox: Inbox,
        has_group: bool,
        wall_ms: Callable[[], float],
    ) -> None:
        """`wall_ms` tells the time of day, for resets by duration."""
        self._subscription = subscription
        self._list_offsets = list_offsets
        self._inbox = inbox
        self._has_group = has_group
        self._wall_ms = wall_ms
        self._under_way: set[PartitionEpoch] = set()
        self._seen_version = -1

    def poll(self, now_ms: float) -> PollResult:  # noqa: ARG002  the lookups keep the time
        """Start a lookup for every reset that was requested since."""
        version = self._subscription.version
        if version != self._seen_version:
            if not self._has_group:
                start_by_default(
                    self._subscription, self._subscription.to_initialize(), self._inbox
                )
                version = self._subscription.version
            self._seen_version = version
            resets = self._subscription.to_reset()
            self._under_way &= resets.keys()
            for at, reset in resets.items():
                if at not in self._under_way:
                    self._under_way.add(at)
                    self._list_offsets.lookup(
                        at.partition,
                        reset.timestamp_at(self._wall_ms()),
                        partial(self._on_found, at, reset),
                        math.inf,
                        partial(self._subscription.is_current, at),
                    )
        return NOTHING_TO_DO

    def close(self, error: KafkaError) -> None:
        """`ListOffsetsManager` fails the lookups."""

    def _on_found(self, at: PartitionEpoch, reset: OffsetReset, found: FoundOffset) -> None:
        if found is None and reset.duration_ms is not None:
            # No record is that young: the next one will be.
            on_found = partial(self._on_found, at, OffsetReset.LATEST)
            is_wanted = partial(self._subscription.is_current, at)
            self._list_offsets.lookup(at.partition, LATEST, on_found, math.inf, is_wanted)
            return
        self._under_way.discard(at)
        if found is None:
            topic, number = at.partition
            found = KafkaError(f"the broker returned no offset for {topic}-{number}")
        if isinstance(found, KafkaError):
            if self._subscription.fail(at):
                retry = partial(self._subscription.retry_any, [at])
                self._inbox.post_error(found, before_raise=retry)
        else:
            # Without an epoch, as in Java: where a log begins or ends now needs no validation.
            self._subscription.start_at(at, found.offset, NO_LEADER_EPOCH)
            self._inbox.ring()  # wakes a caller that waits for the position
