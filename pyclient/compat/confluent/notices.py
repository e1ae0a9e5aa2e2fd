"""What a client tells its program besides messages: errors of connections, and statistics."""

import json
from collections.abc import Callable, Mapping
from functools import partial
from typing import Any, Final

from pyclient.compat.confluent.error import ALL_BROKERS_DOWN, TRANSPORT, KafkaError
from pyclient.compat.confluent.events import Events
from pyclient.net.engine import Engine

_LOOK_MS: Final = 1_000
"""How often connections are looked at for errors."""

Metrics = Mapping[str, Mapping[str, float]]


class Notices:
    """Looks, at every poll, for what `error_cb` and `stats_cb` should be told."""

    def __init__(
        self,
        own: Mapping[str, Any],
        engine: Engine,
        metrics: Callable[[], Metrics],
        kind: str,
        client_id: str,
        message_count: Callable[[], int],
    ) -> None:
        self._error_cb: Callable[[KafkaError], object] | None = own["error_cb"]
        self._stats_cb: Callable[[str], object] | None = own["stats_cb"]
        self._engine = engine
        self._metrics = metrics
        self._kind = kind
        self._client_id = client_id
        self._message_count = message_count
        self._started_ms = now_ms = engine.clock.monotonic_ms()
        self._next_look_ms = now_ms
        self._interval_ms: int = own["statistics.interval.ms"]
        self._next_statistics_ms = now_ms + self._interval_ms
        self._told: frozenset[str] = frozenset()
        self._is_idle = self._error_cb is None and not (self._stats_cb and self._interval_ms)

    def next_ms(self) -> float:
        """In how long there may be something to tell; infinity if never."""
        if self._is_idle:
            return float("inf")
        due_ms = self._next_look_ms if self._error_cb else float("inf")
        if self._stats_cb and self._interval_ms:
            due_ms = min(due_ms, self._next_statistics_ms)
        return max(0.0, due_ms - self._engine.clock.monotonic_ms())

    def collect(self, events: Events) -> None:
        """Add what there is to tell."""
        if self._is_idle:
            return
        now_ms = self._engine.clock.monotonic_ms()
        if self._error_cb is not None and now_ms >= self._next_look_ms:
            self._next_look_ms = now_ms + _LOOK_MS
            self._look_for_errors(events, self._error_cb, now_ms)
        if self._stats_cb and self._interval_ms and now_ms >= self._next_statistics_ms:
            self._next_statistics_ms = now_ms + self._interval_ms
            events.add(partial(_call, self._stats_cb, json.dumps(self.statistics())))

    def _look_for_errors(
        self, events: Events, error_cb: Callable[[KafkaError], object], now_ms: float
    ) -> None:
        """Tell each trouble once, until it is gone."""
        troubles = frozenset(self._engine.network.troubles(now_ms))
        fresh = troubles - self._told
        for trouble in sorted(fresh):
            events.add(partial(_call, error_cb, KafkaError(TRANSPORT, trouble)))
        if fresh and not self._engine.metadata.snapshot.version:
            down = KafkaError(ALL_BROKERS_DOWN, "; ".join(sorted(troubles)))
            events.add(partial(_call, error_cb, down))
        self._told = troubles

    def statistics(self) -> dict[str, Any]:
        """The figures, under librdkafka's names where there is one; `metrics` has all of ours."""
        metrics = self._metrics()
        totals: dict[str, float] = {}
        for group in metrics.values():
            totals |= group
        clock = self._engine.clock
        snapshot = self._engine.metadata.snapshot
        return {
            "name": f"{self._client_id}#{self._kind}",
            "client_id": self._client_id,
            "type": self._kind,
            "ts": int(clock.monotonic_ms() * 1000),
            "time": clock.now_ms() // 1000,
            "age": int((clock.monotonic_ms() - self._started_ms) * 1000),
            "msg_cnt": self._message_count(),
            "tx": totals.get("request-total", 0),
            "rx": totals.get("response-total", 0),
            "tx_bytes": totals.get("outgoing-byte-total", 0),
            "rx_bytes": totals.get("incoming-byte-total", 0),
            "txmsgs": totals.get("record-send-total", 0),
            "rxmsgs": totals.get("records-consumed-total", 0),
            "brokers": {
                f"{broker.host}:{broker.port}/{node}": {"nodeid": node}
                for node, broker in snapshot.brokers.items()
            },
            "metrics": {name: dict(group) for name, group in metrics.items()},
        }


def _call(callback: Callable[[Any], object], argument: Any) -> int:
    callback(argument)
    return 1
