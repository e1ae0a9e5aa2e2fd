"""The consumer's metrics, under Kafka's names.

Two sets of totals, because two threads count: what the program gets, on the caller's thread, and
what is fetched, on the I/O thread. Never per record.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Final

from pyclient.clock import Clock
from pyclient.metrics import KafkaMetric, MetricName, WindowedTotals
from pyclient.types import TopicPartition

if TYPE_CHECKING:
    from pyclient.consumer.group.membership import GroupMembership
    from pyclient.consumer.health.monitor import HealthMonitor
    from pyclient.consumer.offsets.commit import CommitManager
    from pyclient.consumer.subscription_state import SubscriptionState

FETCH_GROUP: Final = "consumer-fetch-manager-metrics"
COORDINATOR_GROUP: Final = "consumer-coordinator-metrics"
CONSUMER_GROUP: Final = "consumer-metrics"
RECORDS_LAG: Final = "records-lag"
RECORDS_LEAD: Final = "records-lead"


class ConsumerMetrics:
    """What a consumer counts, and what `KafkaConsumer.metrics` shows."""

    def __init__(self, clock: Clock) -> None:
        now_ms = clock.monotonic_ms()
        self._clock = clock
        self._polled_at_ms = now_ms
        self._program = WindowedTotals(("records", "bytes", "polls", "poll_gap_ms"), now_ms)
        self._network = WindowedTotals(("fetches", "answers", "fetch_ms", "bytes"), now_ms)
        self._membership: GroupMembership | None = None
        self._commits: CommitManager | None = None
        self._health: HealthMonitor | None = None

    def watch_group(self, membership: GroupMembership, commits: CommitManager) -> None:
        """Report the coordinator's figures of these, too. Before the engine starts."""
        self._membership = membership
        self._commits = commits

    def watch_health(self, health: HealthMonitor) -> None:
        """Report the number of stalls, too. Before the engine starts."""
        self._health = health

    # --- the caller's thread -----------------------------------------------------------------

    def polled(self, now_ms: float) -> None:
        """The program is in `poll`."""
        gap_ms = now_ms - self._polled_at_ms
        self._polled_at_ms = now_ms
        self._program.roll(now_ms)
        self._program.totals["polls"] += 1
        self._program.totals["poll_gap_ms"] += gap_ms
        self._program.maximum("poll_gap_ms", gap_ms)

    def returned(self, records: int) -> None:
        """The program got records."""
        self._program.totals["records"] += records

    def read(self, size: int) -> None:
        """All records of a fetch of `size` bytes were returned."""
        self._program.totals["bytes"] += size

    # --- the I/O thread ----------------------------------------------------------------------

    def fetch_sent(self) -> None:
        """A Fetch request is on its way."""
        self._network.totals["fetches"] += 1

    def fetch_done(self, size: int, latency_ms: float, now_ms: float) -> None:
        """A Fetch response with `size` bytes of records arrived."""
        self._network.roll(now_ms)
        self._network.totals["answers"] += 1
        self._network.totals["bytes"] += size
        self._network.totals["fetch_ms"] += latency_ms
        self._network.maximum("bytes", size)
        self._network.maximum("fetch_ms", latency_ms)

    # --- any thread --------------------------------------------------------------------------

    def snapshot(self, subscription: SubscriptionState) -> dict[str, dict[str, float]]:
        """All figures, by group and name."""
        now_ms = self._clock.monotonic_ms()
        lags, leads = subscription.lags(), subscription.leads()
        program, network = self._program, self._network
        return {
            FETCH_GROUP: {
                "records-consumed-rate": program.rate("records", now_ms),
                "records-consumed-total": program.totals["records"],
                "bytes-consumed-rate": program.rate("bytes", now_ms),
                "bytes-consumed-total": program.totals["bytes"],
                "records-per-request-avg": _ratio(program, "records", network, "answers"),
                "fetch-rate": network.rate("fetches", now_ms),
                "fetch-total": network.totals["fetches"],
                "fetch-size-avg": network.average("bytes", "answers"),
                "fetch-size-max": network.largest("bytes"),
                "fetch-latency-avg": network.average("fetch_ms", "answers"),
                "fetch-latency-max": network.largest("fetch_ms"),
                "records-lag-max": max(lags.values(), default=float("nan")),
                "records-lead-min": min(leads.values(), default=float("nan")),
                **{f"{_name(one)}.{RECORDS_LAG}": lag for one, lag in lags.items()},
                **{f"{_name(one)}.{RECORDS_LEAD}": lead for one, lead in leads.items()},
            },
            CONSUMER_GROUP: {
                "last-poll-seconds-ago": (now_ms - self._polled_at_ms) / 1000,
                "time-between-poll-avg": program.average("poll_gap_ms", "polls"),
                "time-between-poll-max": program.largest("poll_gap_ms"),
                "stalls": 0 if self._health is None else self._health.stall_total,
            },
            COORDINATOR_GROUP: {
                "assigned-partitions": len(subscription.assigned()),
                **self._group_figures(now_ms),
            },
        }

    def metrics(
        self, subscription: SubscriptionState, client_id: str
    ) -> dict[MetricName, KafkaMetric]:
        """Every figure as an object of its own, as kafka-python's reporters expect them.

        Those of a partition have its topic and number as tags, as in Java.
        """
        metrics = {}
        for group, figures in self.snapshot(subscription).items():
            for key in figures:
                where, _, name = key.rpartition(".")
                tags = {"client-id": client_id}
                if where:
                    tags["topic"], _, tags["partition"] = where.rpartition("-")

                def read(metric: MetricName, key: str = key) -> float:
                    return self.snapshot(subscription)[metric.group].get(key, float("nan"))

                metric_name = MetricName(name, group, tags)
                metrics[metric_name] = KafkaMetric(metric_name, read)
        return metrics

    def _group_figures(self, now_ms: float) -> dict[str, float]:
        if self._membership is None or self._commits is None:
            return {}
        figures = self._membership.figures()
        received_at_ms = figures.last_heartbeat_at_ms
        return {
            "commit-total": self._commits.commit_total,
            "heartbeat-total": figures.heartbeat_total,
            "last-heartbeat-seconds-ago": (
                -1.0 if received_at_ms is None else (now_ms - received_at_ms) / 1000
            ),
            "rebalance-total": figures.rebalance_total,
            "failed-rebalance-total": figures.failed_rebalance_total,
        }


def _name(partition: TopicPartition) -> str:
    return f"{partition.topic}-{partition.partition}"


def _ratio(over: WindowedTotals, sum_name: str, under: WindowedTotals, count_name: str) -> float:
    count = under.totals[count_name]
    return over.totals[sum_name] / count if count else float("nan")
