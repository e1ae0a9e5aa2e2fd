"""AddPartitionsToTxn (API key 24), versions 0-5.

Adds partitions to a transaction, and begins it with the first. Clients send versions up to 3;
brokers send the others, several transactions at once, also only to verify that partitions were
added. If one partition does not exist, none is added: OPERATION_NOT_ATTEMPTED for the others.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from typing import TYPE_CHECKING, Final, TypeAlias

from broker_stub.coordinator.transactions.transaction import ProducerIdAndEpoch
from broker_stub.handlers._transactions import known_error
from broker_stub.request import Parked, RequestContext
from pyclient.error_codes import (
    BrokerResponseError,
    OperationNotAttemptedError,
    UnknownTopicOrPartitionError,
)
from pyclient.protocol.messages.add_partitions_to_txn import (
    AddPartitionsToTxnPartitionResult,
    AddPartitionsToTxnRequest,
    AddPartitionsToTxnResponse,
    AddPartitionsToTxnResult,
    AddPartitionsToTxnTopic,
    AddPartitionsToTxnTopicResult,
    AddPartitionsToTxnTransaction,
)
from pyclient.types import TopicPartition

if TYPE_CHECKING:
    from broker_stub.node import Node

_MANY_FROM: Final = 4
_KNOWS_FENCED_FROM: Final = 2
_CLIENT_VERSION: Final = 0  # the transaction version of clients that send this

Errors: TypeAlias = Mapping[TopicPartition, BrokerResponseError | None]


def handle(
    node: Node, request: AddPartitionsToTxnRequest, context: RequestContext
) -> AddPartitionsToTxnResponse | Parked[AddPartitionsToTxnResponse]:
    version = context.api_version
    transactions = request.transactions if version >= _MANY_FROM else [_only(request)]
    results: dict[int, list[AddPartitionsToTxnTopicResult]] = {}
    parked: Parked[AddPartitionsToTxnResponse] = Parked()

    def respond() -> AddPartitionsToTxnResponse:
        if version < _MANY_FROM:
            return AddPartitionsToTxnResponse(results_by_topic_v3_and_below=results[0])
        return AddPartitionsToTxnResponse(
            results_by_transaction=[
                AddPartitionsToTxnResult(
                    transactional_id=one.transactional_id, topic_results=results[at]
                )
                for at, one in enumerate(transactions)
            ]
        )

    def add(at: int, one: AddPartitionsToTxnTransaction) -> None:
        def added(errors: Errors) -> None:
            results[at] = _results(one.topics, errors, knows_fenced=version >= _KNOWS_FENCED_FROM)
            if len(results) == len(transactions):
                parked.answer(respond())

        _add(node, one, added)

    if not transactions:
        return respond()
    for at, one in enumerate(transactions):
        add(at, one)
    return parked


def refuse(
    request: AddPartitionsToTxnRequest, error: BrokerResponseError
) -> AddPartitionsToTxnResponse:
    def failed(topics: Sequence[AddPartitionsToTxnTopic]) -> list[AddPartitionsToTxnTopicResult]:
        errors = dict.fromkeys(_partitions(topics), error)
        return _results(topics, errors, knows_fenced=True)

    return AddPartitionsToTxnResponse(
        error_code=error.code if request.transactions else 0,
        results_by_topic_v3_and_below=failed(request.v3_and_below_topics),
    )


def _only(request: AddPartitionsToTxnRequest) -> AddPartitionsToTxnTransaction:
    return AddPartitionsToTxnTransaction(
        transactional_id=request.v3_and_below_transactional_id,
        producer_id=request.v3_and_below_producer_id,
        producer_epoch=request.v3_and_below_producer_epoch,
        verify_only=False,
        topics=request.v3_and_below_topics,
    )


def _add(node: Node, one: AddPartitionsToTxnTransaction, added: Callable[[Errors], None]) -> None:
    partitions = _partitions(one.topics)
    missing = {
        partition: UnknownTopicOrPartitionError()
        for partition in partitions
        if not _exists(node, partition)
    }
    if missing:
        added({**dict.fromkeys(partitions, OperationNotAttemptedError()), **missing})
        return
    producer = ProducerIdAndEpoch(one.producer_id, one.producer_epoch)
    if one.verify_only:
        added(node.transactions.verify_partitions(one.transactional_id, producer, partitions))
        return

    def done(error: BrokerResponseError | None) -> None:
        added(dict.fromkeys(partitions, error))

    node.transactions.add_partitions(
        one.transactional_id, producer, partitions, done, client_version=_CLIENT_VERSION
    )


def _exists(node: Node, partition: TopicPartition) -> bool:
    topic = node.image.topic(partition.topic)
    return topic is not None and partition.partition in topic.partitions


def _partitions(topics: Sequence[AddPartitionsToTxnTopic]) -> list[TopicPartition]:
    return [TopicPartition(topic.name, index) for topic in topics for index in topic.partitions]


def _results(
    topics: Sequence[AddPartitionsToTxnTopic], errors: Errors, *, knows_fenced: bool
) -> list[AddPartitionsToTxnTopicResult]:
    def code(topic: str, index: int) -> int:
        error = errors.get(TopicPartition(topic, index))
        return 0 if error is None else known_error(error, knows_fenced=knows_fenced).code

    return [
        AddPartitionsToTxnTopicResult(
            name=topic.name,
            results_by_partition=[
                AddPartitionsToTxnPartitionResult(
                    partition_index=index, partition_error_code=code(topic.name, index)
                )
                for index in topic.partitions
            ],
        )
        for topic in topics
    ]
