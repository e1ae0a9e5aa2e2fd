"""Validates positions after a change of leader: was the log truncated below them (KIP-320)?

The I/O thread only. A leader that was elected without having all records, or that has lost some in
a crash, may end before a position, or have other records there. The epoch of the last record that
was read tells: OffsetForLeaderEpoch returns where that epoch ends in the leader's log.
"""

import logging
from collections.abc import Callable, Mapping
from functools import partial
from typing import NamedTuple, TypeAlias

from pyclient.consumer.cluster import Cluster
from pyclient.consumer.inbox import Inbox
from pyclient.consumer.partition_state import PartitionEpoch, ValidationTarget
from pyclient.consumer.subscription_state import SubscriptionState
from pyclient.error_codes import NONE, for_code
from pyclient.errors import (
    AuthorizationError,
    KafkaError,
    LogTruncationError,
    UnsupportedVersionError,
)
from pyclient.net.request_manager import NOTHING_TO_DO, Outcome, PollResult, UnsentRequest
from pyclient.protocol.messages.offset_for_leader_epoch import (
    CONSUMER_ID,
    EpochEndOffset,
    OffsetForLeaderEpochRequest,
    OffsetForLeaderEpochResponse,
    OffsetForLeaderPartition,
    OffsetForLeaderTopic,
)
from pyclient.timers import ExponentialBackoff
from pyclient.types import OffsetAndMetadata, TopicPartition

log = logging.getLogger(__name__)

_UNDEFINED = -1  # an epoch or an offset

_Targets: TypeAlias = Mapping[PartitionEpoch, ValidationTarget]


class _Truncation(NamedTuple):
    at: PartitionEpoch
    divergent: OffsetAndMetadata | None


