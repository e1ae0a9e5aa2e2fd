"""InitProducerId (API key 22), versions 0-5.

Every idempotent producer gets a new id with epoch 0, from blocks allocated in the metadata log. As
in Kafka, an id that the client had before (3+) is not kept without a transactional id. An id
without an epoch and an empty transactional id are INVALID_REQUEST.

A transactional id keeps its producer id and gets the next epoch, which fences the producers before.
If a transaction of theirs is ongoing, it is aborted, and the client is told to retry:
CONCURRENT_TRANSACTIONS.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Final

from broker_stub.coordinator.transactions.transaction import ProducerIdAndEpoch
from broker_stub.handlers._transactions import known_error
from broker_stub.request import Parked, RequestContext
from pyclient.error_codes import BrokerResponseError, InvalidRequestError
from pyclient.protocol.messages.init_producer_id import (
    InitProducerIdRequest,
    InitProducerIdResponse,
)

if TYPE_CHECKING:
    from broker_stub.node import Node

_KNOWS_FENCED_FROM: Final = 4


def handle(
    node: Node, request: InitProducerIdRequest, context: RequestContext
) -> InitProducerIdResponse | Parked[InitProducerIdResponse]:
    """Give the producer an id."""
    if (request.producer_id < 0) != (request.producer_epoch < 0):
        raise InvalidRequestError("a producer id needs an epoch, and an epoch a producer id")
    if request.transactional_id == "":
        raise InvalidRequestError("the transactional id is empty")
    parked: Parked[InitProducerIdResponse] = Parked()

    def given(result: ProducerIdAndEpoch | BrokerResponseError) -> None:
        if isinstance(result, BrokerResponseError):
            error = known_error(result, knows_fenced=context.api_version >= _KNOWS_FENCED_FROM)
            parked.answer(refuse(request, error))
        else:
            producer_id, epoch = result
            parked.answer(InitProducerIdResponse(producer_id=producer_id, producer_epoch=epoch))

    def allocated(result: int | BrokerResponseError) -> None:
        if isinstance(result, BrokerResponseError):
            given(result)
        else:
            given(ProducerIdAndEpoch(result, 0))

    if request.transactional_id is None:
        node.producer_ids.next(allocated)
        return parked
    expected = None
    if request.producer_id >= 0:
        expected = ProducerIdAndEpoch(request.producer_id, request.producer_epoch)
    node.transactions.init_producer_id(
        request.transactional_id, request.transaction_timeout_ms, expected, given
    )
    return parked


def refuse(request: InitProducerIdRequest, error: BrokerResponseError) -> InitProducerIdResponse:
    return InitProducerIdResponse(error_code=error.code, producer_epoch=-1)
