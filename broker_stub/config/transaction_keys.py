"""The broker's options for transactions, by Kafka's names. Only a table."""

from typing import Final

from broker_stub.integer_types import INT, SHORT
from pyclient.config.definition import ConfigKey, at_least, one_of

TRANSACTION_ROWS: Final = (
    ConfigKey(
        "transaction.abort.timed.out.transaction.cleanup.interval.ms",
        INT,
        10_000,
        at_least(1),
        "How often transactions that have timed out are looked for.",
    ),
    ConfigKey(
        "transaction.max.timeout.ms",
        INT,
        900_000,
        at_least(1),
        "The longest transaction timeout that a producer may request.",
    ),
    ConfigKey(
        "transaction.partition.verification.enable",
        bool,
        True,
        None,
        "Whether a transactional batch is refused if its partition is not in the transaction.",
    ),
    ConfigKey(
        "transaction.remove.expired.transaction.cleanup.interval.ms",
        INT,
        3_600_000,
        at_least(1),
        "How often expired transactional ids are looked for.",
    ),
    ConfigKey(
        "transaction.state.log.min.isr",
        INT,
        1,
        at_least(1),
        "min.insync.replicas of __transaction_state when it is created. Apache Kafka's default"
        " is 2.",
    ),
    ConfigKey(
        "transaction.state.log.num.partitions",
        INT,
        50,
        at_least(1),
        "Partitions of __transaction_state when it is created.",
    ),
    ConfigKey(
        "transaction.state.log.replication.factor",
        SHORT,
        1,
        at_least(1),
        "Replication factor of __transaction_state when it is created. Apache Kafka's default"
        " is 3.",
    ),
    ConfigKey(
        "transaction.state.log.segment.bytes",
        INT,
        100 << 20,
        at_least(1024),
        "Segment size of __transaction_state when it is created.",
    ),
    ConfigKey(
        "transaction.version",
        SHORT,
        2,
        one_of(0, 1, 2),
        "The feature level of transactions that clients are told: 2 for KIP-890, 0 or 1 to test"
        " clients as on an older cluster. Apache Kafka sets it with kafka-features.",
    ),
    ConfigKey(
        "transactional.id.expiration.ms",
        INT,
        604_800_000,
        at_least(1),
        "How long a transactional id is kept after its last transaction.",
    ),
)