class PositionValidator:
    """Asks leaders whether they have what was read before the positions."""

    def __init__(
        self,
        subscription: SubscriptionState,
        cluster: Cluster,
        backoff: ExponentialBackoff,
        inbox: Inbox,
        connection_to: Callable[[int], int],
    ) -> None:
        """`connection_to` gives the connection to use for a node."""
        self._subscription = subscription
        self._cluster = cluster
        self._backoff = backoff
        self._inbox = inbox
        self._connection_to = connection_to
        self._in_flight: set[PartitionEpoch] = set()
        self._outdated: dict[PartitionEpoch, int] = {}  # metadata that is older than the position
        self._failures = 0
        self._retry_at_ms = 0.0
        self._seen: object = None

    def poll(self, now_ms: float) -> PollResult:
        """The OffsetForLeaderEpoch requests to send now, one per leader."""
        snapshot = self._cluster.snapshot
        seen = (self._subscription.version, snapshot.version)
        if seen == self._seen:
            return NOTHING_TO_DO
        self._subscription.check_leaders(snapshot)
        if now_ms < self._retry_at_ms:
            return PollResult((), self._retry_at_ms)
        targets = self._subscription.to_validate()
        self._seen = seen  # as it was before: what changes meanwhile is looked at next time
        self._in_flight &= targets.keys()
        self._outdated = {at: one for at, one in self._outdated.items() if at in targets}
        by_leader: dict[int, dict[PartitionEpoch, ValidationTarget]] = {}
        for at, target in targets.items():
            if at not in self._in_flight and self._is_metadata_new(at, target):
                by_leader.setdefault(target.leader, {})[at] = target
        return PollResult([self._request(*one) for one in by_leader.items()])

    def close(self, error: KafkaError) -> None:
        """The loop has ended; nothing waits here."""

    def _is_metadata_new(self, at: PartitionEpoch, target: ValidationTarget) -> bool:
        """Whether to ask this leader: not if another was elected before the position was reached.

        Metadata is refreshed once then; if it says the same, the log has lost that epoch.
        """
        version = self._cluster.snapshot.version
        if target.offset_epoch <= target.leader_epoch:
            return True
        if self._outdated.setdefault(at, version) != version:
            return True
        self._cluster.request_update()
        return False

    def _request(self, leader: int, targets: _Targets) -> UnsentRequest:
        topics: dict[str, list[OffsetForLeaderPartition]] = {}
        for at, target in targets.items():
            topics.setdefault(at.partition.topic, []).append(
                OffsetForLeaderPartition(
                    partition=at.partition.partition,
                    current_leader_epoch=target.leader_epoch,
                    leader_epoch=target.offset_epoch,
                )
            )
        request = OffsetForLeaderEpochRequest(
            replica_id=CONSUMER_ID,
            topics=[
                OffsetForLeaderTopic(topic=topic, partitions=partitions)
                for topic, partitions in topics.items()
            ],
        )
        self._in_flight.update(targets)
        return UnsentRequest(request, self._connection_to(leader), partial(self._on_done, targets))

    def _on_done(self, targets: _Targets, outcome: Outcome, now_ms: float) -> None:
        self._in_flight.difference_update(targets)
        if isinstance(outcome, UnsupportedVersionError):
            for at in targets:  # before Kafka 2.3: there is no way to know
                self._subscription.validated(at)
            return
        if isinstance(outcome, KafkaError):
            log.info("validating positions failed, trying again: %s", outcome)
            self._retry(now_ms)
            return
        assert isinstance(outcome, OffsetForLeaderEpochResponse)
        answers = {
            TopicPartition(topic.topic, one.partition): one
            for topic in outcome.topics
            for one in topic.partitions
        }
        truncations = []
        failed = False
        for at, target in targets.items():
            answer = answers.get(at.partition)
            if answer is None or answer.error_code != NONE:
                failed |= self._on_error(at, answer)
                continue
            truncation = self._on_answer(at, target, answer)
            if truncation is not None:
                truncations.append(truncation)
        if truncations:
            self._raise_truncations(truncations)
        if failed:
            self._retry(now_ms)
        else:
            self._failures = 0

    def _retry(self, now_ms: float) -> None:
        self._retry_at_ms = now_ms + self._backoff.backoff_ms(self._failures)
        self._failures += 1
        self._seen = None
        self._cluster.request_update()

    def _on_error(self, at: PartitionEpoch, answer: EpochEndOffset | None) -> bool:
        """Whether to try again; if not, the program gets the error."""
        topic, number = at.partition
        if answer is None:
            log.info("the broker's answer about the epochs leaves out %s-%d", topic, number)
            return True
        error = for_code(answer.error_code)
        if issubclass(error, AuthorizationError):
            if self._subscription.fail(at):
                retry = partial(self._subscription.retry_any, [at])
                self._inbox.post_error(error(f"topic {topic!r}"), before_raise=retry)
            return False
        level = logging.DEBUG if error.retriable else logging.WARNING
        log.log(
            level, "validating the position in %s-%d failed, trying again: %s",
            topic, number, error.__name__,
        )  # fmt: skip
        return True

    def _on_answer(
        self, at: PartitionEpoch, target: ValidationTarget, answer: EpochEndOffset
    ) -> _Truncation | None:
        """Go on, or back to where the leader's log ends; what the program has to decide."""
        epoch, end_offset = answer.leader_epoch, answer.end_offset
        is_known = epoch != _UNDEFINED and end_offset != _UNDEFINED
        if is_known and end_offset >= target.offset:
            self._subscription.validated(at)
            return None
        if not self._subscription.is_current(at):
            return None
        if self._subscription.default_reset is None:
            return _Truncation(at, OffsetAndMetadata(end_offset, "", epoch) if is_known else None)
        topic, number = at.partition
        if is_known:
            log.warning(
                "the log of %s-%d was truncated below the position %d: going back to %d, "
                "where it differs from what was read", topic, number, target.offset, end_offset,
            )  # fmt: skip
            self._subscription.truncated(at, end_offset, epoch)
        else:
            log.warning(
                "the log of %s-%d has lost the records before the position %d: resetting to the %s",
                topic, number, target.offset, self._subscription.default_reset.name,
            )  # fmt: skip
            self._subscription.start_by_default(at)
        self._inbox.ring()
        return None

    def _raise_truncations(self, truncations: list[_Truncation]) -> None:
        failed = [one for one in truncations if self._subscription.fail(one.at)]
        if failed:
            error = LogTruncationError({one.at.partition: one.divergent for one in failed})
            retry = partial(self._subscription.retry_any, [one.at for one in failed])
            self._inbox.post_error(error, before_raise=retry)
