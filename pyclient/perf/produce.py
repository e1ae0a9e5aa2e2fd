"""The producer's load test.

Rates count every record. Without a rate, latencies are those of a sample: a callback for each
record of a long run would measure the callbacks.
"""

from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from itertools import repeat
from typing import Any, Final

from pyclient.clock import Clock, SystemClock
from pyclient.errors import KafkaTimeoutError
from pyclient.net.waiting import Waiting
from pyclient.perf.clients import producer_of
from pyclient.perf.clients.interface import Outgoing
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
    options: Mapping[str, Any],
    load: ProduceLoad,
    *,
    client: str = "pyclient",
    name: str = "produce",
    clock: Clock | None = None,
    waiting: Waiting | None = None,
    on_window: Callable[[Window], None] | None = None,
    on_ready: Callable[[], None] | None = None,
) -> Result:
    """Send a load with a producer of these options; Ctrl-C ends it early.

    `on_window` gets the figures of each second, on this thread. `on_ready` is called when the
    warm-up is over; the run begins when it returns.
    """
    clock = clock or SystemClock()
    run = _Run(options, load, client, clock, on_window)
    try:
        return run.run(name, waiting, on_ready)
    finally:
        run.close()


class _Run:
    """One run. `_on_done` records, on any thread; all else is the caller's thread's."""

    def __init__(
        self,
        options: Mapping[str, Any],
        load: ProduceLoad,
        client: str,
        clock: Clock,
        on_window: Callable[[Window], None] | None,
    ) -> None:
        self._load = load
        self._clock = clock
        self._on_window = on_window
        self._stride = 1 if load.schedule else -(-load.records // SAMPLES_MAX)
        self._first_error = ""
        self._sent = self._sent_bytes = self._failed_samples = 0
        self._recorder = Recorder(clock, weight=self._stride)
        self._producer = producer_of(client, options, self._on_done)

    def run(
        self, name: str, waiting: Waiting | None, on_ready: Callable[[], None] | None
    ) -> Result:
        self._warm_up()
        if on_ready is not None:
            on_ready()
        self._recorder = Recorder(self._clock, weight=self._stride)
        failed_before = self._producer.failures()
        cpu = cpu_seconds()
        interrupted = False
        pacer = Pacer(self._load.schedule, clock=self._clock, waiting=waiting)
        try:
            self._producer.send_all(self._load.topic, self._records(), pacer)
            self._producer.flush()
        except KeyboardInterrupt:
            interrupted = True
            self._flush_what_is_left()
        elapsed_ms = self._clock.monotonic_ms() - self._recorder.start_ms
        cpu = cpu_seconds() - cpu
        histogram = self._recorder.end()
        failed = self._failed_samples * self._stride
        if failed_before is not None and (failures := self._producer.failures()) is not None:
            failed = failures - failed_before
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

    def close(self) -> None:
        self._producer.close()

    def _warm_up(self) -> None:
        values = self._load.values
        records = (
            Outgoing(values[number % len(values)], None, False)
            for number in range(self._load.warm_up)
        )
        self._producer.send_all(self._load.topic, records, Pacer(clock=self._clock))
        self._producer.flush()

    def _records(self) -> Iterator[Outgoing]:
        """The records in their order; what is asked for is sent, and each second ends a window."""
        values, stride, recorder = self._load.values, self._stride, self._recorder
        keys: Iterator[bytes | None] = self._load.keys or repeat(None)
        for number in range(self._load.records):
            value = values[number % len(values)]
            is_measured = number % stride == 0
            yield Outgoing(value, next(keys), is_measured)
            self._sent += 1
            self._sent_bytes += len(value)
            if is_measured and recorder.window_age_ms() >= WINDOW_MS:
                window = recorder.end_window()
                if self._on_window is not None:
                    self._on_window(window)

    def _on_done(self, due_ms: float, size: int, error: BaseException | None) -> None:
        if error is None:
            self._recorder.record_since(due_ms, size)
            return
        self._failed_samples += 1
        self._first_error = self._first_error or f"{type(error).__name__}: {error}"

    def _flush_what_is_left(self) -> None:
        try:
            self._producer.flush(timeout=INTERRUPTED_FLUSH_SECONDS)
        except (KafkaTimeoutError, TimeoutError, KeyboardInterrupt):
            return
