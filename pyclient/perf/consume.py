"""The consumer's load test: Kafka's header and its one line of figures."""

from collections.abc import Collection, Iterator
from datetime import UTC, datetime
from typing import Any, Final

from pyclient import ConsumerRebalanceListener, KafkaConsumer, TopicPartition
from pyclient.clock import Clock
from pyclient.errors import KafkaTimeoutError

_MEGABYTE: Final = 1024 * 1024
_HEADER: Final = (
    "start.time, end.time, data.consumed.in.MB, MB.sec, data.consumed.in.nMsg, nMsg.sec, "
    "rebalance.time.ms, fetch.time.ms, fetch.MB.sec, fetch.nMsg.sec"
)


def measure_consume(
    client: dict[str, Any], topic: str, count: int, timeout_ms: int, clock: Clock
) -> Iterator[str]:
    """Read `count` records from the topic's beginning; yields the report's lines.

    Raises:
        KafkaTimeoutError: nothing came for `timeout_ms`.
    """
    yield _HEADER
    settings = {"group_id": "perf-consumer", "auto_offset_reset": "earliest", **client}
    records = size = 0
    with KafkaConsumer(**settings) as consumer:
        start_ms, wall_start_ms = clock.monotonic_ms(), clock.now_ms()
        joined = _Joined(clock)
        consumer.subscribe([topic], listener=joined)
        while records < count:
            polled = consumer.poll(timeout_ms=timeout_ms)
            if not polled:
                raise KafkaTimeoutError(
                    f"{records} of {count} records read from {topic}, then nothing for "
                    f"{timeout_ms} ms"
                )
            for batch in polled.values():
                records += len(batch)
                for record in batch:
                    size += max(record.serialized_key_size, 0) + max(
                        record.serialized_value_size, 0
                    )
        end_ms = clock.monotonic_ms()
    rebalance_ms = (joined.at_ms or end_ms) - start_ms
    elapsed, fetching = (end_ms - start_ms) / 1000, (end_ms - start_ms - rebalance_ms) / 1000
    megabytes = size / _MEGABYTE
    figures = (
        _time(wall_start_ms),
        _time(wall_start_ms + end_ms - start_ms),
        f"{megabytes:.4f}",
        f"{_per(megabytes, elapsed):.4f}",
        f"{records}",
        f"{_per(records, elapsed):.4f}",
        f"{rebalance_ms:.0f}",
        f"{fetching * 1000:.0f}",
        f"{_per(megabytes, fetching):.4f}",
        f"{_per(records, fetching):.4f}",
    )
    yield ", ".join(figures)


class _Joined(ConsumerRebalanceListener):
    """Notes when the group had its partitions for the first time."""

    def __init__(self, clock: Clock) -> None:
        self._clock = clock
        self.at_ms: float | None = None

    def on_partitions_assigned(self, assigned: Collection[TopicPartition]) -> None:  # noqa: ARG002
        if self.at_ms is None:
            self.at_ms = self._clock.monotonic_ms()

    def on_partitions_revoked(self, revoked: Collection[TopicPartition]) -> None:
        pass


def _per(amount: float, seconds: float) -> float:
    return amount / seconds if seconds > 0 else 0.0


def _time(now_ms: float) -> str:
    return datetime.fromtimestamp(now_ms / 1000, UTC).strftime("%Y-%m-%d %H:%M:%S:%f")[:-3]
