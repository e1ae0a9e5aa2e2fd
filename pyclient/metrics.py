"""Rates, averages and maxima over the last sample windows, as in Kafka's metrics.

The owner adds to the totals on one thread and rolls the windows from time to time; that is all the
work on the hot path. Any thread may read: values are computed then.
"""

import logging
from collections import deque
from collections.abc import Callable, Iterable, Mapping, Sequence
from typing import Any, Final, NamedTuple

log = logging.getLogger(__name__)


class SampleWindows(NamedTuple):
    """The time that rates, averages and maxima cover: the last `number` windows of a length."""

    number: int = 2
    length_ms: float = 30_000


DEFAULT_WINDOWS: Final = SampleWindows()


class _Sample(NamedTuple):
    """The totals at the start of a window."""

    time_ms: float
    totals: dict[str, float]


class WindowedTotals:
    """Named totals, and their recent growth.

    Attributes:
        totals: since the start; the owner adds to them.
        next_roll_ms: when the owner should roll.
    """

    def __init__(
        self, names: Iterable[str], now_ms: float, windows: SampleWindows = DEFAULT_WINDOWS
    ) -> None:
        self.totals: dict[str, float] = dict.fromkeys(names, 0)
        self._windows = windows
        self._maxima: deque[dict[str, float]] = deque([{}], windows.number)
        self._samples: deque[_Sample] = deque([_Sample(now_ms, dict(self.totals))], windows.number)
        self.next_roll_ms = now_ms + windows.length_ms

    def maximum(self, name: str, value: float) -> None:
        """Record a value for a maximum."""
        window = self._maxima[-1]
        if value > window.get(name, float("-inf")):
            window[name] = value

    def roll(self, now_ms: float) -> None:
        """Start the next window if it is time; the oldest one is dropped."""
        if now_ms >= self.next_roll_ms:
            self._samples.append(_Sample(now_ms, dict(self.totals)))
            self._maxima.append({})
            self.next_roll_ms = now_ms + self._windows.length_ms

    def rate(self, name: str, now_ms: float) -> float:
        """A total's growth per second over the sample windows."""
        oldest = self._samples[0]
        # As in Kafka: the first seconds count as a whole window, otherwise rates would peak.
        whole_ms = self._windows.length_ms * max(self._windows.number - 1, 1)
        elapsed_ms = max(now_ms - oldest.time_ms, whole_ms)
        return (self.totals[name] - oldest.totals[name]) * 1000 / elapsed_ms

    def average(self, sum_name: str, count_name: str) -> float:
        """A sum's growth divided by a count's; NaN, as in Kafka, if nothing was counted."""
        oldest = self._samples[0].totals
        count = self.totals[count_name] - oldest[count_name]
        return (self.totals[sum_name] - oldest[sum_name]) / count if count else float("nan")

    def largest(self, name: str) -> float:
        """The largest value; NaN if there was none."""
        return max(
            (window[name] for window in tuple(self._maxima) if name in window),
            default=float("nan"),
        )


class MetricName:
    """The name of a metric; equal names are equal keys."""

    __slots__ = ("description", "group", "name", "tags")

    def __init__(
        self, name: str, group: str, tags: Mapping[str, str], description: str = ""
    ) -> None:
        self.name = name
        self.group = group
        self.tags = tags
        self.description = description

    def _key(self) -> tuple[str, str, frozenset[tuple[str, str]]]:
        return self.group, self.name, frozenset(self.tags.items())

    def __eq__(self, other: object) -> bool:
        return isinstance(other, MetricName) and self._key() == other._key()

    def __hash__(self) -> int:
        return hash(self._key())

    def __repr__(self) -> str:
        return f"MetricName(name={self.name}, group={self.group}, tags={dict(self.tags)})"


class KafkaMetric:
    """One metric, which is computed when it is read."""

    __slots__ = ("_read", "metric_name")

    def __init__(self, metric_name: MetricName, read: Callable[[MetricName], float]) -> None:
        self.metric_name = metric_name
        self._read = read

    def value(self) -> float:
        """The current value."""
        return self._read(self.metric_name)


class MetricsReporter:
    """Learns of a client's metrics, and may read them at any time: kafka-python's interface.

    Reporters need not derive from this class.
    """

    def configure(self, configs: Mapping[str, Any]) -> None:
        """Called first, with the client's options by Kafka's dotted names."""

    def init(self, metrics: list[KafkaMetric]) -> None:
        """Called with the existing metrics."""

    def metric_change(self, metric: KafkaMetric) -> None:
        """Called when a metric is added."""

    def metric_removal(self, metric: KafkaMetric) -> None:
        """Called when a metric is removed, because its client is closing."""

    def close(self) -> None:
        """The client is closed."""


class Reporters:
    """A client's reporters. Their exceptions are logged, and affect nothing else."""

    def __init__(self, reporters: Sequence[Any], metrics: Iterable[KafkaMetric]) -> None:
        self._reporters = reporters
        self._metrics = list(metrics)
        self._tell("init", [])
        for metric in self._metrics:
            self._tell("metric_change", metric)

    def close(self) -> None:
        """The client is closed."""
        for metric in self._metrics:
            self._tell("metric_removal", metric)
        self._tell("close")
        self._reporters = ()

    def _tell(self, method: str, *arguments: object) -> None:
        for reporter in self._reporters:
            call = getattr(reporter, method, None)
            if call is None:
                continue
            try:
                call(*arguments)
            except Exception:
                log.warning("%r failed in %s()", reporter, method, exc_info=True)
