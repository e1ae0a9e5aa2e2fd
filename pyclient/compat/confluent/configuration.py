"""librdkafka's configuration names, translated to this package's options.

Each client has a table of options that mean the same here. Options that only tune librdkafka's own
queues and logs are taken and logged, so that programs run; everything else is refused.
"""

import logging
from collections.abc import Callable, Mapping
from typing import Any, NamedTuple

from pyclient.compat.confluent.error import INVALID_ARG, failure
from pyclient.config.producer import IDEMPOTENT_IN_FLIGHT_MAX
from pyclient.errors import KafkaConfigurationError
from pyclient.net.transport import KEEP_ALIVE

log = logging.getLogger(__name__)

Callback = Callable[..., Any]


class Translated(NamedTuple):
    """A configuration, taken apart.

    Attributes:
        options: for this package's client.
        own: what the class itself acts on, by librdkafka's names, with its defaults.
    """

    options: dict[str, Any]
    own: dict[str, Any]


class Dialect(NamedTuple):
    """What one of the clients takes.

    Attributes:
        renamed: options of ours, by librdkafka's names; those with the same name are in `same`.
        same: options with the same name and meaning.
        converted: options whose value has to be converted: to ours.
        defaults: librdkafka's defaults that differ from ours.
        own: options that the class itself acts on, and their defaults.
        ignored: tuning options of librdkafka that have no counterpart.
    """

    renamed: Mapping[str, str]
    same: frozenset[str]
    converted: Mapping[str, Callable[[Any], Mapping[str, Any]]]
    defaults: Mapping[str, Any]
    own: Mapping[str, Any]
    ignored: frozenset[str]


def _boolean(value: Any) -> bool:
    text = str(value).lower()
    if text not in ("true", "false", "1", "0", "t", "f"):
        raise ValueError(f"expected true or false, not {value!r}")
    return text in ("true", "1", "t")


def _keep_alive(value: Any) -> Mapping[str, Any]:
    if not _boolean(value):
        return {}
    return {"socket.options": [KEEP_ALIVE]}


def _in_flight(value: Any) -> Mapping[str, Any]:
    # librdkafka's default is a million; more than five cannot be kept in order here.
    return {"max.in.flight.requests.per.connection": min(int(value), IDEMPOTENT_IN_FLIGHT_MAX)}


def _certificate_verification(value: Any) -> Mapping[str, Any]:
    if not _boolean(value):
        raise ValueError("certificates are always verified here; pass the CA in ssl.ca.location")
    return {}


def _host_verification(value: Any) -> Mapping[str, Any]:
    return {"ssl.check.hostname": str(value).lower() == "https"}


def _level(value: Any) -> Mapping[str, Any]:
    if int(value) == -1:
        return {}
    return {f"compression.{codec}.level": int(value) for codec in ("gzip", "lz4", "zstd")}


def _reset(value: Any) -> Mapping[str, Any]:
    meaning = {
        "smallest": "earliest",
        "beginning": "earliest",
        "largest": "latest",
        "end": "latest",
        "error": "none",
    }
    return {"auto.offset.reset": meaning.get(str(value), value)}


def _assignors(value: Any) -> Mapping[str, Any]:
    from pyclient.consumer.group import assignors

    known = {
        "range": assignors.RangePartitionAssignor,
        "roundrobin": assignors.RoundRobinPartitionAssignor,
        "cooperative-sticky": assignors.CooperativeStickyAssignor,
    }
    names = [name.strip() for name in str(value).split(",")]
    for name in names:
        if name not in known:
            raise ValueError(f"{name!r} is not one of {', '.join(known)}")
    return {"partition.assignment.strategy": [known[name] for name in names]}


def _callback_or_none(value: Any) -> Callback | None:
    if value is None or callable(value):
        return value  # type: ignore[no-any-return]
    raise TypeError(f"expected a callable, not {type(value).__name__}")


