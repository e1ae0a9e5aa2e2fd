"""The topic options that a log uses: Kafka's keys, defaults and rules.

The broker's configuration and DescribeConfigs read the rows; `LogConfig` has the values that the
log reads for every batch. A leaf.
"""

from collections.abc import Mapping
from typing import Any, Final, NamedTuple

from broker_stub.integer_types import INT, LONG
from pyclient.config.definition import ConfigKey, Rule, at_least, between, one_of
from pyclient.records.compression import LEVELS, Codec

CREATE_TIME: Final = "CreateTime"
LOG_APPEND_TIME: Final = "LogAppendTime"
DELETE: Final = "delete"
COMPACT: Final = "compact"
PRODUCER_CODEC: Final = "producer"
UNCOMPRESSED: Final = "uncompressed"
INT32_MAX: Final = 2**31 - 1
INT64_MAX: Final = 2**63 - 1
_WEEK_MS: Final = 7 * 24 * 3600 * 1000

_POLICIES = Rule(
    f"{DELETE}, {COMPACT}, both or neither",
    lambda policies: {COMPACT, DELETE}.issuperset(policies),
    choices=(COMPACT, DELETE),
)

_GZIP_LEVELS = Rule("between 1 and 9 or equal to -1", lambda level: level in LEVELS[Codec.GZIP])

TOPIC_KEYS: Final = (
    ConfigKey(
        "cleanup.policy",
        list,
        [DELETE],
        _POLICIES,
        "What happens to old segments: deleted by time and size, compacted by key, both, nothing.",
    ),
    ConfigKey(
        "compression.gzip.level",
        INT,
        -1,
        _GZIP_LEVELS,
        "How hard gzip works where it is the compression.type; -1: its default.",
    ),
    ConfigKey(
        "compression.lz4.level",
        INT,
        9,
        between(LEVELS[Codec.LZ4][0], LEVELS[Codec.LZ4][-1]),
        "How hard lz4 works where it is the compression.type.",
    ),
    ConfigKey(
        "compression.type",
        str,
        PRODUCER_CODEC,
        one_of(UNCOMPRESSED, "zstd", "lz4", "snappy", "gzip", PRODUCER_CODEC),
        "The codec that batches are kept in: the producer's own, or this one for all.",
    ),
    ConfigKey(
        "compression.zstd.level",
        INT,
        3,
        between(LEVELS[Codec.ZSTD][0], LEVELS[Codec.ZSTD][-1]),
        "How hard zstd works where it is the compression.type.",
    ),
    ConfigKey(
        "delete.retention.ms",
        LONG,
        86_400_000,
        at_least(0),
        "How long a compacted topic keeps a tombstone, so that slow readers see the deletion.",
    ),
    ConfigKey(
        "file.delete.delay.ms",
        LONG,
        60_000,
        at_least(0),
        "How long the files of a deleted segment or partition stay, renamed, before they go.",
    ),
    ConfigKey(
        "flush.messages",
        LONG,
        INT64_MAX,
        at_least(1),
        "After how many records an fsync is forced.",
    ),
    ConfigKey(
        "flush.ms",
        LONG,
        INT64_MAX,
        at_least(0),
        "After how long an fsync is forced.",
    ),
    ConfigKey(
        "index.interval.bytes",
        INT,
        4096,
        at_least(0),
        "About how many bytes of records lie between two entries of an index.",
    ),
    ConfigKey(
        "max.compaction.lag.ms",
        LONG,
        INT64_MAX,
        at_least(1),
        "How long a record of a compacted topic may stay uncompacted.",
    ),
    ConfigKey(
        "max.message.bytes",
        INT,
        1_048_588,
        at_least(0),
        "The largest batch that is accepted, compressed as it comes.",
    ),
    ConfigKey(
        "message.timestamp.after.max.ms",
        LONG,
        3_600_000,
        at_least(0),
        "How far a record's own timestamp may lie ahead of the broker's clock.",
    ),
    ConfigKey(
        "message.timestamp.before.max.ms",
        LONG,
        INT64_MAX,
        at_least(0),
        "How far a record's own timestamp may lie behind the broker's clock.",
    ),
    ConfigKey(
        "message.timestamp.type",
        str,
        CREATE_TIME,
        one_of(CREATE_TIME, LOG_APPEND_TIME),
        "Whether a record has the time its producer gave it, or that of its append.",
    ),
    ConfigKey(
        "min.cleanable.dirty.ratio",
        float,
        0.5,
        between(0, 1),
        "How much of a compacted topic's log has to be new before it is compacted again.",
    ),
    ConfigKey(
        "min.compaction.lag.ms",
        LONG,
        0,
        at_least(0),
        "How long a record of a compacted topic stays uncompacted at least.",
    ),
    ConfigKey(
        "retention.bytes",
        LONG,
        -1,
        at_least(-1),
        "How large a partition may grow before its oldest segments are deleted; -1: any size.",
    ),
    ConfigKey(
        "retention.ms",
        LONG,
        _WEEK_MS,
        at_least(-1),
        "How old records may grow before their segments are deleted; -1: any age.",
    ),
    # Kafka 4 asks for a megabyte at least; small segments are allowed here, for quick tests.
    ConfigKey(
        "segment.bytes",
        INT,
        1 << 30,
        at_least(14),
        "The size at which a segment is closed and a new one is started.",
    ),
    ConfigKey(
        "segment.index.bytes",
        INT,
        10 << 20,
        at_least(24),
        "The largest size of an index; a segment whose index is full is closed.",
    ),
    ConfigKey(
        "segment.ms",
        LONG,
        _WEEK_MS,
        at_least(1),
        "How much later than its first batch a segment's records may be before it is closed.",
    ),
)

