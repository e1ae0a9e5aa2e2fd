"""InitProducerId (API key 22), versions 0-5.

Every idempotent producer gets a new id with epoch 0, from blocks allocated in the metadata log. As
in Kafka, an id that the client had before (3+) is not kept without a transactional id. An id
without an epoch and an empty transactional id are INVALID_REQUEST. Other transactional ids are
TRANSACTIONAL_ID_AUTHORIZATION_FAILED: they have no coordinator here.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

from broker_stub.handlers._transactions import no_transactions
from broker_stub.request import Parked, RequestContext
from pyclient.error_codes import BrokerResponseError, InvalidRequestError
from pyclient.protocol.messages.init_producer_id import (
    InitProducerIdRequest,
    InitProducerIdResponse,
)

if TYPE_CHECKING:
    from broker_stub.node import Node


def handle(
    node: Node,
    request: InitProducerIdRequest,
    context: RequestContext,  # noqa: ARG001
) -> InitProducerIdResponse | Parked[InitProducerIdResponse]:
    """Give the producer an id."""
    if request.transactional_id == "":
        raise InvalidRequestError("the transactional id is empty")
    if (request.producer_id < 0) != (request.producer_epoch < 0):
        raise InvalidRequestError("a producer id needs an epoch, and an epoch a producer id")

    if request.transactional_id is not None:
        raise no_transactions()
    parked: Parked[InitProducerIdResponse] = Parked()

    def given(result: int | BrokerResponseError) -> None:
        if isinstance(result, BrokerResponseError):
            parked.answer(refuse(request, result))
        else:
            parked.answer(InitProducerIdResponse(producer_id=result, producer_epoch=0))

    node.producer_ids.next(given)
    return parked


def refuse(
    request: InitProducerIdRequest,  # noqa: ARG001
    error: BrokerResponseError,
) -> InitProducerIdResponse:
    return InitProducerIdResponse(error_code=error.code, producer_epoch=-1)
