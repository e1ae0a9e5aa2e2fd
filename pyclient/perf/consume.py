"""The consumer's load test: Kafka's header and its one line of figures."""

from collections.abc import Mapping
from contextlib import closing
from datetime import UTC, datetime
from typing import Any, Final

from pyclient.clock import Clock
from pyclient.entropy import Entropy
from pyclient.errors import KafkaTimeoutError
from pyclient.perf.clients import consumer_of

_MEGABYTE: Final = 1024 * 1024
HEADER: Final = (
    "start.time, end.time, data.consumed.in.MB, MB.sec, data.consumed.in.nMsg, nMsg.sec, "
    "rebalance.time.ms, fetch.time.ms, fetch.MB.sec, fetch.nMsg.sec"
)


def measure_consume(
    client: str,
    options: Mapping[str, Any],
    topic: str,
    count: int,
    timeout_ms: int,
    clock: Clock,
) -> str:
    """Read `count` records from the topic's beginning, in a new group; Kafka's line.

    Raises:
        KafkaTimeoutError: nothing came for `timeout_ms`.
    """
    group = f"perf-consumer-{Entropy().below(100_000)}"
    records = size = 0
    assigned_ms: list[float] = []
    consumer = consumer_of(client, {"group.id": group, "auto.offset.reset": "earliest", **options})
    with closing(consumer):
        start_ms, wall_start_ms = clock.monotonic_ms(), clock.now_ms()
        consumer.subscribe(topic, lambda: assigned_ms.append(clock.monotonic_ms()))
        while records < count:
            polled = consumer.poll(timeout_ms)
            if not polled.records:
                raise KafkaTimeoutError(
                    f"{records} of {count} records read from {topic}, then nothing for "
                    f"{timeout_ms} ms"
                )
            records += polled.records
            size += polled.size
        end_ms = clock.monotonic_ms()
    rebalance_ms = (assigned_ms[0] if assigned_ms else end_ms) - start_ms
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
    return ", ".join(figures)


def _per(amount: float, seconds: float) -> float:
    return amount / seconds if seconds > 0 else 0.0


def _time(now_ms: float) -> str:
    return datetime.fromtimestamp(now_ms / 1000, UTC).strftime("%Y-%m-%d %H:%M:%S:%f")[:-3]