SERVER_SYNONYMS: Final = {
    "cleanup.policy": "log.cleanup.policy",
    "compression.gzip.level": "compression.gzip.level",
    "compression.lz4.level": "compression.lz4.level",
    "compression.type": "compression.type",
    "compression.zstd.level": "compression.zstd.level",
    "delete.retention.ms": "log.cleaner.delete.retention.ms",
    "file.delete.delay.ms": "log.segment.delete.delay.ms",
    "flush.messages": "log.flush.interval.messages",
    "flush.ms": "log.flush.interval.ms",
    "index.interval.bytes": "log.index.interval.bytes",
    "max.compaction.lag.ms": "log.cleaner.max.compaction.lag.ms",
    "max.message.bytes": "message.max.bytes",
    "message.timestamp.after.max.ms": "log.message.timestamp.after.max.ms",
    "message.timestamp.before.max.ms": "log.message.timestamp.before.max.ms",
    "message.timestamp.type": "log.message.timestamp.type",
    "min.cleanable.dirty.ratio": "log.cleaner.min.cleanable.ratio",
    "min.compaction.lag.ms": "log.cleaner.min.compaction.lag.ms",
    "retention.bytes": "log.retention.bytes",
    "retention.ms": "log.retention.ms",
    "segment.bytes": "log.segment.bytes",
    "segment.index.bytes": "log.index.size.max.bytes",
    "segment.ms": "log.roll.ms",
}
"""The broker option that sets the default of each topic option."""


class LogConfig(NamedTuple):
    """A topic's option values, typed. Immutable: a change at run time makes a new one."""

    cleanup_policy: frozenset[str]
    compression_gzip_level: int
    compression_lz4_level: int
    compression_type: str
    compression_zstd_level: int
    delete_retention_ms: int
    file_delete_delay_ms: int
    flush_messages: int
    flush_ms: int
    index_interval_bytes: int
    max_compaction_lag_ms: int
    max_message_bytes: int
    message_timestamp_after_max_ms: int
    message_timestamp_before_max_ms: int
    message_timestamp_type: str
    min_cleanable_dirty_ratio: float
    min_compaction_lag_ms: int
    retention_bytes: int
    retention_ms: int
    segment_bytes: int
    segment_index_bytes: int
    segment_ms: int

    @classmethod
    def from_values(cls, values: Mapping[str, Any]) -> "LogConfig":
        """From typed values by Kafka's topic-level names; missing ones are defaults."""
        taken = {key.name: values.get(key.name, key.default) for key in TOPIC_KEYS}
        taken["cleanup.policy"] = frozenset(taken["cleanup.policy"])
        return cls(**{name.replace(".", "_"): value for name, value in taken.items()})

    def compression_level(self, codec: Codec) -> int | None:
        """The level to compress with; None for a codec that has none."""
        return {
            Codec.GZIP: self.compression_gzip_level,
            Codec.LZ4: self.compression_lz4_level,
            Codec.ZSTD: self.compression_zstd_level,
        }.get(codec)

    @property
    def is_compacted(self) -> bool:
        """Whether every record needs a key."""
        return COMPACT in self.cleanup_policy

    @property
    def roll_ms(self) -> int:
        """How long a segment stays active. It cannot be compacted before it is rolled."""
        if self.is_compacted:
            return min(self.segment_ms, self.max_compaction_lag_ms)
        return self.segment_ms

    @property
    def uses_append_time(self) -> bool:
        """Whether records get the time of their append."""
        return self.message_timestamp_type == LOG_APPEND_TIME


DEFAULT_LOG_CONFIG: Final = LogConfig.from_values({})
