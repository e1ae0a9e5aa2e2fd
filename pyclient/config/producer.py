"""The producer's options, and Kafka's rules between them."""

import logging
import math
from collections.abc import Mapping
from typing import Any

from pyclient.config.common import (
    COMMON_ELSEWHERE,
    COMMON_KEYS,
    COMMON_REFUSED,
    INT32_MAX,
)
from pyclient.config.definition import (
    Config,
    ConfigDefinition,
    ConfigKey,
    ConfigType,
    RefusedKey,
    at_least,
    between,
    config_type,
    contradiction,
    one_of,
)
from pyclient.config.metrics import METRICS_KEYS
from pyclient.errors import KafkaConfigurationError
from pyclient.serialization import serializer

log = logging.getLogger(__name__)

IDEMPOTENT_IN_FLIGHT_MAX = 5
"""How many batches per producer and partition the broker remembers to detect duplicates."""

_ACKS = {"all": -1, "-1": -1, "0": 0, "1": 1}


def _to_acks(value: Any) -> int:
    if str(value) not in _ACKS:
        raise ValueError(value)
    return _ACKS[str(value)]


def _to_retries(value: Any) -> int:
    if value == math.inf or value == "inf":
        return INT32_MAX
    number: int = config_type(int).convert(value)
    return number


def _to_codec(value: Any) -> str:
    return "none" if value is None else str(value)


def _to_serializer(value: Any) -> Any:
    serializer(value)  # raises for what cannot serialize
    return value


def _to_partitioner(value: Any) -> Any:
    # A string has a method of that name too.
    if isinstance(value, str) or not callable(getattr(value, "partition", value)):
        raise ValueError(value)
    return value


SERIALIZER = ConfigType("a callable or an object with serialize()", _to_serializer)

_PARTITIONING = "only the default partitioning of records without a key is supported yet"

DEFINITION = ConfigDefinition(
    "KafkaProducer",
    (
        *COMMON_KEYS,
        ConfigKey(
            "key.serializer",
            SERIALIZER,
            None,
            None,
            "Converts a key to bytes. Default: keys are bytes already.",
        ),
        ConfigKey(
            "value.serializer",
            SERIALIZER,
            None,
            None,
            "Converts a value to bytes. Default: values are bytes already.",
        ),
        ConfigKey(
            "acks",
            ConfigType("0, 1, -1 or 'all'", _to_acks),
            -1,
            None,
            "The acknowledgements that a record needs: none (0), the leader's (1), all in-sync"
            " replicas' (all or -1). Less than all turns idempotence off.",
        ),
        ConfigKey(
            "enable.idempotence",
            bool,
            True,
            None,
            "Write each record exactly once and in order, despite retries.",
        ),
        ConfigKey(
            "transactional.id",
            str,
            None,
            None,
            "Makes the producer transactional. The name is the same after a restart of the program,"
            " and two producers never use it at once: the later one fences the earlier.",
        ),
        ConfigKey(
            "transaction.timeout.ms",
            int,
            60_000,
            between(1, INT32_MAX),
            "The coordinator aborts a transaction that is open for longer. The brokers'"
            " transaction.max.timeout.ms, 15 minutes by default, is the limit.",
        ),
        ConfigKey(
            "compression.type",
            ConfigType("a string or None", _to_codec),
            "none",
            one_of("none", "gzip", "snappy", "lz4", "zstd"),
            "The codec of record batches.",
        ),
        ConfigKey(
            "compression.gzip.level",
            int,
            -1,
            one_of(-1, *range(1, 10)),
            "1 is fastest, 9 smallest; -1 is the codec's own default.",
        ),
        ConfigKey(
            "compression.lz4.level",
            int,
            9,
            between(1, 17),
            "The level of the high-compression variant; 9, as in Kafka's clients, is the fast one.",
        ),
        ConfigKey(
            "compression.zstd.level",
            int,
            3,
            between(-131_072, 22),
            "Negative is fastest, 22 smallest.",
        ),
        ConfigKey(
            "batch.size",
            int,
            16_384,
            between(0, INT32_MAX),
            "A batch is sent once it has this many bytes; 0 sends records one by one.",
        ),
        ConfigKey(
            "batch.max.size",
            int,
            262_144,
            between(0, INT32_MAX),
            "A full batch may grow to this size while it waits for its broker. If equal to"
            " batch.size, batches do not grow, as in Java's client.",
        ),
        ConfigKey(
            "linger.ms",
            int,
            5,
            at_least(0),
            "How long a batch waits for more records before it is sent.",
        ),
        ConfigKey(
            "buffer.memory",
            int,
            33_554_432,
            at_least(0),
            "The memory for records that wait to be sent; send() blocks when it is exhausted.",
        ),
        ConfigKey(
            "max.block.ms",
            int,
            60_000,
            at_least(0),
            "How long send() and partitions_for() may wait for memory or metadata.",
        ),
        ConfigKey(
            "max.request.size",
            int,
            1_048_576,
            between(1, INT32_MAX),
            "The largest request to send, and so the largest record.",
        ),
        ConfigKey(
            "delivery.timeout.ms",
            int,
            120_000,
            at_least(0),
            "The time after send() in which a record must be delivered, retries included.",
        ),
        ConfigKey(
            "retries",
            ConfigType("an integer or infinity", _to_retries),
            INT32_MAX,
            between(0, INT32_MAX),
            "How often a batch is retried. Prefer delivery.timeout.ms as the limit.",
        ),
        ConfigKey(
            "partitioner",
            ConfigType("a callable or an object with partition()", _to_partitioner),
            None,
            None,
            "Chooses a record's partition. Default: by the key's hash as in Java; without a key,"
            " one partition until batch.size bytes have gone to it.",
            aliases=("partitioner.class",),
        ),
        ConfigKey(
            "partitioner.ignore.keys",
            bool,
            False,
            None,
            "Partition records with a key like those without one: equal keys may go anywhere.",
        ),
        ConfigKey(
            "interceptor.classes",
            list,
            None,
            None,
            "Objects or classes that see every record and its outcome, in this order: see"
            " ProducerInterceptor.",
            aliases=("interceptors",),
        ),
        ConfigKey(
            "allow.auto.create.topics",
            bool,
            True,
            None,
            "Let the broker create a topic that is sent to and does not exist.",
        ),
        ConfigKey(
            "metadata.max.idle.ms",
            int,
            300_000,
            at_least(5_000),
            "Stop requesting metadata for a topic that was unused for this long. Until then, a"
            " metadata request may recreate a deleted topic.",
        ),
        *METRICS_KEYS,
    ),
    (
        *COMMON_REFUSED,
        RefusedKey(
            "transaction.two.phase.commit.enable",
            "use prepare_transaction() and KafkaAdminClient.end_transaction()",
            (False,),
        ),
        RefusedKey(
            "bootstrap.topics.filter",
            "the first metadata request names no topic",
            (None, set(), [], ()),
        ),
        RefusedKey(
            "default.api.timeout.ms",
            "use max.block.ms and delivery.timeout.ms",
            (60_000,),
        ),
        RefusedKey("partitioner.adaptive.partitioning.enable", _PARTITIONING, (True,)),
        RefusedKey("partitioner.availability.timeout.ms", _PARTITIONING, (0,)),
    ),
    {
        **COMMON_ELSEWHERE,
        "request.required.acks": "acks",
        "message.send.max.retries": "retries",
        "message.timeout.ms": "delivery.timeout.ms",
        "message.max.bytes": "max.request.size",
        "queue.buffering.max.ms": "linger.ms",
        "queue.buffering.max.kbytes": "buffer.memory",
        "batch.num.messages": "batch.size",
        "compression.codec": "compression.type",
    },
)


