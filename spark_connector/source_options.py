"""The options of `spark.read` and `spark.readStream`: the JVM connector's, with its rules."""

import logging
from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import Any, Final

from pyclient import KafkaConsumer, KafkaProducer, TopicPartition
from pyclient.config import consumer as consumer_config
from spark_connector.offsets import (
    EARLIEST,
    LATEST,
    GlobalTimestamp,
    OffsetLimit,
    SpecificOffsets,
    SpecificTimestamps,
    parse_offsets,
    parse_partitions,
    parse_timestamps,
)
from spark_connector.options import CLIENT_PREFIX, Options, check_client
from spark_connector.sink_options import SINK_KEYS

log = logging.getLogger(__name__)

_STRATEGIES: Final = ("subscribe", "subscribePattern", "assign")
_STREAM_ONLY: Final = (
    "maxOffsetsPerTrigger", "minOffsetsPerTrigger", "maxTriggerDelay", "commitOffsetsToGroup",
)  # fmt: skip
SOURCE_KEYS: Final = (
    *_STRATEGIES,
    "startingOffsets", "startingOffsetsByTimestamp", "startingTimestamp",
    "startingOffsetsByTimestampStrategy",
    "endingOffsets", "endingOffsetsByTimestamp", "endingTimestamp",
    "failOnDataLoss", "includeHeaders", "minPartitions", "maxRecordsPerPartition",
    *_STREAM_ONLY,
    "groupIdPrefix", "kafkaConsumer.pollTimeoutMs", "fetchOffset.numRetries",
    "fetchOffset.retryIntervalMs", "partition.metadata.cache.ttl.ms",
    "pushFilters", "pushFilters.maxDisorder",
)  # fmt: skip
_REFUSED_CLIENT_KEYS: Final = {
    "auto.offset.reset": "set the source option 'startingOffsets' to 'earliest' or 'latest'",
    "key.deserializer": "keys are read as bytes; convert them in the DataFrame",
    "value.deserializer": "values are read as bytes; convert them in the DataFrame",
    "enable.auto.commit": "use the source option 'commitOffsetsToGroup'",
    "interceptor.classes": "an interceptor could change the records",
}
_POLL_TIMEOUT_MS: Final = 120_000


@dataclass(frozen=True)
class Subscription:
    """Which partitions to read: exactly one of the three is set."""

    topics: tuple[str, ...] = ()
    pattern: str | None = None
    partitions: tuple[TopicPartition, ...] = ()


@dataclass(frozen=True)
class SourceOptions:
    """The options of a read. Sent to the tasks by pickle."""

    subscription: Subscription
    client: dict[str, Any]
    starting: OffsetLimit
    ending: OffsetLimit = "latest"
    latest_if_no_match: bool = False
    fail_on_data_loss: bool = True
    include_headers: bool = False
    min_partitions: int | None = None
    max_records_per_partition: int | None = None
    max_offsets_per_trigger: int | None = None
    min_offsets_per_trigger: int | None = None
    max_trigger_delay_ms: int = 15 * 60_000
    commit_to_group: str | None = None
    poll_timeout_ms: int = _POLL_TIMEOUT_MS
    fetch_attempts: int = 3
    fetch_retry_ms: int = 10
    partition_cache_ttl_ms: int = -1
    push_filters: bool = False
    max_disorder_ms: int = 60_000
    group_name: str = field(default="spark-kafka-source")


def includes_headers(given: Mapping[str, str]) -> bool:
    """Whether the schema has a headers column; read before the other options are checked."""
    return Options(given).boolean("includeHeaders", default=False)