_COMMON_RENAMED = {
    "metadata.broker.list": "bootstrap.servers",
    "socket.timeout.ms": "request.timeout.ms",
    "socket.send.buffer.bytes": "send.buffer.bytes",
    "socket.receive.buffer.bytes": "receive.buffer.bytes",
    "topic.metadata.refresh.interval.ms": "metadata.max.age.ms",
    "ssl.ca.location": "ssl.cafile",
    "ssl.certificate.location": "ssl.certfile",
    "ssl.key.location": "ssl.keyfile",
    "ssl.key.password": "ssl.password",
}
_COMMON_SAME = frozenset(
    {
        "bootstrap.servers",
        "client.id",
        "connections.max.idle.ms",
        "metadata.max.age.ms",
        "metadata.recovery.strategy",
        "receive.message.max.bytes",
        "reconnect.backoff.max.ms",
        "reconnect.backoff.ms",
        "retry.backoff.max.ms",
        "retry.backoff.ms",
        "security.protocol",
        "socket.connection.setup.timeout.ms",
    }
)
_COMMON_CONVERTED: dict[str, Callable[[Any], Mapping[str, Any]]] = {
    "max.in.flight": _in_flight,
    "max.in.flight.requests.per.connection": _in_flight,
    "socket.keepalive.enable": _keep_alive,
    "enable.ssl.certificate.verification": _certificate_verification,
    "ssl.endpoint.identification.algorithm": _host_verification,
}
_COMMON_OWN: dict[str, Any] = {
    "error_cb": None,
    "stats_cb": None,
    "statistics.interval.ms": 0,
}
_COMMON_IGNORED = frozenset(
    {
        "api.version.fallback.ms",
        "api.version.request",
        "api.version.request.timeout.ms",
        "broker.address.family",
        "broker.address.ttl",
        "broker.version.fallback",
        "client.software.name",
        "client.software.version",
        "debug",
        "enable.random.seed",
        "log.connection.close",
        "log.queue",
        "log.thread.name",
        "log_level",
        "logger",
        "message.copy.max.bytes",
        "socket.blocking.max.ms",
        "socket.max.fails",
        "socket.nagle.disable",
        "throttle_cb",
        "topic.metadata.propagation.max.ms",
        "topic.metadata.refresh.fast.interval.ms",
        "topic.metadata.refresh.sparse",
    }
)

PRODUCER = Dialect(
    renamed=_COMMON_RENAMED
    | {
        "request.required.acks": "acks",
        "queue.buffering.max.ms": "linger.ms",
        "message.send.max.retries": "retries",
        "message.timeout.ms": "delivery.timeout.ms",
        "message.max.bytes": "max.request.size",
        "compression.codec": "compression.type",
    },
    same=_COMMON_SAME
    | {
        "acks",
        "allow.auto.create.topics",
        "batch.size",
        "compression.type",
        "delivery.timeout.ms",
        "enable.idempotence",
        "linger.ms",
        "retries",
        "transaction.timeout.ms",
        "transactional.id",
    },
    converted=_COMMON_CONVERTED | {"compression.level": _level},
    defaults={
        "delivery.timeout.ms": 300_000,
        "batch.size": 262_144,
        # No call may hold `produce` up; those that wait for longer repeat it.
        "max.block.ms": 250,
    },
    own=_COMMON_OWN
    | {
        "on_delivery": None,
        "delivery.report.only.error": False,
        "partitioner": "consistent_random",
        "queue.buffering.max.messages": 100_000,
        "queue.buffering.max.kbytes": 1 << 20,
        "topic.metadata.propagation.max.ms": 30_000,
    },
    ignored=(_COMMON_IGNORED - {"topic.metadata.propagation.max.ms"})
    | {
        "batch.num.messages",
        "enable.gapless.guarantee",
        "queue.buffering.backpressure.threshold",
        "request.timeout.ms",
        "sticky.partitioning.linger.ms",
    },
)

