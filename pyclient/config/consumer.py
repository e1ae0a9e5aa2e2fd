"""The consumer's options, and Kafka's rules between them."""

import logging
import re
from collections.abc import Mapping
from typing import Any

from pyclient.config.common import CALLABLE, COMMON_KEYS, COMMON_REFUSED, INT32_MAX
from pyclient.config.definition import (
    Config,
    ConfigDefinition,
    ConfigKey,
    ConfigType,
    RefusedKey,
    Rule,
    at_least,
    between,
    contradiction,
    not_empty,
    one_of,
)
from pyclient.config.metrics import METRICS_REFUSED
from pyclient.serialization import deserializer

log = logging.getLogger(__name__)

_RESETS = {"smallest": "earliest", "largest": "latest"}
"""Names from before Kafka 0.9, which kafka-python still takes."""


_BY_DURATION = "by_duration:"
_DURATION = re.compile(
    r"P(?:(\d+)D)?(?:T(?=\d)(?:(\d+)H)?(?:(\d+)M)?(?:(\d+(?:\.\d+)?)S)?)?", re.IGNORECASE
)


def _to_reset(value: Any) -> str:
    return _RESETS.get(str(value), str(value))


def reset_duration_ms(reset: str) -> int:
    """The milliseconds of a reset as in "by_duration:PT1H"; -1 if it is not one."""
    found = _DURATION.fullmatch(reset.removeprefix(_BY_DURATION))
    if found is None or not reset.startswith(_BY_DURATION) or not any(found.groups()):
        return -1
    days, hours, minutes, seconds = (float(part or 0) for part in found.groups())
    return round(((days * 24 + hours) * 60 + minutes) * 60_000 + seconds * 1000)


RESET = Rule(
    "one of latest, earliest, none, by_duration: with an ISO 8601 duration, as by_duration:PT1H",
    lambda value: value in ("latest", "earliest", "none") or reset_duration_ms(value) >= 0,
)


def _to_deserializer(value: Any) -> Any:
    deserializer(value)  # raises for what cannot deserialize
    return value


DESERIALIZER = ConfigType("a callable or an object with deserialize()", _to_deserializer)

_KIP_848 = "only the classic group protocol is supported yet"