def parse_source_options(given: Mapping[str, str], *, streaming: bool) -> SourceOptions:
    """Check a source's options.

    Raises:
        ValueError: an option is missing, contradictory or malformed.
    """
    options = Options(given)
    options.warn_of_others(SOURCE_KEYS, SINK_KEYS)
    if streaming:
        _refuse_ends_of_streams(options)
    else:
        _warn_of_stream_options(options)
    starting = _limit(options, "starting", "latest" if streaming else "earliest")
    ending = "latest" if streaming else _limit(options, "ending", "latest")
    if not streaming:
        _check_batch_limits(starting, ending)
    return SourceOptions(
        subscription=_subscription(options),
        client=_client_options(options),
        starting=starting,
        ending=ending,
        latest_if_no_match=_latest_if_no_match(options),
        fail_on_data_loss=options.boolean("failOnDataLoss", default=True),
        include_headers=options.boolean("includeHeaders", default=False),
        min_partitions=options.positive("minPartitions"),
        max_records_per_partition=options.positive("maxRecordsPerPartition"),
        poll_timeout_ms=options.positive("kafkaConsumer.pollTimeoutMs") or _POLL_TIMEOUT_MS,
        fetch_attempts=options.positive("fetchOffset.numRetries") or 3,
        fetch_retry_ms=options.duration_ms("fetchOffset.retryIntervalMs", "10"),
        partition_cache_ttl_ms=_cache_ttl_ms(options),
        push_filters=options.boolean("pushFilters", default=False),
        max_disorder_ms=options.duration_ms("pushFilters.maxDisorder", "1m"),
        group_name=_group_name(options, streaming=streaming),
        **(_trigger_options(options) if streaming else {}),
    )


def check_source_options(given: Mapping[str, str]) -> None:
    """Check what holds for batches and streams alike; called when a DataFrame is loaded."""
    options = Options(given)
    _subscription(options)
    _client_options(options)
    _trigger_options(options)
    options.positive("minPartitions")
    options.positive("maxRecordsPerPartition")
    _cache_ttl_ms(options)


# --- where to start and to end -------------------------------------------------------------------


def _limit(options: Options, side: str, default: str) -> OffsetLimit:
    """The most specific of the options of one side, in the JVM connector's order."""
    by_time = options.text(f"{side}Timestamp")
    if by_time is not None:
        try:
            return GlobalTimestamp(int(by_time))
        except ValueError:
            raise ValueError(
                f"Option '{side}Timestamp': Expected a single long value, got {by_time}"
            ) from None
    by_partition = options.text(f"{side}OffsetsByTimestamp")
    if by_partition is not None:
        return SpecificTimestamps(parse_timestamps(by_partition, f"{side}OffsetsByTimestamp"))
    text = options.text(f"{side}Offsets") or default
    if text.lower() in ("earliest", "latest"):
        return text.lower()
    return SpecificOffsets(parse_offsets(text, f"{side}Offsets"))


def _check_batch_limits(starting: OffsetLimit, ending: OffsetLimit) -> None:
    if starting == "latest":
        raise ValueError("starting offset can't be latest for batch queries on Kafka")
    if ending == "earliest":
        raise ValueError("ending offset can't be earliest for batch queries on Kafka")
    if isinstance(starting, SpecificOffsets):
        for one, offset in starting.items():
            if offset == LATEST:
                raise ValueError(
                    f"startingOffsets for {one.topic}-{one.partition} can't be latest "
                    "for batch queries on Kafka"
                )
    if isinstance(ending, SpecificOffsets):
        for one, offset in ending.items():
            if offset == EARLIEST:
                raise ValueError(
                    f"ending offset for {one.topic}-{one.partition} can't be earliest "
                    "for batch queries on Kafka"
                )
    if isinstance(starting, dict) and type(starting) is type(ending):
        assert isinstance(ending, dict)
        _check_order(starting, ending)


def _check_order(starting: dict[TopicPartition, int], ending: dict[TopicPartition, int]) -> None:
    if set(starting) != set(ending):
        raise ValueError(
            "[MISMATCHED_TOPIC_PARTITIONS_BETWEEN_START_OFFSET_AND_END_OFFSET] "
            "the starting and the ending option must name the same partitions: "
            f"{sorted(starting)} and {sorted(ending)}"
        )
    what = "offset" if isinstance(starting, SpecificOffsets) else "timestamp"
    for one, start in starting.items():
        if start >= 0 and 0 <= ending[one] < start:
            raise ValueError(
                "[UNRESOLVED_START_OFFSET_GREATER_THAN_END_OFFSET] the specified start "
                f"{what} {start} is greater than the end {what} {ending[one]} "
                f"for topic {one.topic} partition {one.partition}"
            )


