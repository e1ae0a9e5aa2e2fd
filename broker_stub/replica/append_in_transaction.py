"""Appends the transactional batches of a Produce request, after its transaction has admitted them.

The first batch of a transaction in a partition asks the transaction coordinator; the others find
the transaction open in the log. Serving thread only.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from typing import TYPE_CHECKING, Final, NamedTuple, TypeAlias, TypeVar

from broker_stub import diagnostics
from broker_stub.coordinator.transactions.admission import TransactionOperation, admit
from broker_stub.coordinator.transactions.transaction import ProducerIdAndEpoch
from broker_stub.log.batch.header import read_header
from broker_stub.log.producers.transactions import EPOCH_BUMP_FROM
from broker_stub.request import CloseConnection, Parked
from pyclient.error_codes import (
    BrokerResponseError,
    ConcurrentTransactionsError,
    CoordinatorLoadInProgressError,
    CoordinatorNotAvailableError,
    InvalidPidMappingError,
    NotCoordinatorError,
    NotEnoughReplicasError,
    TransactionalIdAuthorizationError,
)
from pyclient.protocol.primitives import Uuid
from pyclient.records.header import HEADER_SIZE, TRANSACTIONAL
from pyclient.types import TopicPartition

if TYPE_CHECKING:
    from broker_stub.node import Node

_ATTRIBUTES_LOW_AT: Final = 22  # the byte of a batch that has the bit TRANSACTIONAL
_ABORTABLE_FROM: Final = 11
_ADDS_FROM: Final = 12

Answer = TypeVar("Answer")

TopicBatches: TypeAlias = tuple[str, Uuid, Sequence[tuple[int, object]]]
"""Name and id of a topic (one of the two is empty, by version), and a batch per partition."""

Admitted: TypeAlias = Mapping[TopicPartition, BrokerResponseError | None]
"""The partitions that the coordinator was asked about, and the errors of those it refused."""


class ProduceTransaction(NamedTuple):
    """The transaction of a Produce request."""

    transactional_id: str | None
    version: int
    """The request's."""

    @property
    def client_version(self) -> int:
        """The transaction version that the client uses."""
        return EPOCH_BUMP_FROM if self.version >= _ADDS_FROM else 0

    @property
    def operation(self) -> TransactionOperation:
        """What the client expects of the broker, and which errors it knows."""
        if self.version >= _ADDS_FROM:
            return TransactionOperation.ADD
        if self.version >= _ABORTABLE_FROM:
            return TransactionOperation.VERIFY_ABORTABLE
        return TransactionOperation.VERIFY


def is_transactional(records: object) -> bool:
    """Whether a batch says that it belongs to a transaction."""
    return (
        isinstance(records, memoryview)
        and len(records) >= HEADER_SIZE
        and bool(records[_ATTRIBUTES_LOW_AT] & TRANSACTIONAL)
    )


def append_in_transaction(
    node: Node,
    transaction: ProduceTransaction,
    topics: Sequence[TopicBatches],
    append: Callable[[Sequence[TopicBatches], Admitted], Answer | Parked[Answer] | None],
    *,
    by_id: bool,
) -> Answer | Parked[Answer] | None:
    """Call `append` with what the transaction admits: now, or when its log was flushed.

    Raises:
        TransactionalIdAuthorizationError: the request names no transactional id.
        InvalidPidMappingError: the batches are of several producers.
        CloseConnection: see `append_records`.
    """
    if transaction.transactional_id is None:
        raise TransactionalIdAuthorizationError("transactional records need a transactional id")
    producer = _producer(topics)
    asked = _not_ongoing(node, topics, producer, by_id=by_id)
    if not asked:
        return append(topics, {})
    parked: Parked[Answer | None] = Parked()
    has_returned = False

    def admitted(refused: Mapping[TopicPartition, BrokerResponseError]) -> None:
        results: dict[TopicPartition, BrokerResponseError | None] = {}
        for one in asked:
            error = refused.get(one)
            results[one] = None if error is None else _as_produce_error(error, transaction)
        try:
            answer = append(topics, results)
        except CloseConnection as error:
            if not has_returned:
                raise
            diagnostics.warn("%s", error)  # too late to close it
            answer = None
        if isinstance(answer, Parked):
            answer.deliver_to(parked.answer)
        else:
            parked.answer(answer)

    admit(
        node,
        transaction.transactional_id,
        producer,
        asked,
        admitted,
        operation=transaction.operation,
    )
    has_returned = True
    if not parked.answered:
        # The batches are views of the receive buffer, which is used again.
        topics = [
            (name, topic_id, [(index, _copied(records)) for index, records in batches])
            for name, topic_id, batches in topics
        ]
    return parked.unwrap()  # type: ignore[return-value]


def _producer(topics: Sequence[TopicBatches]) -> ProducerIdAndEpoch:
    producers = set()
    for _, _, batches in topics:
        for _, records in batches:
            if is_transactional(records):
                assert isinstance(records, memoryview)
                header = read_header(records)
                producers.add(ProducerIdAndEpoch(header.producer_id, header.producer_epoch))
    if len(producers) > 1:
        raise InvalidPidMappingError("Transactional records contained more than one producer ID")
    return producers.pop()


def _not_ongoing(
    node: Node, topics: Sequence[TopicBatches], producer: ProducerIdAndEpoch, *, by_id: bool
) -> list[TopicPartition]:
    """The partitions in whose logs the producer's transaction is not open yet.

    Without those that refuse the batch anyway, because the producer is fenced there: to ask would
    begin a transaction, and nothing would be written in it.
    """
    asked = []
    for name, topic_id, batches in topics:
        topic = node.image.topic_by_id(topic_id) if by_id else node.image.topic(name)
        if topic is None:
            continue  # the append refuses it
        for index, records in batches:
            if index in topic.partitions and is_transactional(records):
                log = node.replicas.partition_of(topic, index).log
                if not (log.has_ongoing_transaction(*producer) or log.has_fenced(*producer)):
                    asked.append(TopicPartition(topic.name, index))
    return asked


def _as_produce_error(
    error: BrokerResponseError, transaction: ProduceTransaction
) -> BrokerResponseError:
    """An error that producers retry, for those of a coordinator that they do not expect here."""
    is_unexpected = isinstance(
        error,
        CoordinatorLoadInProgressError | CoordinatorNotAvailableError | NotCoordinatorError,
    ) or (
        isinstance(error, ConcurrentTransactionsError)
        and transaction.operation is not TransactionOperation.ADD
    )
    if not is_unexpected:
        return error
    return NotEnoughReplicasError(
        "Unable to verify the partition has been added to the transaction. Underlying error: "
        f"{error}"
    )


def _copied(records: object) -> object:
    return memoryview(bytearray(records)) if isinstance(records, memoryview) else records
