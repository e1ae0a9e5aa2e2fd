"""The producer's load test.

Rates count every record. Without a rate, latencies are those of a sample: a callback for each
record of a long run would measure the callbacks.
"""

from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass
from itertools import repeat
from typing import Any, Final

from pyclient import KafkaProducer
from pyclient.clock import Clock, SystemClock
from pyclient.errors import KafkaTimeoutError
from pyclient.net.waiting import Waiting
from pyclient.perf.pacing import Pacer, Schedule
from pyclient.perf.recorder import Recorder, Window, cpu_seconds
from pyclient.perf.result import Result

SAMPLES_MAX: Final = 100_000
WINDOW_MS: Final = 1_000
INTERRUPTED_FLUSH_SECONDS: Final = 2
"""After Ctrl-C, records in flight get this long to be acknowledged."""


@dataclass(frozen=True)
class ProduceLoad:
    """What to send. The values are sent in turn; `keys` are drawn one a record.

    The first `warm_up` records are sent and acknowledged before the run begins, and not counted.
    """

    topic: str
    records: int
    values: Sequence[bytes]
    keys: Iterator[bytes] | None = None
    schedule: Schedule | None = None
    warm_up: int = 0


def run_produce(
    client: dict[str, Any],
    load: ProduceLoad,
    *,
    name: str = "produce",
    clock: Clock | None = None,
    waiting: Waiting | None = None,
    on_window: Callable[[Window], None] | None = None,
) -> Result:
    """Send a load with a producer of these options; Ctrl-C ends it early.

    `on_window` gets the figures of each second, on this thread.
    """
    clock = clock or SystemClock()
    with KafkaProducer(**client) as producer:
        for number in range(load.warm_up):
            producer.send(load.topic, load.values[number % len(load.values)])
        producer.flush()
        return _Run(producer, load, clock, on_window).run(name, waiting)


class _Run:
    """One run. Callbacks record on the I/O thread; all else is the caller's thread's."""

    def __init__(
        self,
        producer: KafkaProducer,
        load: ProduceLoad,
        clock: Clock,
        on_window: Callable[[Window], None] | None,
    ) -> None:
        self._producer = producer
        self._load = load
        self._clock = clock
        self._on_window = on_window
        self._stride = 1 if load.schedule else -(-load.records // SAMPLES_MAX)
        self._first_error = ""
        self._sent = self._sent_bytes = 0
        self._recorder = Recorder(clock, weight=self._stride)

    def run(self, name: str, waiting: Waiting | None) -> Result:
        failed_before = self._failures()
        cpu = cpu_seconds()
        interrupted = False
        try:
            self._send_all(Pacer(self._load.schedule, clock=self._clock, waiting=waiting))
            self._producer.flush()
        except KeyboardInterrupt:
            interrupted = True
            self._flush_what_is_left()
        elapsed_ms = self._clock.monotonic_ms() - self._recorder.start_ms
        cpu = cpu_seconds() - cpu
        histogram = self._recorder.end()
        failed = self._failures() - failed_before
        # After an interrupt some are still in flight: only a sample tells of those that were done.
        done = self._sent - failed
        if interrupted:
            done = min(done, self._recorder.records)
        return Result(
            name=name,
            records=done,
            size=self._sent_bytes * done // max(self._sent, 1),
            elapsed_ms=elapsed_ms,
            average_ms=self._recorder.average_ms,
            max_ms=self._recorder.max_ms,
            histogram=histogram,
            windows=self._recorder.windows,
            failed=failed,
            first_error=self._first_error,
            interrupted=interrupted,
            cpu_seconds=cpu,
        )

    def _send_all(self, pacer: Pacer) -> None:
        load, recorder, producer = self._load, self._recorder, self._producer
        keys: Iterator[bytes | None] = load.keys or repeat(None)
        values, stride = load.values, self._stride
        for number in range(load.records):
            value = values[number % len(values)]
            key = next(keys)
            due_ms = pacer.wait()
            future = producer.send(load.topic, value, key)
            self._sent += 1
            self._sent_bytes += len(value)
            if number % stride:
                continue
            future.add_callback(self._on_delivered, due_ms, len(value))
            future.add_errback(self._on_failed)
            if recorder.window_age_ms() >= WINDOW_MS:
                window = recorder.end_window()
                if self._on_window is not None:
                    self._on_window(window)

    def _on_delivered(self, due_ms: float, size: int, _metadata: Any) -> None:
        self._recorder.record_since(due_ms, size)

    def _on_failed(self, error: Exception) -> None:
        self._first_error = self._first_error or f"{type(error).__name__}: {error}"

    def _failures(self) -> int:
        return int(self._producer.metrics()["producer-metrics"]["record-error-total"])

    def _flush_what_is_left(self) -> None:
        try:
            self._producer.flush(timeout=INTERRUPTED_FLUSH_SECONDS)
        except (KafkaTimeoutError, KeyboardInterrupt):
            return