DEFINITION = ConfigDefinition(
    "KafkaConsumer",
    (
        *COMMON_KEYS,
        ConfigKey(
            "group.id",
            str,
            None,
            not_empty(),
            "The consumer group. Default: none, so partitions are assigned by hand and no offsets"
            " are committed.",
        ),
        ConfigKey(
            "group.instance.id",
            str,
            None,
            not_empty(),
            "Makes this a static member: if it restarts with this name within session.timeout.ms,"
            " it keeps its partitions without a rebalance. Default: a dynamic member.",
        ),
        ConfigKey(
            "key.deserializer",
            DESERIALIZER,
            None,
            None,
            "Converts a key from bytes. Default: keys are bytes.",
        ),
        ConfigKey(
            "value.deserializer",
            DESERIALIZER,
            None,
            None,
            "Converts a value from bytes. Default: values are bytes.",
        ),
        ConfigKey(
            "auto.offset.reset",
            ConfigType("a string", _to_reset),
            "latest",
            RESET,
            "Where to start if there is no committed offset, or it is out of range;"
            " `by_duration:PT1H` is with the records of the last hour, none raises.",
        ),
        ConfigKey(
            "enable.auto.commit",
            bool,
            True,
            None,
            "Commit the offsets of earlier polls in the background. Off without a group.",
        ),
        ConfigKey(
            "auto.commit.interval.ms",
            int,
            5_000,
            at_least(0),
            "The interval of the background commits.",
        ),
        ConfigKey(
            "default.offset.commit.callback",
            CALLABLE,
            None,
            None,
            "Called as callback(offsets, result) after commits without their own callback; the"
            " result is an exception if the commit failed.",
        ),
        ConfigKey(
            "fetch.min.bytes",
            int,
            1,
            at_least(0),
            "The broker waits until it has this many bytes, at most fetch.max.wait.ms.",
        ),
        ConfigKey(
            "fetch.max.wait.ms",
            int,
            500,
            at_least(0),
            "How long the broker may wait for fetch.min.bytes.",
        ),
        ConfigKey(
            "fetch.max.bytes",
            int,
            52_428_800,
            between(0, INT32_MAX),
            "The maximum bytes of a fetch response; a larger first batch is still returned. If"
            " neither this nor max.partition.fetch.bytes is set, at most 8 MiB are fetched at a"
            " time.",
        ),
        ConfigKey(
            "max.partition.fetch.bytes",
            int,
            1_048_576,
            between(0, INT32_MAX),
            "The maximum bytes per partition in a fetch; a larger first batch is still returned. If"
            " neither this nor fetch.max.bytes is set, a broker that leads fewer than four of the"
            " partitions is asked for 4 MiB in all.",
        ),
        ConfigKey(
            "fetch.buffer.bytes",
            int,
            52_428_800,
            at_least(1),
            "The consumer prefetches until this many bytes are buffered; one more response per"
            " broker may exceed it.",
        ),
        ConfigKey(
            "enable.incremental.fetch.sessions",
            bool,
            True,
            None,
            "Send a broker only the changes since the last fetch.",
        ),
        ConfigKey(
            "isolation.level",
            str,
            "read_uncommitted",
            one_of("read_uncommitted", "read_committed"),
            "read_committed skips records of open and aborted transactions.",
        ),
        ConfigKey("check.crcs", bool, True, None, "Verify the checksum of every record batch."),
        ConfigKey(
            "max.poll.records", int, 500, at_least(1), "The maximum number of records per poll."
        ),
        ConfigKey(
            "max.poll.interval.ms",
            int,
            300_000,
            at_least(1),
            "A member that does not poll for this long leaves its group.",
        ),
        ConfigKey(
            "session.timeout.ms",
            int,
            45_000,
            at_least(1),
            "A member that sends no heartbeat for this long is removed from its group.",
        ),
        ConfigKey(
            "heartbeat.interval.ms",
            int,
            3_000,
            at_least(1),
            "The interval of heartbeats; use at most a third of the session timeout.",
        ),
        ConfigKey(
            "partition.assignment.strategy",
            list,
            ["range", "cooperative-sticky"],
            not_empty(),
            "Assignors in order of preference: `range`, `roundrobin`, `sticky`, "
            "`cooperative-sticky`, Java's class names, or assignors of your own; kafka-python's "
            "work, too.",
        ),
        ConfigKey(
            "consumer.timeout.ms",
            float,
            float("inf"),
            at_least(0),
            "Iteration ends when no record arrives for this long. Default: it never ends.",
        ),
        ConfigKey(
            "default.api.timeout.ms",
            int,
            60_000,
            at_least(0),
            "The timeout of a call that is not given one.",
        ),
        ConfigKey(
            "allow.auto.create.topics",
            bool,
            True,
            None,
            "Let the broker create a topic that is subscribed to and does not exist.",
        ),
        ConfigKey(
            "exclude.internal.topics",
            bool,
            True,
            None,
            "Exclude Kafka's internal topics from pattern subscriptions.",
        ),
        ConfigKey(
            "client.rack",
            str,
            None,
            None,
            "The rack this client is in. Records are read from a replica there, if the leader names"
            " one; and the assignor of the group's leader prefers partitions with a replica there.",
        ),
        ConfigKey(
            "interceptor.classes",
            list,
            None,
            None,
            "Objects or classes that see all records and commits, in this order: see"
            " ConsumerInterceptor.",
            aliases=("interceptors",),
        ),
    ),
    (
        *COMMON_REFUSED,
        *METRICS_REFUSED,
        RefusedKey(
            "enable.auto.offset.store",
            "positions move when poll() returns records; set enable.auto.commit=false and commit"
            " the offsets of what is processed: commit(offsets)",
            (True,),
        ),
        RefusedKey("group.protocol", _KIP_848, ("classic",)),
        RefusedKey("group.remote.assignor", _KIP_848),
        RefusedKey("legacy.iterator", "there is one iterator", (False,)),
        RefusedKey("metric.group.prefix", "groups have Kafka's names", ("consumer",)),
    ),
)


def parse(options: Mapping[str, object]) -> Config:
    """The consumer's configuration.

    Raises:
        KafkaConfigurationError: an option is wrong by itself, or contradicts another.
    """
    config = DEFINITION.parse(options)
    if config["heartbeat.interval.ms"] >= config["session.timeout.ms"]:
        reason = "the heartbeat interval must be shorter than the session timeout"
        raise contradiction(config, "heartbeat.interval.ms", "session.timeout.ms", reason)
    if config["fetch.max.wait.ms"] >= config["request.timeout.ms"]:
        reason = "a fetch must not time out while the broker waits for data"
        raise contradiction(config, "fetch.max.wait.ms", "request.timeout.ms", reason)
    if config["group.id"] is None and config["enable.auto.commit"]:
        if config.is_explicit("enable.auto.commit"):
            log.warning("No offsets will be committed: enable.auto.commit needs a group.id")
        config = config.derive({"enable.auto.commit": False})
    if config["group.id"] is None and config["group.instance.id"] is not None:
        reason = "a static member needs a group"
        raise contradiction(config, "group.instance.id", "group.id", reason)
    return _receive_limit(config)


def _receive_limit(config: Config) -> Config:
    """Accept the largest fetch response: fetch.max.bytes plus one batch that may exceed it."""
    needed = min(config["fetch.max.bytes"] + config["max.partition.fetch.bytes"], INT32_MAX)
    limit = max(config["receive.message.max.bytes"], needed)
    return config.derive({"receive.message.max.bytes": limit})