def _latest_if_no_match(options: Options) -> bool:
    strategy = (options.text("startingOffsetsByTimestampStrategy") or "error").lower()
    if strategy not in ("error", "latest"):
        raise ValueError(
            f"Option 'startingOffsetsByTimestampStrategy' is error or latest, not '{strategy}'"
        )
    return strategy == "latest"


def _refuse_ends_of_streams(options: Options) -> None:
    if "endingOffsets" in options:
        raise ValueError("ending offset not valid in streaming queries")
    if "endingOffsetsByTimestamp" in options:
        raise ValueError("ending timestamp not valid in streaming queries")
    if "endingTimestamp" in options:
        log.warning("option 'endingTimestamp' has no effect in streaming queries")


# --- the rest ------------------------------------------------------------------------------------


def _subscription(options: Options) -> Subscription:
    given = [way for way in _STRATEGIES if way in options]
    if len(given) != 1:
        number = "Only one" if given else "One"
        verb = "can" if given else "must"
        hint = ""
        if "kafka.bootstrap.servers" not in options and not given:
            hint = (
                ". If this is a table of CREATE TABLE ... USING pykafka: Spark does not pass a "
                "table's options on to Python sources; use CREATE TEMPORARY VIEW"
            )
        raise ValueError(
            f"{number} of the following options {verb} be specified for Kafka source: "
            f"{', '.join(_STRATEGIES)}{hint}"
        )
    text = options.text(given[0]) or ""
    if given[0] == "assign":
        if not text.startswith("{"):
            raise ValueError(
                f"No topicpartitions to assign as specified value for option 'assign' is '{text}'"
            )
        return Subscription(partitions=tuple(sorted(set(parse_partitions(text, "assign")))))
    if given[0] == "subscribePattern":
        if not text:
            raise ValueError(
                "Pattern to subscribe is empty as specified value for option "
                f"'subscribePattern' is '{text}'"
            )
        return Subscription(pattern=text)
    topics = sorted({topic.strip() for topic in text.split(",") if topic.strip()})
    if not topics:
        raise ValueError(
            f"No topics to subscribe to as specified value for option 'subscribe' is '{text}'"
        )
    return Subscription(topics=tuple(topics))


def _client_options(options: Options) -> dict[str, Any]:
    for key, instead in _REFUSED_CLIENT_KEYS.items():
        if CLIENT_PREFIX + key in options:
            raise ValueError(f"Kafka option '{key}' is not supported: {instead}")
    # Tasks return Arrow batches, which max.poll.records does not bound.
    client = options.client(
        "consumer",
        KafkaConsumer.DEFAULT_CONFIG,
        KafkaProducer.DEFAULT_CONFIG,
        ("max.poll.records", "group.id", "allow.auto.create.topics"),
    )
    check_client(consumer_config.parse, client)
    return client


def _group_name(options: Options, *, streaming: bool) -> str:
    # The source reads without a group. The name is part of the client id, as it is with Java.
    prefix = "spark-kafka-source" if streaming else "spark-kafka-relation"
    return options.text("kafka.group.id") or options.text("groupIdPrefix") or prefix


def _cache_ttl_ms(options: Options) -> int:
    ttl_ms = options.integer("partition.metadata.cache.ttl.ms")
    if ttl_ms is not None and ttl_ms <= 0 and ttl_ms != -1:
        raise ValueError(
            "Option 'partition.metadata.cache.ttl.ms' must be a positive number of milliseconds, "
            "or -1 to disable caching"
        )
    return -1 if ttl_ms is None else ttl_ms


def _trigger_options(options: Options) -> dict[str, Any]:
    lowest, most = (
        options.positive("minOffsetsPerTrigger"),
        options.positive("maxOffsetsPerTrigger"),
    )
    if lowest is not None and most is not None and lowest > most:
        raise ValueError(
            f"The value of minOffsetPerTrigger({lowest}) is higher than the "
            f"maxOffsetsPerTrigger({most})."
        )
    return {
        "min_offsets_per_trigger": lowest,
        "max_offsets_per_trigger": most,
        "max_trigger_delay_ms": options.duration_ms("maxTriggerDelay", "15m"),
        "commit_to_group": options.text("commitOffsetsToGroup") or None,
    }


def _warn_of_stream_options(options: Options) -> None:
    for option in _STREAM_ONLY:
        if option in options:
            log.warning("option '%s' has no effect in batch queries", option)
