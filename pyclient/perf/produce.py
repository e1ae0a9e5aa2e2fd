"""The producer's load test: a line every five seconds, and a closing one with percentiles.

Rates count every record. Latencies are those of a sample: a callback for each record of a long
run would measure the callbacks.
"""

from collections.abc import Iterator
from typing import Any, Final

from pyclient import KafkaProducer
from pyclient.clock import Clock
from pyclient.errors import KafkaError
from pyclient.net.waiting import ThreadWaiting
from pyclient.perf.latencies import Latencies

REPORT_EVERY_MS: Final = 5_000
SAMPLES_MAX: Final = 100_000
_MEGABYTE: Final = 1024 * 1024


def measure_produce(
    client: dict[str, Any], topic: str, count: int, size: int, throughput: int, clock: Clock
) -> Iterator[str]:
    """Send `count` records of `size` bytes; yields the report's lines as they come.

    Raises:
        KafkaError: a record could not be delivered.
    """
    payload = bytes(ord("A") + index % 26 for index in range(size))
    stride = -(-count // SAMPLES_MAX)
    with KafkaProducer(**client) as producer:
        run = _Run(size, clock)
        start_ms = clock.monotonic_ms()
        for sent in range(count):
            if throughput > 0:
                _pace(start_ms + sent * 1000 / throughput, clock)
            if sent % stride:
                producer.send(topic, payload)
                continue
            now_ms = clock.monotonic_ms()
            future = producer.send(topic, payload)
            future.add_callback(run.on_delivered, now_ms)
            future.add_errback(run.on_failed)
            if now_ms >= run.next_report_ms:
                yield run.window_line(sent + 1, now_ms)
        producer.flush()
        elapsed_ms = clock.monotonic_ms() - start_ms
        _check_failures(producer, count, run.first_failure)
    yield run.total_line(count, elapsed_ms)


def _pace(due_ms: float, clock: Clock) -> None:
    wait_ms = due_ms - clock.monotonic_ms()
    # Below a millisecond the next records simply go out together.
    if wait_ms >= 1:
        ThreadWaiting().waiter().wait(wait_ms)


def _check_failures(producer: KafkaProducer, count: int, first: Exception | None) -> None:
    failed = producer.metrics()["producer-metrics"]["record-error-total"]
    if failed:
        cause = "" if first is None else f"; one of them: {first}"
        raise KafkaError(f"{failed:.0f} of {count} records were not delivered{cause}") from first


class _Run:
    """The figures of one run. Callbacks write them on the I/O thread, one at a time."""

    def __init__(self, size: int, clock: Clock) -> None:
        self._size = size
        self._clock = clock
        self._total = Latencies()
        self._window = Latencies()
        self._window_start_ms = clock.monotonic_ms()
        self._window_start_count = 0
        self.first_failure: Exception | None = None

    @property
    def next_report_ms(self) -> float:
        return self._window_start_ms + REPORT_EVERY_MS

    def on_delivered(self, sent_ms: float, _metadata: Any) -> None:
        latency_ms = self._clock.monotonic_ms() - sent_ms
        self._total.record(latency_ms)
        self._window.record(latency_ms)

    def on_failed(self, error: Exception) -> None:
        if self.first_failure is None:
            self.first_failure = error

    def window_line(self, sent: int, now_ms: float) -> str:
        window, elapsed_ms = self._window, now_ms - self._window_start_ms
        line = self._line(sent - self._window_start_count, elapsed_ms, window)
        self._window = Latencies()
        self._window_start_ms, self._window_start_count = now_ms, sent
        return f"{line}."

    def total_line(self, count: int, elapsed_ms: float) -> str:
        return f"{self._line(count, elapsed_ms, self._total)}, {self._total.percentiles()}."

    def _line(self, count: int, elapsed_ms: float, latencies: Latencies) -> str:
        rate = count * 1000 / max(elapsed_ms, 0.001)
        return (
            f"{count} records sent, {rate:.1f} records/sec "
            f"({rate * self._size / _MEGABYTE:.2f} MB/sec), "
            f"{latencies.average_ms:.1f} ms avg latency, {latencies.max_ms:.1f} ms max latency"
        )
