"""The log of decisions: a compacted topic, one record for each key, owned by one driver at a time.

A decision is written in a transaction of the driver's transactional id. The same transaction
commits an offset: the number of the next batch to decide, and as its metadata the place of the
record. So tasks need one look-up, and the driver reads one record, whatever else is in the topic.
"""

import json
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from enum import StrEnum
from typing import Any, Final

from pyclient import KafkaAdminClient, KafkaProducer, OffsetAndMetadata, OffsetSpec
from pyclient import PreparedTransaction as Prepared
from pyclient.clock import SystemClock
from pyclient.errors import InvalidProducerEpochError, KafkaTimeoutError, ProducerFencedError
from spark_connector.exactly_once.failures import AnotherDriverError, DecisionsLostError
from spark_connector.exactly_once.names import TaskTransaction, decided_group, driver_id
from spark_connector.exactly_once.sink import ExactlyOnceSink

_POLL_MS: Final = 1_000
_EMPTY_POLLS_MAX: Final = 60
_SEND_SECONDS: Final = 60


class State(StrEnum):
    """What has become of a batch."""

    DECIDED = "decided"  # it is to be committed, and may be committed in part
    DONE = "done"
    VOID = "void"  # nothing of it was committed: it is written again


@dataclass(frozen=True)
class Decision:
    """The last decision of a key.

    Attributes:
        number: of the batch.
        transactions: those that are to be committed.
        written_ms: when it was written.
    """

    number: int
    state: State
    transactions: tuple[TaskTransaction, ...] = ()
    written_ms: int = 0

    def encode(self) -> bytes:
        rows = [[one.partition, one.token, *one.prepared] for one in self.transactions]
        return json.dumps([self.number, self.state, rows], separators=(",", ":")).encode()

    @classmethod
    def decode(cls, value: bytes, written_ms: int) -> "Decision":
        number, state, rows = json.loads(value)
        transactions = (TaskTransaction(row[0], row[1], Prepared(*row[2:])) for row in rows)
        return cls(number, State(state), tuple(transactions), written_ms)


def is_decided(admin: KafkaAdminClient, sink: ExactlyOnceSink, key: str, number: int) -> bool:
    """Whether a batch is decided; waits while a driver is deciding."""
    return _cursor(admin, sink, key).offset > number


def _cursor(admin: KafkaAdminClient, sink: ExactlyOnceSink, key: str) -> OffsetAndMetadata:
    asked = {decided_group(key): [sink.decisions]}
    return admin.list_group_offsets(asked, require_stable=True)[decided_group(key)][sink.decisions]


class DecisionLog:
    """The decisions of one key, for the driver that has taken over.

    Attributes:
        transaction_version: the protocol of the cluster, known after the first decision.
    """

    def __init__(
        self, sink: ExactlyOnceSink, key: str, admin: KafkaAdminClient, producer: KafkaProducer
    ) -> None:
        self.transaction_version = 0
        self._sink = sink
        self._key = key
        self._admin = admin
        self._producer = producer

    def last(self) -> Decision | None:
        """The last decision of the key.

        Raises:
            DecisionsLostError: it is not in the topic any more.
        """
        cursor = _cursor(self._admin, self._sink, self._key)
        if cursor.offset < 0:  # the first batch, or the offset has expired
            return self._scan()
        decision = self._record_at(int(cursor.metadata or "-1"))
        if decision is None:
            raise DecisionsLostError(
                f"topic '{self._sink.decision_topic}' lacks the last decision of '{self._key}',"
                f" about batch {cursor.offset - 1}: was it recreated, or is its cleanup.policy not"
                " compact? Without it nothing can tell whether that batch is written"
            )
        return decision

    def write(self, decision: Decision) -> None:
        """Record a decision, unless another driver has taken over.

        Raises:
            AnotherDriverError: it has.
        """
        try:
            self._write(decision)
        except (ProducerFencedError, InvalidProducerEpochError) as error:
            raise AnotherDriverError(
                f"batch {decision.number} of '{self._key}': another driver has taken over, and"
                " goes on with it. Two queries use one checkpoint, or two jobs one"
                " transactionalIdPrefix; stop one"
            ) from error

    def _write(self, decision: Decision) -> None:
        place = self._sink.decisions
        producer = self._producer
        producer.begin_transaction()
        sent: Any = producer.send(
            place.topic, decision.encode(), key=self._key.encode(), partition=place.partition
        )
        next_number = decision.number + (decision.state is not State.VOID)
        cursor = OffsetAndMetadata(next_number, str(sent.get(timeout=_SEND_SECONDS).offset), -1)
        producer.send_offsets_to_transaction({place: cursor}, decided_group(self._key))
        self.transaction_version = producer.prepare_transaction().transaction_version
        producer.commit_transaction()

    def _record_at(self, offset: int) -> Decision | None:
        # The committed offset says that the record is committed, so open transactions of other
        # keys need not be waited for.
        with self._sink.consumer("read_uncommitted") as consumer:
            consumer.assign([self._sink.decisions])
            consumer.seek(self._sink.decisions, offset)
            for _ in range(_EMPTY_POLLS_MAX):
                for records in consumer.poll(timeout_ms=_POLL_MS).values():
                    first = records[0]
                    if first.offset != offset or first.key != self._key.encode():
                        return None
                    return Decision.decode(first.value or b"", first.timestamp)
        return None

    def _scan(self) -> Decision | None:
        place = self._sink.decisions
        # Up to the end of the log and not only to the last stable offset: the decision may be
        # behind an open transaction of another key.
        end = self._admin.list_partition_offsets({place: OffsetSpec.LATEST})[place].offset
        found: Decision | None = None
        with self._sink.consumer("read_committed") as consumer:
            consumer.assign([place])
            consumer.seek_to_beginning(place)
            empty = 0
            while consumer.position(place) < end:
                polled = consumer.poll(timeout_ms=_POLL_MS)
                empty = 0 if polled else empty + 1
                if empty > _EMPTY_POLLS_MAX:
                    raise KafkaTimeoutError(
                        f"topic '{place.topic}' cannot be read to its end, offset {end}: a"
                        " transaction is open there"
                    )
                for records in polled.values():
                    for record in records:
                        if record.key == self._key.encode() and record.value is not None:
                            found = Decision.decode(record.value, record.timestamp)
        return found


@contextmanager
def taken_over(sink: ExactlyOnceSink, key: str, admin: KafkaAdminClient) -> Iterator[DecisionLog]:
    """The decisions of a key; from now on no earlier driver can decide."""
    producer = sink.driver_producer(driver_id(key))
    try:
        producer.init_transactions()
        yield DecisionLog(sink, key, admin, producer)
    finally:
        producer.close(timeout=5)


def now_ms() -> int:
    return SystemClock().now_ms()
