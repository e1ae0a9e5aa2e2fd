"""What a partition is doing, from the facts: pure functions of them."""

from typing import NamedTuple

from pyclient.consumer.health.fetch_watch import FetchWatch
from pyclient.consumer.partition_state import PartitionFacts
from pyclient.metadata import ClusterMetadata
from pyclient.net.request_manager import coordinator_connection


class Diagnosis(NamedTuple):
    """What a partition is doing.

    Attributes:
        state, reason: as in `PartitionHealth`.
        should_flow: whether it is expected to change within seconds, or to be fetched.
    """

    state: str
    reason: str | None
    should_flow: bool


_PAUSED = Diagnosis("paused", "the program has paused it", should_flow=False)
_FAILED = Diagnosis("failed", "the next poll raises its error", should_flow=False)
_HELD = Diagnosis("held", "it waits for the program's poll, or its listener", should_flow=False)
_BUFFERED = Diagnosis(
    "buffered", "as much is fetched as is allowed: poll to read it", should_flow=False
)
_READING = Diagnosis("reading", None, should_flow=True)
_CAUGHT_UP = Diagnosis("caught up", None, should_flow=True)


def diagnose(
    facts: PartitionFacts,
    snapshot: ClusterMetadata,
    watch: FetchWatch,
    coordinator: str | None,
    now_ms: float,
    patience_ms: float,
) -> Diagnosis:
    """What a partition is doing.

    Args:
        facts: its state in `SubscriptionState`.
        snapshot: the cluster's metadata.
        watch: what became of the fetches.
        coordinator: why committed offsets can not be looked up; None if they can.
        now_ms: the time.
        patience_ms: how long a broker may take to answer a fetch.
    """
    if facts.failed:
        return _FAILED
    if facts.held:
        return _HELD
    leader = snapshot.leader_for_partition(facts.partition)
    if facts.position is None and facts.reset is None:
        reason = coordinator or "its committed offset is looked up"
        return Diagnosis("starting", reason, should_flow=True)
    if leader is None:
        return Diagnosis("leaderless", _why_leaderless(facts, snapshot), should_flow=True)
    if facts.position is None:
        return Diagnosis("starting", f"its offset is looked up at node {leader}", should_flow=True)
    if facts.is_validating:
        reason = f"its position is validated with node {leader}"
        return Diagnosis("validating", reason, should_flow=True)
    if facts.paused:
        return _PAUSED
    return _diagnose_fetching(facts, leader, watch, now_ms, patience_ms)


def _why_leaderless(facts: PartitionFacts, snapshot: ClusterMetadata) -> str:
    topic, number = facts.partition
    if topic not in snapshot.topics:
        error = snapshot.topic_errors.get(topic)
        return f"the cluster has no topic {topic!r}" + (f" ({error.__name__})" if error else "")
    if snapshot.partition(topic, number) is None:
        return f"topic {topic!r} has no partition {number}"
    return "the partition has no leader"


def _diagnose_fetching(
    facts: PartitionFacts, leader: int, watch: FetchWatch, now_ms: float, patience_ms: float
) -> Diagnosis:
    asked = watch.asked_since_ms(facts.partition)
    if asked is not None and now_ms - asked[1] > patience_ms:
        reason = f"node {leader} has not answered a fetch for {(now_ms - asked[1]) / 1000:.0f} s"
        return Diagnosis("waiting", reason, should_flow=True)
    failure = (
        watch.partition_failures.get(facts.partition)
        or watch.node_failures.get(leader)
        or watch.node_failures.get(coordinator_connection(leader))
    )
    if failure is not None:
        reason = f"fetches from node {leader} fail: {failure.reason}"
        return Diagnosis("failing", reason, should_flow=True)
    if asked is None:
        if watch.is_full:
            return _BUFFERED
        if watch.answered_at_ms(facts.partition) is None:
            return Diagnosis("waiting", f"no fetch to node {leader} asks for it", should_flow=True)
    position, offsets = facts.position, facts.offsets
    if position is not None and offsets is not None and position >= offsets.high_watermark:
        return _CAUGHT_UP
    return _READING
