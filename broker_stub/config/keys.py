"""The broker's options and its topics', by Kafka's names: one row each, all with an effect.

A topic's defaults are broker options too: `segment.bytes` is `log.segment.bytes` here. Only
tables; `broker_config` parses by them.
"""

from collections.abc import Mapping
from typing import Final

from broker_stub.config.tls_keys import TLS_ROWS
from broker_stub.config.transaction_keys import TRANSACTION_ROWS
from broker_stub.integer_types import INT, LONG, SHORT
from broker_stub.log.log_config import SERVER_SYNONYMS, TOPIC_KEYS
from pyclient.config.definition import ConfigDefinition, ConfigKey, at_least, not_empty, one_of

_HOUR_MS: Final = 3_600_000
_MINUTE_MS: Final = 60_000

# A topic's options that are not about its log.
MIN_INSYNC_REPLICAS: Final = ConfigKey(
    "min.insync.replicas",
    INT,
    1,
    at_least(1),
    "In-sync replicas that Produce with acks=all needs; all replicas, if there are fewer.",
)
# Accepted with the one value that this broker implements: programs set them to be safe.
_AS_IT_IS: Final = (
    ConfigKey("preallocate", bool, False, one_of(False), "Segments are never preallocated."),
    ConfigKey(
        "segment.jitter.ms",
        LONG,
        0,
        one_of(0),
        "Segments roll when they are due, without jitter.",
    ),
    ConfigKey(
        "unclean.leader.election.enable",
        bool,
        False,
        one_of(False),
        "Only an in-sync replica becomes the leader.",
    ),
)
TOPIC_ROWS: Final = (*TOPIC_KEYS, MIN_INSYNC_REPLICAS, *_AS_IT_IS)
TOPIC_DEFINITION: Final = ConfigDefinition("topic", TOPIC_ROWS)
TOPIC_SYNONYMS: Final[Mapping[str, str]] = {
    **SERVER_SYNONYMS,
    MIN_INSYNC_REPLICAS.name: MIN_INSYNC_REPLICAS.name,
    "preallocate": "log.preallocate",
    "segment.jitter.ms": "log.roll.jitter.ms",
    "unclean.leader.election.enable": "unclean.leader.election.enable",
}

# Times that Kafka also takes in larger units; the finest unit that is set wins.
COARSER_UNITS: Final[Mapping[str, tuple[tuple[str, int], ...]]] = {
    "log.retention.ms": (
        ("log.retention.minutes", _MINUTE_MS),
        ("log.retention.hours", _HOUR_MS),
    ),
    "log.roll.ms": (("log.roll.hours", _HOUR_MS),),
}

_LOG_DEFAULT_ROWS: Final = tuple(
    ConfigKey(
        TOPIC_SYNONYMS[row.name],
        row.type,
        None if TOPIC_SYNONYMS[row.name] in COARSER_UNITS else row.default,
        row.rule,
        row.doc,
    )
    for row in TOPIC_ROWS
)

