"""The producer's metrics, under Kafka's names.

The I/O thread adds a few numbers per batch and per request, never per record. Rates, averages and
maxima cover the last 30 to 60 s, as in Kafka, and are computed when they are read.
"""

from __future__ import annotations

import math
from typing import TYPE_CHECKING, Final

from pyclient.metrics import DEFAULT_WINDOWS, KafkaMetric, MetricName, SampleWindows, WindowedTotals

if TYPE_CHECKING:
    from pyclient.clock import Clock
    from pyclient.config.definition import Config
    from pyclient.producer.buffer_pool import BufferPool
    from pyclient.producer.producer_batch import ProducerBatch

GROUP: Final = "producer-metrics"

# Kafka's names, and the totals they are made of. `name` is a -rate and a -total each.
_RATES: Final = {
    "batch-split": "batch_splits",
    "buffer-exhausted": "exhausted",
    "byte": "batch_bytes",
    "record-error": "record_errors",
    "record-retry": "record_retries",
    "record-send": "records",
    "request": "requests",
}
_AVERAGES: Final = {
    "batch-size-avg": ("batch_bytes", "batches"),
    "compression-rate-avg": ("batch_ratios", "batches"),
    "record-queue-time-avg": ("queue_ms", "batches"),
    "record-size-avg": ("raw_bytes", "records"),
    "records-per-request-avg": ("records", "requests"),
    "produce-throttle-time-avg": ("throttle_ms", "responses"),
    "request-latency-avg": ("request_ms", "responses"),
}
_MAXIMA: Final = {
    "batch-size-max": "batch_bytes",
    "produce-throttle-time-max": "throttle_ms",
    "record-queue-time-max": "queue_ms",
    "request-latency-max": "request_ms",
}
_TOTALS: Final = sorted(
    {*_RATES.values(), "waited_ms"}.union(*(set(pair) for pair in _AVERAGES.values()))
)


class ProducerMetrics:
    """What the sender counts, and what `KafkaProducer.metrics` shows."""

    def __init__(
        self, clock: Clock, pool: BufferPool, windows: SampleWindows = DEFAULT_WINDOWS
    ) -> None:
        self._clock = clock
        self._pool = pool
        self._window = WindowedTotals(_TOTALS, clock.monotonic_ms(), windows)
        self._in_flight = 0

    # --- the I/O thread ----------------------------------------------------------------------

    def roll(self, now_ms: float) -> float:
        """Start a new window if it is due; returns when the next one is."""
        if now_ms >= self._window.next_roll_ms:
            self._read_pool()
            self._window.roll(now_ms)
        return self._window.next_roll_ms

    def request_sent(self, batches: list[ProducerBatch], now_ms: float) -> None:
        """A Produce request is on its way."""
        sizes = [batch.builder.size_in_bytes for batch in batches]
        queued_ms = [now_ms - batch.created_ms for batch in batches]
        totals = self._window.totals
        totals["batches"] += len(batches)
        totals["batch_bytes"] += sum(sizes)
        totals["batch_ratios"] += sum([batch.builder.compression_ratio for batch in batches])
        totals["records"] += sum([batch.record_count for batch in batches])
        totals["raw_bytes"] += sum([batch.builder.raw_size for batch in batches])
        totals["queue_ms"] += sum(queued_ms)
        totals["requests"] += 1
        self._window.maximum("batch_bytes", max(sizes))
        self._window.maximum("queue_ms", max(queued_ms))
        self._in_flight += 1

    def request_done(self, latency_ms: float, throttle_ms: float = 0) -> None:
        """A Produce request is over; the broker held its answer back for `throttle_ms`."""
        totals = self._window.totals
        totals["responses"] += 1
        totals["request_ms"] += latency_ms
        totals["throttle_ms"] += throttle_ms
        self._window.maximum("request_ms", latency_ms)
        self._window.maximum("throttle_ms", throttle_ms)
        self._in_flight -= 1

    def batch_retried(self, batch: ProducerBatch) -> None:
        """A batch is to be sent again."""
        self._window.totals["record_retries"] += batch.record_count

    def batch_failed(self, batch: ProducerBatch) -> None:
        """Count a batch that is not retried."""
        self._window.totals["record_errors"] += batch.record_count

    def batch_split(self) -> None:
        """A batch was too large for the broker."""
        self._window.totals["batch_splits"] += 1

    # --- any thread --------------------------------------------------------------------------

    def snapshot(self) -> dict[str, dict[str, float]]:
        """All figures, by group and name."""
        now_ms = self._clock.monotonic_ms()
        self._read_pool()
        window = self._window
        figures: dict[str, float] = {}
        for name, total in _RATES.items():
            figures[f"{name}-rate"] = window.rate(total, now_ms)
            figures[f"{name}-total"] = window.totals[total]
        for name, (sum_name, count_name) in _AVERAGES.items():
            figures[name] = window.average(sum_name, count_name)
        for name, value in _MAXIMA.items():
            figures[name] = window.largest(value)
        figures["requests-in-flight"] = self._in_flight
        figures["buffer-total-bytes"] = self._pool.total
        figures["buffer-available-bytes"] = self._pool.available
        figures["waiting-threads"] = self._pool.waiting_count
        figures["bufferpool-wait-ratio"] = window.rate("waited_ms", now_ms) / 1000
        figures["bufferpool-wait-time-ns-total"] = window.totals["waited_ms"] * 1e6
        return {GROUP: figures}

    def metrics(self, client_id: str) -> dict[MetricName, KafkaMetric]:
        """Every figure as an object of its own, as kafka-python's reporters expect them."""
        tags = {"client-id": client_id}
        names = [
            MetricName(name, group, tags)
            for group, figures in self.snapshot().items()
            for name in figures
        ]
        return {name: KafkaMetric(name, self._read) for name in names}

    def _read(self, name: MetricName) -> float:
        return self.snapshot()[name.group][name.name]

    def _read_pool(self) -> None:
        """The pool keeps its own totals, under its lock."""
        self._window.totals["waited_ms"] = self._pool.waited_ms
        self._window.totals["exhausted"] = self._pool.exhausted_count


class NoMetrics(ProducerMetrics):
    """Counts nothing: for a producer with `metrics.enabled=False`."""

    def roll(self, now_ms: float) -> float:  # noqa: ARG002
        return math.inf

    def request_sent(self, batches: list[ProducerBatch], now_ms: float) -> None:
        pass

    def request_done(self, latency_ms: float, throttle_ms: float = 0) -> None:
        pass

    def batch_retried(self, batch: ProducerBatch) -> None:
        pass

    def batch_failed(self, batch: ProducerBatch) -> None:
        pass

    def batch_split(self) -> None:
        pass

    def snapshot(self) -> dict[str, dict[str, float]]:
        return {}


def producer_metrics(config: Config, clock: Clock, pool: BufferPool) -> ProducerMetrics:
    """The figures that the configuration asks for."""
    windows = SampleWindows(config["metrics.num.samples"], config["metrics.sample.window.ms"])
    kind = ProducerMetrics if config["metrics.enabled"] else NoMetrics
    return kind(clock, pool, windows)
