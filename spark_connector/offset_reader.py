"""Asks the cluster about partitions and offsets. Runs on the driver only."""

import logging
import re
import threading
from collections.abc import Callable, Iterable, Mapping
from dataclasses import dataclass
from typing import Any, TypeVar

from pyclient import IsolationLevel, KafkaAdminClient, OffsetAndMetadata, OffsetSpec, TopicPartition
from pyclient.clock import Clock, SystemClock
from pyclient.errors import KafkaError, NoBrokersAvailable, NoError, for_code
from spark_connector.offsets import (
    EARLIEST,
    LATEST,
    GlobalTimestamp,
    OffsetLimit,
    PartitionOffsets,
    SpecificOffsets,
    SpecificTimestamps,
    names,
)
from spark_connector.source_options import SourceOptions, Subscription

log = logging.getLogger(__name__)

T = TypeVar("T")


class UnknownTopicError(ValueError):
    """A subscribed topic does not exist."""


@dataclass(frozen=True)
class Topics:
    """The partitions that a subscription means now, sorted, and the ids of their topics."""

    partitions: tuple[TopicPartition, ...]
    ids: dict[str, str]


class OffsetReader:
    """One admin client, opened when it is first needed.

    Topics are looked up with every call: a new partition is seen at once, a deleted topic is
    noticed, and none is created by asking for it.
    """

    def __init__(self, options: SourceOptions, clock: Clock | None = None) -> None:
        self._options = options
        self._clock = clock or SystemClock()
        self._client: KafkaAdminClient | None = None
        self._cached: Topics | None = None
        self._cached_at_ms = 0.0

    def close(self) -> None:
        """Close the connection; the next call opens a new one."""
        if self._client is not None:
            self._client.close()
            self._client = None

    # --- topics ------------------------------------------------------------------------------

    def topics(self) -> Topics:
        """The partitions that the subscription means now.

        Raises:
            UnknownTopicError: a topic that the subscription names does not exist.
        """
        ttl_ms = self._options.partition_cache_ttl_ms
        now_ms = self._clock.monotonic_ms()
        if self._cached is not None and now_ms - self._cached_at_ms < ttl_ms:
            return self._cached
        self._cached, self._cached_at_ms = self._retrying(self._look_up_topics), now_ms
        return self._cached

    def _look_up_topics(self) -> Topics:
        subscription = self._options.subscription
        described = self._describe(subscription)
        ids, found = {}, []
        for topic in described:
            name = topic["name"]
            if topic["error_code"]:
                error = for_code(topic["error_code"])
                raise UnknownTopicError(
                    f"topic '{name}' does not exist on "
                    f"{self._options.client['bootstrap.servers']} ({error.__name__}). "
                    "It was never created, or deleted while the query ran"
                )
            ids[name] = str(topic["topic_id"])
            found += [TopicPartition(name, one["partition_index"]) for one in topic["partitions"]]
        if subscription.partitions:
            missing = set(subscription.partitions) - set(found)
            if missing:
                log.warning("assigned partitions do not exist: %s", names(missing))
            found = [one for one in subscription.partitions if one not in missing]
        return Topics(tuple(sorted(found)), ids)

    def _describe(self, subscription: Subscription) -> list[Any]:
        client = self._open()
        if subscription.pattern is None:
            wanted = subscription.topics or {one.topic for one in subscription.partitions}
            topics = client.describe_topics(sorted(wanted)) if wanted else []
        else:
            pattern = re.compile(subscription.pattern)
            topics = [
                topic
                for topic in client.describe_topics()
                if pattern.search(topic["name"]) and not topic["error_code"]
            ]
        return [topic for topic in topics if not topic["is_internal"]]

    # --- offsets -----------------------------------------------------------------------------

    def earliest(self, partitions: Iterable[TopicPartition]) -> PartitionOffsets:
        """The first offset that each partition still has; without partitions that are gone."""
        there = set(self.topics().partitions)
        return self._look_up({one: OffsetSpec.EARLIEST for one in partitions if one in there})

    def latest(
        self, partitions: Iterable[TopicPartition], known: PartitionOffsets | None = None
    ) -> PartitionOffsets:
        """The offset after each partition's last record.

        A new leader may know of an older end for a moment. Where an end lies before a `known`
        offset, it is asked for again before it is believed.
        """
        wanted: dict[TopicPartition, OffsetSpec | int]
        wanted = dict.fromkeys(partitions, OffsetSpec.LATEST)
        found = self._look_up(wanted)
        for _ in range(1, self._options.fetch_attempts):
            low = [one for one, offset in found.items() if offset < (known or {}).get(one, 0)]
            if not low:
                break
            log.warning("the log of %s ends before a known offset: asking again", names(low))
            self._pause()
            found = self._look_up(wanted)
        return found

    def resolve(self, limit: OffsetLimit, topics: Topics, option: str) -> PartitionOffsets:
        """The offsets that a starting or ending option means; -1 and -2 may be among them.

        Args:
            limit: what the option says.
            topics: the subscription's partitions.
            option: `starting` or `ending`, for rules and error texts.

        Raises:
            ValueError: the option names other partitions than the subscription has, or there is
                no offset for a starting time.
        """
        if limit == "earliest":
            return dict.fromkeys(topics.partitions, EARLIEST)
        if limit == "latest":
            return dict.fromkeys(topics.partitions, LATEST)
        if isinstance(limit, GlobalTimestamp):
            return self._at_times(dict.fromkeys(topics.partitions, limit.timestamp), option)
        assert isinstance(limit, SpecificOffsets | SpecificTimestamps)
        _check_named(limit, topics, option)
        if isinstance(limit, SpecificTimestamps):
            return self._at_times(limit, option)
        return dict(limit)

    def bind(self, offsets: Mapping[TopicPartition, int]) -> PartitionOffsets:
        """Replace -1 by the latest offset, and -2 by the earliest."""
        bound = self._look_up(
            {one: OffsetSpec(spec) for one, spec in offsets.items() if spec in (LATEST, EARLIEST)}
        )
        return {**offsets, **bound}

    def _at_times(self, times: Mapping[TopicPartition, int], option: str) -> PartitionOffsets:
        found = self._look_up(times)
        for one, offset in found.items():
            if offset >= 0:
                continue
            if option == "starting" and not self._options.latest_if_no_match:
                raise ValueError(
                    f"No offset matched from request of topic-partition {names([one])} "
                    f"and timestamp {times[one]}. To start at the end there, set "
                    "'startingOffsetsByTimestampStrategy' to 'latest'"
                )
            found[one] = LATEST
        return self.bind(found)

    def first_at_or_after(self, times: Mapping[TopicPartition, int]) -> PartitionOffsets:
        """The first offset at or after a time in each partition; -1 where there is none."""
        return self._look_up(times)

    def _look_up(self, wanted: Mapping[TopicPartition, OffsetSpec | int]) -> PartitionOffsets:
        if not wanted:
            return {}
        level = IsolationLevel.READ_UNCOMMITTED
        if self._options.client.get("isolation.level", "").lower() == "read_committed":
            level = IsolationLevel.READ_COMMITTED

        def look_up() -> PartitionOffsets:
            found = self._open().list_partition_offsets(wanted, isolation_level=level)
            return {one: found[one].offset for one in wanted}

        return self._retrying(look_up)

    # --- the group ---------------------------------------------------------------------------

    def commit_to_group(self, group: str, offsets: PartitionOffsets) -> None:
        """Commit offsets for lag tools to see. An error is logged, the query does not need them."""
        try:
            outcomes = self._open().alter_group_offsets(
                group, {one: OffsetAndMetadata(offset, "") for one, offset in offsets.items()}
            )
        except KafkaError as error:
            log.warning("offsets were not committed to group '%s': %s", group, error)
            return
        for one, outcome in outcomes.items():
            if outcome is not NoError:
                log.warning(
                    "the offset of %s was not committed to group '%s': %s",
                    names([one]), group, outcome.__name__,
                )  # fmt: skip

    # --- the client --------------------------------------------------------------------------

    def _open(self) -> KafkaAdminClient:
        if self._client is None:
            known = KafkaAdminClient.DEFAULT_CONFIG
            client = {
                key: value
                for key, value in self._options.client.items()
                if key.replace(".", "_") in known
            }
            client.setdefault("client.id", f"{self._options.group_name}-driver")
            self._client = KafkaAdminClient(**client)
        return self._client

    def _retrying(self, action: Callable[[], T]) -> T:
        for _ in range(1, self._options.fetch_attempts):
            try:
                return action()
            except NoBrokersAvailable:
                raise  # it has been tried for bootstrap.timeout.ms
            except (KafkaError, UnknownTopicError) as error:
                log.warning("getting offsets from Kafka failed, retrying: %s", error)
                self.close()
                self._pause()
        return action()

    def _pause(self) -> None:
        threading.Event().wait(self._options.fetch_retry_ms / 1000)


def _check_named(limit: Mapping[TopicPartition, int], topics: Topics, option: str) -> None:
    assigned = set(topics.partitions)
    if set(limit) == assigned:
        return
    is_offsets = isinstance(limit, SpecificOffsets)
    kind = "START_OFFSET" if is_offsets else "TIMESTAMP_OFFSET"
    hint = "; use -1 for latest, -2 for earliest" if is_offsets else ""
    raise ValueError(
        f"[KAFKA_{kind}_DOES_NOT_MATCH_ASSIGNED] the {option} option must name every partition "
        f"of the subscription and no other{hint}. Maybe partitions were added or deleted. "
        f"Missing: {names(assigned - set(limit))}; not subscribed: {names(set(limit) - assigned)}"
    )