BROKER_ROWS: Final = (
    ConfigKey("node.id", INT, 1, at_least(0), "The id of this broker.", ("broker.id",)),
    ConfigKey(
        "advertised.listeners",
        list,
        None,
        not_empty(),
        "The addresses that clients are told, as NAME://host:port. If not set, those of listeners.",
    ),
    ConfigKey("broker.rack", str, None, None, "The rack of this broker."),
    ConfigKey(
        "auto.create.topics.enable",
        bool,
        True,
        None,
        "Whether a missing topic is created when a client asks for it.",
    ),
    ConfigKey(
        "connections.max.idle.ms",
        LONG,
        600_000,
        at_least(-1),
        "How long a connection may be idle before it is closed; -1 for ever.",
    ),
    ConfigKey(
        "controller.listener.names",
        list,
        [],
        None,
        "Listeners of the controller; not opened, as this broker is its own controller.",
    ),
    ConfigKey(
        "default.replication.factor",
        INT,
        1,
        at_least(1),
        "Replication factor of topics that do not specify one.",
    ),
    ConfigKey("delete.topic.enable", bool, True, None, "Whether clients may delete topics."),
    ConfigKey(
        "fetch.max.bytes",
        INT,
        55 << 20,
        at_least(1024),
        "The most bytes that one Fetch response holds.",
    ),
    ConfigKey(
        "group.initial.rebalance.delay.ms",
        INT,
        0,
        at_least(0),
        "How long a new group waits for more members. Apache Kafka's default is 3000.",
    ),
    ConfigKey(
        "group.max.session.timeout.ms",
        INT,
        1_800_000,
        at_least(0),
        "The longest session timeout that a group member may request.",
    ),
    ConfigKey(
        "group.max.size",
        INT,
        2**31 - 1,
        at_least(1),
        "The most members that a group may have.",
    ),
    ConfigKey(
        "group.min.session.timeout.ms",
        INT,
        6000,
        at_least(0),
        "The shortest session timeout that a group member may request.",
    ),
    ConfigKey(
        "listener.security.protocol.map",
        str,
        "SASL_SSL:SASL_SSL,PLAINTEXT:PLAINTEXT,SSL:SSL,SASL_PLAINTEXT:SASL_PLAINTEXT",
        None,
        "The protocol of each listener, as NAME:PROTOCOL; PLAINTEXT and SSL are supported.",
    ),
    ConfigKey(
        "listeners",
        list,
        None,
        not_empty(),
        "Where to listen, as NAME://host:port; an empty host means all interfaces.",
    ),
    ConfigKey("log.dir", list, None, not_empty(), "The data folder, or several."),
    ConfigKey(
        "log.dirs",
        list,
        None,
        not_empty(),
        "The data folders; partitions are spread over them. If not set, log.dir.",
    ),
    ConfigKey(
        "log.cleaner.backoff.ms",
        LONG,
        15_000,
        at_least(0),
        "How long the cleaner sleeps when no log needs compaction.",
    ),
    ConfigKey(
        "log.cleaner.dedupe.buffer.size",
        LONG,
        128 << 20,
        at_least(1 << 20),
        "Memory for the keys of a compaction; a log with more keys takes several rounds.",
    ),
    ConfigKey(
        "log.cleaner.enable",
        bool,
        True,
        None,
        "Whether topics with cleanup.policy=compact are compacted.",
    ),
    ConfigKey(
        "log.retention.check.interval.ms",
        LONG,
        300_000,
        at_least(1),
        "How often retention is checked.",
    ),
    ConfigKey(
        "log.retention.hours",
        INT,
        168,
        at_least(-1),
        "How long records are kept; log.retention.minutes and log.retention.ms override it.",
    ),
    ConfigKey(
        "log.retention.minutes",
        INT,
        None,
        at_least(-1),
        "How long records are kept; log.retention.ms overrides it.",
    ),
    ConfigKey(
        "log.roll.hours",
        INT,
        168,
        at_least(1),
        "How long a segment is appended to before a new one starts; log.roll.ms overrides it.",
    ),
    ConfigKey(
        "max.incremental.fetch.session.cache.slots",
        INT,
        1000,
        at_least(0),
        "How many fetch sessions are kept; further clients send full requests.",
    ),
    ConfigKey(
        "max.request.partition.size.limit",
        INT,
        2000,
        at_least(1),
        "The most partitions in one DescribeTopicPartitions response.",
    ),
    ConfigKey(
        "num.partitions", INT, 1, at_least(1), "Partitions of topics that do not specify a number."
    ),
    ConfigKey(
        "offset.metadata.max.bytes",
        INT,
        4096,
        at_least(0),
        "The largest metadata of a committed offset.",
    ),
    ConfigKey(
        "offsets.retention.check.interval.ms",
        LONG,
        600_000,
        at_least(1),
        "How often expired offsets are looked for.",
    ),
    ConfigKey(
        "offsets.retention.minutes",
        INT,
        10_080,
        at_least(1),
        "How long offsets are kept after the group's last member left.",
    ),
    ConfigKey(
        "offsets.topic.num.partitions",
        INT,
        50,
        at_least(1),
        "Partitions of __consumer_offsets when it is created.",
    ),
    ConfigKey(
        "offsets.topic.replication.factor",
        SHORT,
        1,
        at_least(1),
        "Replication factor of __consumer_offsets when it is created.",
    ),
    ConfigKey(
        "offsets.topic.segment.bytes",
        INT,
        100 << 20,
        at_least(1024),
        "Segment size of __consumer_offsets when it is created.",
    ),
    ConfigKey(
        "socket.request.max.bytes",
        INT,
        100 << 20,
        at_least(1),
        "The largest request; a connection that sends a larger one is closed.",
    ),
    ConfigKey(
        "socket.send.buffer.bytes",
        INT,
        256 << 10,
        at_least(-1),
        "The socket's send buffer (SO_SNDBUF); -1 is the system's default, best for distant"
        " clients. Apache Kafka's default is 102400.",
    ),
    *TRANSACTION_ROWS,
    *TLS_ROWS,
    *_LOG_DEFAULT_ROWS,
)
BROKER_DEFINITION: Final = ConfigDefinition(
    "broker", BROKER_ROWS, listing="broker-stub --list-options", dotted_only=True
)