CONSUMER = Dialect(
    renamed=_COMMON_RENAMED
    | {
        "fetch.wait.max.ms": "fetch.max.wait.ms",
        "fetch.message.max.bytes": "max.partition.fetch.bytes",
    },
    same=_COMMON_SAME
    | {
        "allow.auto.create.topics",
        "auto.commit.interval.ms",
        "client.rack",
        "fetch.max.bytes",
        "fetch.min.bytes",
        "group.id",
        "group.instance.id",
        "heartbeat.interval.ms",
        "isolation.level",
        "max.partition.fetch.bytes",
        "max.poll.interval.ms",
        "session.timeout.ms",
    },
    converted=_COMMON_CONVERTED
    | {"auto.offset.reset": _reset, "partition.assignment.strategy": _assignors},
    defaults={
        "isolation.level": "read_committed",
        "allow.auto.create.topics": False,
        "partition.assignment.strategy": _assignors("range,roundrobin")[
            "partition.assignment.strategy"
        ],
    },
    own=_COMMON_OWN
    | {
        "on_commit": None,
        "enable.auto.commit": True,
        "enable.auto.offset.store": True,
        "enable.partition.eof": False,
    },
    ignored=_COMMON_IGNORED
    | {
        "check.crcs",
        "coordinator.query.interval.ms",
        "fetch.error.backoff.ms",
        "fetch.queue.backoff.ms",
        "group.protocol.type",
        "message.max.bytes",
        "offset.store.method",
        "queued.max.messages.kbytes",
        "queued.min.messages",
    },
)

ADMIN = Dialect(
    renamed=_COMMON_RENAMED,
    same=_COMMON_SAME,
    converted=_COMMON_CONVERTED,
    defaults={},
    own=_COMMON_OWN,
    ignored=_COMMON_IGNORED,
)


def translate(dialect: Dialect, given: tuple[Any, ...], named: Mapping[str, Any]) -> Translated:
    """The options in a constructor's arguments: a dict, keywords, or both.

    Raises:
        TypeError: the argument is not a dict.
        KafkaException: an option is unknown or has a value that is not allowed.
    """
    options: dict[str, Any] = dict(dialect.defaults)
    own = dict(dialect.own)
    for name, value in _merged(given, named).items():
        try:
            if name in own:
                own[name] = _own_value(own[name], name, value)
            elif name in dialect.converted:
                options.update(dialect.converted[name](value))
            elif name in dialect.same:
                options[name] = value
            elif name in dialect.renamed:
                options[dialect.renamed[name]] = value
            elif name in dialect.ignored:
                log.info("%s is taken for compatibility: it has no effect here", name)
            else:
                raise failure(INVALID_ARG, f'No such configuration property: "{name}"')
        except ValueError as error:
            raise failure(INVALID_ARG, f'"{name}": {error}') from error
    if options.get("security.protocol") is not None:
        options["security.protocol"] = str(options["security.protocol"]).upper()
    # Constructors do not wait for a broker in confluent-kafka.
    options["api.version"] = (4, 0)
    return Translated(options, own)


def refused(error: KafkaConfigurationError) -> Exception:
    """The exception for an option that this package's client does not take."""
    return failure(INVALID_ARG, str(error))


_UNDERSCORED = ("dr_cb", "log_level", "on_commit", "on_delivery", "throttle_cb")


def _merged(given: tuple[Any, ...], named: Mapping[str, Any]) -> dict[str, Any]:
    if len(given) > 1:
        raise TypeError("expected one dict of options")
    merged: dict[str, Any] = {}
    for one in given:
        if not isinstance(one, dict):
            raise TypeError(f"expected a dict of options, not {type(one).__name__}")
        merged.update(one)
        merged.update(merged.pop("default.topic.config", None) or {})
    for name, value in named.items():
        is_callback = name in _COMMON_OWN or name in _UNDERSCORED
        merged[name if is_callback else name.replace("_", ".")] = value
    if "dr_cb" in merged:
        merged["on_delivery"] = merged.pop("dr_cb")
    return merged


def _own_value(default: Any, name: str, value: Any) -> Any:
    if isinstance(default, bool):
        return _boolean(value)
    if isinstance(default, int):
        return int(value)
    if name.endswith("_cb") or name.startswith("on_"):
        return _callback_or_none(value)
    return value
