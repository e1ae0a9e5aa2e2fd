"""Types of arguments: times, durations, partitions, key=value."""

from __future__ import annotations

import re
from datetime import UTC, datetime
from typing import TYPE_CHECKING, Any, Final

import click

from pyclient.clock import SystemClock
from pyclient.config.properties import parse_property
from pyclient.types import TopicPartition

if TYPE_CHECKING:
    ParamType = click.ParamType[Any]  # generic since click 8.4, for type checkers
else:
    ParamType = click.ParamType

_UNITS_MS: Final = {"ms": 1, "s": 1000, "m": 60_000, "h": 3_600_000, "d": 86_400_000}
_DURATION: Final = re.compile(r"(\d+(?:\.\d+)?)(ms|s|m|h|d)")


class KeyValue(ParamType):
    """`key=value`, to a pair."""

    name = "KEY=VALUE"

    def convert(self, value: Any, param: Any, ctx: Any) -> tuple[str, str]:
        if isinstance(value, tuple):
            return value
        try:
            return parse_property(value)
        except ValueError as error:
            self.fail(str(error), param, ctx)


class Duration(ParamType):
    """`90s`, `5m`, `2h30m`, `7d`, to milliseconds."""

    name = "DURATION"

    def convert(self, value: Any, param: Any, ctx: Any) -> int:
        if isinstance(value, int):
            return value
        parts = _DURATION.findall(value)
        if not parts or "".join(number + unit for number, unit in parts) != value:
            self.fail(f"{value!r} is not a duration: write 500ms, 90s, 5m, 2h or 7d", param, ctx)
        return round(sum(float(number) * _UNITS_MS[unit] for number, unit in parts))


class Timestamp(ParamType):
    """A time, to milliseconds since 1970: ISO 8601, such milliseconds, or an age as in `-2h`."""

    name = "TIME"

    def convert(self, value: Any, param: Any, ctx: Any) -> int:
        if isinstance(value, int):
            return value
        if value.isascii() and value.isdigit():
            return int(value)
        if value == "now":
            return int(SystemClock().now_ms())
        if value.startswith("-"):
            return int(SystemClock().now_ms()) - Duration().convert(value[1:], param, ctx)
        try:
            moment = datetime.fromisoformat(value)
        except ValueError:
            self.fail(
                f"{value!r} is not a time: write 2026-01-31T18:00 (UTC unless it has an offset),"
                " milliseconds since 1970, or an age such as -2h",
                param,
                ctx,
            )
        if moment.tzinfo is None:
            moment = moment.replace(tzinfo=UTC)
        return int(moment.timestamp() * 1000)


class Partitions(ParamType):
    """`0,3-5`, to a list of numbers."""

    name = "PARTITIONS"

    def convert(self, value: Any, param: Any, ctx: Any) -> list[int]:
        if isinstance(value, list):
            return value
        numbers: set[int] = set()
        for item in value.split(","):
            found = re.fullmatch(r"(\d+)(?:-(\d+))?", item.strip())
            if found is None:
                self.fail(f"{value!r} is not a list of partitions: write 0,3-5", param, ctx)
            numbers.update(range(int(found[1]), int(found[2] or found[1]) + 1))
        return sorted(numbers)


class Partition(ParamType):
    """`topic:0`, to a TopicPartition."""

    name = "TOPIC:PARTITION"

    def convert(self, value: Any, param: Any, ctx: Any) -> TopicPartition:
        if isinstance(value, TopicPartition):
            return value
        topic, _, number = value.rpartition(":")
        if not topic or not number.isdigit():
            self.fail(f"{value!r} is not a partition: write topic:0", param, ctx)
        return TopicPartition(topic, int(number))


class TopicPartitions(ParamType):
    """`orders` or `orders:0,3-5`, to the topic and its partitions; None for all of them."""

    name = "TOPIC[:PARTITIONS]"

    def convert(self, value: Any, param: Any, ctx: Any) -> tuple[str, list[int] | None]:
        if isinstance(value, tuple):
            return value
        topic, colon, numbers = value.partition(":")
        if not topic:
            self.fail(f"{value!r} names no topic: write orders or orders:0,3-5", param, ctx)
        return topic, Partitions().convert(numbers, param, ctx) if colon else None


KEY_VALUE: Final = KeyValue()
DURATION: Final = Duration()
TIMESTAMP: Final = Timestamp()
PARTITIONS: Final = Partitions()
PARTITION: Final = Partition()
TOPIC_PARTITIONS: Final = TopicPartitions()
