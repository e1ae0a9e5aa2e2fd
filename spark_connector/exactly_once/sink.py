"""The options of an exactly-once sink, and the Kafka clients that they make."""

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any, Final

from pyclient import KafkaAdminClient, KafkaConsumer, KafkaProducer, TopicPartition
from pyclient.errors import TopicExistsError
from spark_connector.options import Options
from spark_connector.sink_options import SinkOptions

# The longest that brokers allow by default: it has to cover a batch and a restart.
_TASK_TIMEOUT_MS: Final = "900000"
_DRIVER_TIMEOUT_MS: Final = 10_000
# A segment is compacted only when it is full: small ones keep the topic short.
_DECISION_TOPIC: Final = {
    "num_partitions": 1,
    "configs": {"cleanup.policy": "compact", "segment.bytes": "1048576"},
}


@dataclass(frozen=True)
class ExactlyOnceSink:
    """Where records and decisions go."""

    sink: SinkOptions
    prefix: str
    decision_topic: str
    batch_id: int | None = None

    @property
    def decisions(self) -> TopicPartition:
        return TopicPartition(self.decision_topic, 0)

    def task_producer(self, transactional_id: str) -> KafkaProducer:
        own = {"transactional.id": transactional_id}
        return KafkaProducer(
            **{"transaction.timeout.ms": _TASK_TIMEOUT_MS, **self.sink.client, **own}
        )

    def driver_producer(self, transactional_id: str) -> KafkaProducer:
        own = {
            "transactional.id": transactional_id,
            "transaction.timeout.ms": _DRIVER_TIMEOUT_MS,
        }
        return KafkaProducer(**{**self.sink.client, **own})

    def admin(self) -> KafkaAdminClient:
        return KafkaAdminClient(**self._common(KafkaAdminClient.DEFAULT_CONFIG))

    def consumer(self, isolation_level: str) -> KafkaConsumer:
        client = self._common(KafkaConsumer.DEFAULT_CONFIG)
        return KafkaConsumer(**client, isolation_level=isolation_level, enable_auto_commit=False)

    def check(self) -> None:
        """Create the decision topic if there is none: proofs need it, too.

        Raises:
            KafkaError: no broker answers, or the topic cannot be created.
        """
        KafkaProducer(**self.sink.client).close()  # its own rules check the options
        with self.admin() as admin:
            if self.decision_topic in admin.list_topics():
                return
            try:
                admin.create_topics({self.decision_topic: _DECISION_TOPIC}, wait_for_metadata=True)
            except TopicExistsError:
                return

    def _common(self, known: Mapping[str, object]) -> dict[str, Any]:
        """The options that another kind of client has, too."""
        return {
            key: value for key, value in self.sink.client.items() if key.replace(".", "_") in known
        }


def parse_exactly_once(
    given: Mapping[str, str], sink: SinkOptions, *, streaming: bool
) -> ExactlyOnceSink | None:
    """Check the options; None if the sink is an ordinary one.

    Raises:
        ValueError: an option is missing or malformed.
    """
    options = Options(given)
    if not options.boolean("exactlyOnce", default=False):
        return None
    for name in ("transactional.id", "enable.idempotence", "acks"):
        if name in sink.client:
            raise ValueError(f"Option 'kafka.{name}' is decided by 'exactlyOnce': remove it")
    prefix = options.text("transactionalIdPrefix")
    if not prefix and not streaming:
        raise ValueError(
            "Option 'transactionalIdPrefix' is required for a batch write with 'exactlyOnce': it"
            " names the job, so that the next run can finish what this one leaves"
        )
    if prefix and ":" in prefix:
        raise ValueError(f"Option 'transactionalIdPrefix' must not have a colon: '{prefix}'")
    batch_id = options.integer("batchId")
    if batch_id is not None and (streaming or batch_id < 0):
        raise ValueError("Option 'batchId' is a number from 0 on, for batch writes only")
    return ExactlyOnceSink(
        sink,
        prefix or "spark-sink",
        options.text("decisionTopic") or "spark-sink-decisions",
        batch_id,
    )