def parse(options: Mapping[str, object]) -> Config:
    """The producer's configuration.

    Raises:
        KafkaConfigurationError: an option is wrong by itself, or contradicts another.
    """
    config = DEFINITION.parse(options)
    if config["partitioner.ignore.keys"] and config["partitioner"] is not None:
        reason = "your partitioner decides how keys are used"
        raise contradiction(config, "partitioner.ignore.keys", "partitioner", reason)
    return _delivery_timeout(_transactions(_idempotence(_batch_max_size(config))))


def _batch_max_size(config: Config) -> Config:
    """Keep batch.size <= batch.max.size <= max.request.size, by what was not set if possible."""
    batch_size, wanted = config["batch.size"], config["batch.max.size"]
    max_request_size = config["max.request.size"]
    if not config.is_explicit("batch.max.size"):
        return config.derive({"batch.max.size": max(batch_size, min(wanted, max_request_size))})
    if wanted > max_request_size:
        reason = "a batch must fit into a request"
        raise contradiction(config, "batch.max.size", "max.request.size", reason)
    if wanted < batch_size and config.is_explicit("batch.size"):
        reason = "batches grow from batch.size to batch.max.size"
        raise contradiction(config, "batch.max.size", "batch.size", reason)
    return config.derive({"batch.size": min(batch_size, wanted)})


def _idempotence(config: Config) -> Config:
    """Turn idempotence off where an explicit option needs that, unless it was asked for."""
    for name, needed in (("acks", config["acks"] == -1), ("retries", config["retries"] > 0)):
        if needed or not config["enable.idempotence"]:
            continue
        if config.is_explicit("enable.idempotence"):
            reason = "idempotence needs acks=all and retries above 0"
            raise contradiction(config, name, "enable.idempotence", reason)
        log.info("Idempotence is off because %s is %s", name, config[name])
        config = config.derive({"enable.idempotence": False})
    in_flight = config["max.in.flight.requests.per.connection"]
    if config["enable.idempotence"] and in_flight > IDEMPOTENT_IN_FLIGHT_MAX:
        raise contradiction(
            config,
            "max.in.flight.requests.per.connection",
            "enable.idempotence",
            f"an idempotent producer has at most {IDEMPOTENT_IN_FLIGHT_MAX} requests in flight",
        )
    return config


def _transactions(config: Config) -> Config:
    """A transactional producer is idempotent."""
    if config["transactional.id"] is None:
        if config["transaction.timeout.ms"] != 60_000:
            reason = "only a transactional producer has a transaction timeout"
            raise contradiction(config, "transaction.timeout.ms", "transactional.id", reason)
        return config
    if not config["transactional.id"]:
        raise KafkaConfigurationError(
            "transactional.id is empty: leave it out, or name the program",
            key="transactional.id",
            value="",
        )
    for name, needed in (("acks", config["acks"] == -1), ("retries", config["retries"] > 0)):
        if not needed:
            reason = "transactions need acks=all and retries above 0"
            raise contradiction(config, name, "transactional.id", reason)
    if not config["enable.idempotence"]:
        reason = "transactions need idempotence"
        raise contradiction(config, "enable.idempotence", "transactional.id", reason)
    return config


def _delivery_timeout(config: Config) -> Config:
    """Leave time for at least one attempt."""
    needed_ms = min(config["linger.ms"] + config["request.timeout.ms"], INT32_MAX)
    if config["delivery.timeout.ms"] >= needed_ms:
        return config
    if config.is_explicit("delivery.timeout.ms"):
        reason = f"with linger.ms={config['linger.ms']}, one attempt may take {needed_ms} ms"
        raise contradiction(config, "delivery.timeout.ms", "request.timeout.ms", reason)
    return config.derive({"delivery.timeout.ms": needed_ms})
