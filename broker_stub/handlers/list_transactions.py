"""ListTransactions (API key 66), versions 0-2.

All transactional ids, filtered by state, producer id, age (1+) and a pattern of their names (2+).
"""

from __future__ import annotations

import re
from typing import TYPE_CHECKING

from broker_stub.request import RequestContext
from pyclient.error_codes import BrokerResponseError, InvalidRegularExpressionError
from pyclient.protocol.messages.list_transactions import (
    ListTransactionsRequest,
    ListTransactionsResponse,
    TransactionState,
)

if TYPE_CHECKING:
    from broker_stub.coordinator.transactions.transaction_state import TransactionImage
    from broker_stub.node import Node


def handle(
    node: Node,
    request: ListTransactionsRequest,
    context: RequestContext,
) -> ListTransactionsResponse:
    from broker_stub.coordinator.transactions import transaction_state

    pattern = _compile(request.transactional_id_pattern)
    names = {one.value for one in transaction_state.TransactionState}
    now_ms = node.clock.now_ms()

    def is_wanted(image: TransactionImage) -> bool:
        if request.producer_id_filters and image.producer_id not in request.producer_id_filters:
            return False
        if request.state_filters and image.state.value not in request.state_filters:
            return False
        if request.duration_filter >= 0 and now_ms - image.start_ms <= request.duration_filter:
            return False
        return pattern is None or pattern.fullmatch(image.transactional_id) is not None

    return ListTransactionsResponse(
        unknown_state_filters=[one for one in request.state_filters if one not in names],
        transaction_states=[
            TransactionState(
                transactional_id=image.transactional_id,
                producer_id=image.producer_id,
                transaction_state=image.state.value,
            )
            for image in node.transactions.transactions()
            if is_wanted(image)
        ],
    )


def refuse(
    request: ListTransactionsRequest,
    error: BrokerResponseError,
) -> ListTransactionsResponse:
    return ListTransactionsResponse(error_code=error.code)


def _compile(pattern: str | None) -> re.Pattern[str] | None:
    if not pattern:
        return None
    try:
        return re.compile(pattern)
    except re.error as error:
        raise InvalidRegularExpressionError(f"{pattern!r} is no pattern: {error}") from error
