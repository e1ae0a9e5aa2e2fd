"""EndTxn (API key 26), versions 0-5.

Commits or aborts a transaction: it is decided once the response is sent, and its markers follow.
From version 5 on (KIP-890), the response has the id and the epoch of the next transaction.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Final

from broker_stub.coordinator.transactions.transaction import ProducerIdAndEpoch
from broker_stub.handlers._transactions import known_error
from broker_stub.request import Parked, RequestContext
from pyclient.error_codes import BrokerResponseError
from pyclient.protocol.messages.end_txn import EndTxnRequest, EndTxnResponse

if TYPE_CHECKING:
    from broker_stub.node import Node

_BUMPS_EPOCH_FROM: Final = 5
_KNOWS_FENCED_FROM: Final = 2


def handle(
    node: Node, request: EndTxnRequest, context: RequestContext
) -> EndTxnResponse | Parked[EndTxnResponse]:
    parked: Parked[EndTxnResponse] = Parked()

    def given(result: ProducerIdAndEpoch | BrokerResponseError) -> None:
        if isinstance(result, BrokerResponseError):
            knows_fenced = context.api_version >= _KNOWS_FENCED_FROM
            parked.answer(refuse(request, known_error(result, knows_fenced=knows_fenced)))
        else:
            producer_id, epoch = result
            parked.answer(EndTxnResponse(producer_id=producer_id, producer_epoch=epoch))

    node.transactions.end(
        request.transactional_id,
        ProducerIdAndEpoch(request.producer_id, request.producer_epoch),
        given,
        commit=request.committed,
        client_version=2 if context.api_version >= _BUMPS_EPOCH_FROM else 0,
    )
    return parked


def refuse(
    request: EndTxnRequest,
    error: BrokerResponseError,
) -> EndTxnResponse:
    return EndTxnResponse(error_code=error.code)
