"""The broker's options and its topics', by Kafka's names: one row each, all with an effect.

A topic's defaults are broker options too: `segment.bytes` is `log.segment.bytes` here. Tables
only; what is made of them is in `config`.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import Final

from broker_stub.config.tls_keys import TLS_ROWS
from broker_stub.config.types import INT, LONG, SHORT
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
    "How many in-sync replicas a produce request with acks=all needs; all, if there are fewer.",
)
COMPRESSION_TYPE: Final = ConfigKey(
    "compression.type",
    str,
    "producer",
    one_of("producer"),
    "The codec that batches are kept in: always the producer's own here.",
)
# Accepted as far as they say how it is anyway: programs name them to be on the safe side.
_AS_IT_IS: Final = (
    ConfigKey(
        "preallocate", bool, False, one_of(False), "Segments take room as they grow, never before."
    ),
    ConfigKey(
        "segment.jitter.ms",
        LONG,
        0,
        one_of(0),
        "Segments are closed when they are due, not around.",
    ),
    ConfigKey(
        "unclean.leader.election.enable",
        bool,
        False,
        one_of(False),
        "A replica that is not in sync never becomes the leader.",
    ),
)
TOPIC_ROWS: Final = (*TOPIC_KEYS, MIN_INSYNC_REPLICAS, COMPRESSION_TYPE, *_AS_IT_IS)
TOPIC_DEFINITION: Final = ConfigDefinition("topic", TOPIC_ROWS)
TOPIC_SYNONYMS: Final[Mapping[str, str]] = {
    **SERVER_SYNONYMS,
    MIN_INSYNC_REPLICAS.name: MIN_INSYNC_REPLICAS.name,
    COMPRESSION_TYPE.name: COMPRESSION_TYPE.name,
    "preallocate": "log.preallocate",
    "segment.jitter.ms": "log.roll.jitter.ms",
    "unclean.leader.election.enable": "unclean.leader.election.enable",
}

# Times that Kafka also takes in larger units; the finest one that is given counts.
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
    ConfigKey(
        "node.id", INT, 1, at_least(0), "The number of this broker in its cluster.", ("broker.id",)
    ),
    ConfigKey(
        "advertised.listeners",
        list,
        None,
        not_empty(),
        "The addresses given to clients, as NAME://host:port; where it listens if not set.",
    ),
    ConfigKey("broker.rack", str, None, None, "The rack that this broker stands in."),
    ConfigKey(
        "auto.create.topics.enable",
        bool,
        True,
        None,
        "Whether a topic that a client asks for is created if there is none.",
    ),
    ConfigKey(
        "connections.max.idle.ms",
        LONG,
        600_000,
        at_least(-1),
        "How long a connection may be silent before it is closed; -1: for ever.",
    ),
    ConfigKey(
        "controller.listener.names",
        list,
        [],
        None,
        "Listeners that are not opened: the controller has no port of its own here.",
    ),
    ConfigKey(
        "default.replication.factor",
        INT,
        1,
        at_least(1),
        "How many replicas a topic gets that does not say.",
    ),
    ConfigKey("delete.topic.enable", bool, True, None, "Whether clients may delete topics."),
    ConfigKey(
        "fetch.max.bytes",
        INT,
        55 << 20,
        at_least(1024),
        "The most that one fetch request gets, whatever it asks for.",
    ),
    ConfigKey(
        "group.initial.rebalance.delay.ms",
        INT,
        0,
        at_least(0),
        "How long a new group waits for more members: not at all here, 3000 in Apache Kafka.",
    ),
    ConfigKey(
        "group.max.session.timeout.ms",
        INT,
        1_800_000,
        at_least(0),
        "The longest session timeout that a member may ask for.",
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
        "The shortest session timeout that a member may ask for.",
    ),
    ConfigKey(
        "listener.security.protocol.map",
        str,
        "SASL_SSL:SASL_SSL,PLAINTEXT:PLAINTEXT,SSL:SSL,SASL_PLAINTEXT:SASL_PLAINTEXT",
        None,
        "What each listener speaks, as NAME:PROTOCOL; PLAINTEXT and SSL are served.",
    ),
    ConfigKey(
        "listeners",
        list,
        None,
        not_empty(),
        "Where to listen, as NAME://host:port; an empty host is every address of the machine.",
    ),
    ConfigKey("log.dir", list, None, not_empty(), "The folder to keep data in, or several."),
    ConfigKey(
        "log.dirs",
        list,
        None,
        not_empty(),
        "The folders to keep data in; partitions are spread over them. log.dir if not set.",
    ),
    ConfigKey(
        "log.cleaner.backoff.ms",
        LONG,
        15_000,
        at_least(0),
        "How often logs are looked for that are due for compaction.",
    ),
    ConfigKey(
        "log.cleaner.dedupe.buffer.size",
        LONG,
        128 << 20,
        at_least(1 << 20),
        "The most memory that compaction takes for keys; a log with more takes several rounds.",
    ),
    ConfigKey(
        "log.cleaner.enable",
        bool,
        True,
        None,
        "Whether the topics with cleanup.policy=compact are compacted.",
    ),
    ConfigKey(
        "log.retention.check.interval.ms",
        LONG,
        300_000,
        at_least(1),
        "How often old segments are looked for.",
    ),
    ConfigKey(
        "log.retention.hours",
        INT,
        168,
        at_least(-1),
        "How old records may grow; log.retention.minutes and .ms go before it.",
    ),
    ConfigKey(
        "log.retention.minutes",
        INT,
        None,
        at_least(-1),
        "How old records may grow; log.retention.ms goes before it.",
    ),
    ConfigKey(
        "log.roll.hours",
        INT,
        168,
        at_least(1),
        "How much later than its first batch a segment's records may be; log.roll.ms goes first.",
    ),
    ConfigKey(
        "max.incremental.fetch.session.cache.slots",
        INT,
        1000,
        at_least(0),
        "How many fetch sessions are kept; clients beyond that send full requests.",
    ),
    ConfigKey(
        "max.request.partition.size.limit",
        INT,
        2000,
        at_least(1),
        "How many partitions one response to DescribeTopicPartitions shows at most.",
    ),
    ConfigKey(
        "num.partitions", INT, 1, at_least(1), "How many partitions a topic gets that does not say."
    ),
    ConfigKey(
        "offset.metadata.max.bytes",
        INT,
        4096,
        at_least(0),
        "How much text a consumer may leave with a committed offset.",
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
        "How many partitions __consumer_offsets gets when it is created.",
    ),
    ConfigKey(
        "offsets.topic.replication.factor",
        SHORT,
        1,
        at_least(1),
        "How many replicas __consumer_offsets gets when it is created.",
    ),
    ConfigKey(
        "offsets.topic.segment.bytes",
        INT,
        100 << 20,
        at_least(1024),
        "The segment size of __consumer_offsets when it is created.",
    ),
    ConfigKey(
        "socket.request.max.bytes",
        INT,
        100 << 20,
        at_least(1),
        "The largest request that is read; a connection that announces more is closed.",
    ),
    ConfigKey(
        "socket.send.buffer.bytes",
        INT,
        256 << 10,
        at_least(-1),
        "How much of its answers a connection hands to the system ahead of the client; -1: as much "
        "as that likes to take, for clients far away. 102400 in Apache Kafka.",
    ),
    *TLS_ROWS,
    *_LOG_DEFAULT_ROWS,
)
BROKER_DEFINITION: Final = ConfigDefinition(
    "broker", BROKER_ROWS, listing="broker-stub --list-options", dotted_only=True
)
