"""DescribeTransactions (API key 65), version 0.

The state of transactional ids. An unknown one is TRANSACTIONAL_ID_NOT_FOUND, an empty one
INVALID_REQUEST.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

from broker_stub.request import RequestContext
from pyclient.error_codes import BrokerResponseError
from pyclient.protocol.messages.describe_transactions import (
    DescribeTransactionsRequest,
    DescribeTransactionsResponse,
    TopicData,
    TransactionState,
)

if TYPE_CHECKING:
    from broker_stub.coordinator.transactions.transaction_state import TransactionImage
    from broker_stub.node import Node


def handle(
    node: Node,
    request: DescribeTransactionsRequest,
    context: RequestContext,
) -> DescribeTransactionsResponse:
    def describe(transactional_id: str) -> TransactionState:
        try:
            return _state(node.transactions.describe(transactional_id))
        except BrokerResponseError as error:
            return _failed(transactional_id, error)

    return DescribeTransactionsResponse(
        transaction_states=[describe(one) for one in request.transactional_ids]
    )


def refuse(
    request: DescribeTransactionsRequest, error: BrokerResponseError
) -> DescribeTransactionsResponse:
    return DescribeTransactionsResponse(
        transaction_states=[_failed(one, error) for one in request.transactional_ids]
    )


def _state(image: TransactionImage) -> TransactionState:
    topics: dict[str, list[int]] = {}
    for topic, partition in sorted(image.partitions):
        topics.setdefault(topic, []).append(partition)
    return TransactionState(
        transactional_id=image.transactional_id,
        transaction_state=image.state.value,
        transaction_timeout_ms=image.timeout_ms,
        transaction_start_time_ms=image.start_ms,
        producer_id=image.producer_id,
        producer_epoch=image.producer_epoch,
        topics=[TopicData(topic=name, partitions=found) for name, found in topics.items()],
    )


def _failed(transactional_id: str, error: BrokerResponseError) -> TransactionState:
    return TransactionState(transactional_id=transactional_id, error_code=error.code)
