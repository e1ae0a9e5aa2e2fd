"""The producer's load test: a line every five seconds, and a closing one with percentiles."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any, Final

from pyclient import KafkaProducer
from pyclient.clock import Clock
from pyclient.perf.latencies import Latencies

REPORT_EVERY_MS: Final = 5_000
_MEGABYTE: Final = 1024 * 1024


def measure_produce(
    client: dict[str, Any], topic: str, count: int, size: int, throughput: int, clock: Clock
) -> Iterator[str]:
    """Send `count` records of `size` bytes; yields the report's lines as they come.

    Raises:
        KafkaError: the first record that could not be delivered.
    """
    run = _Run(count, size, clock)
    payload = bytes(ord("A") + index % 26 for index in range(size))
    with KafkaProducer(**client) as producer:
        start_ms = clock.monotonic_ms()
        for sent in range(count):
            if throughput > 0:
                _pace(producer, start_ms + sent * 1000 / throughput, clock)
            now_ms = clock.monotonic_ms()
            future = producer.send(topic, payload)
            future.add_callback(run.on_delivered, now_ms)
            future.add_errback(run.on_failed)
            if now_ms >= run.next_report_ms:
                yield run.window_line(now_ms)
        producer.flush()
        if run.failures:
            raise run.failures[0]
        yield run.total_line(clock.monotonic_ms() - start_ms)


def _pace(producer: KafkaProducer, due_ms: float, clock: Clock) -> None:
    wait_ms = due_ms - clock.monotonic_ms()
    # Below a millisecond the next records simply go out together.
    if wait_ms >= 1:
        clock.sleep_ms(wait_ms)


class _Run:
    """The figures of one run. Callbacks write them on the I/O thread, one at a time."""

    def __init__(self, count: int, size: int, clock: Clock) -> None:
        self._size = size
        self._clock = clock
        self._total = Latencies(count)
        self._window = Latencies(1)
        self._window_start_ms = clock.monotonic_ms()
        self.failures: list[Exception] = []

    @property
    def next_report_ms(self) -> float:
        return self._window_start_ms + REPORT_EVERY_MS

    def on_delivered(self, sent_ms: float, _metadata: Any) -> None:
        latency_ms = self._clock.monotonic_ms() - sent_ms
        self._total.record(latency_ms)
        self._window.record(latency_ms)

    def on_failed(self, error: Exception) -> None:
        self.failures.append(error)

    def window_line(self, now_ms: float) -> str:
        window, elapsed_ms = self._window, now_ms - self._window_start_ms
        self._window, self._window_start_ms = Latencies(1), now_ms
        return f"{self._rates(window, elapsed_ms)}."

    def total_line(self, elapsed_ms: float) -> str:
        return f"{self._rates(self._total, elapsed_ms)}, {self._total.percentiles()}."

    def _rates(self, latencies: Latencies, elapsed_ms: float) -> str:
        rate = latencies.count * 1000 / max(elapsed_ms, 0.001)
        return (
            f"{latencies.count} records sent, {rate:.1f} records/sec "
            f"({rate * self._size / _MEGABYTE:.2f} MB/sec), "
            f"{latencies.average_ms:.1f} ms avg latency, {latencies.max_ms:.1f} ms max latency"
        )
