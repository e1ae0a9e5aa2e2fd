"""AddOffsetsToTxn (API key 25), versions 0-4.

Adds to a transaction the partition of `__consumer_offsets` that a group's offsets are written to.
A client sends this before it looks for the group's coordinator: the topic may have to be created.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Final

from broker_stub.coordinator.transactions.transaction import ProducerIdAndEpoch
from broker_stub.handlers._transactions import known_error
from broker_stub.metadata.auto_topic_creation import internal_topic
from broker_stub.metadata.image import CONSUMER_OFFSETS
from broker_stub.request import Parked, RequestContext
from pyclient.error_codes import BrokerResponseError
from pyclient.protocol.messages.add_offsets_to_txn import (
    AddOffsetsToTxnRequest,
    AddOffsetsToTxnResponse,
)

if TYPE_CHECKING:
    from broker_stub.node import Node

_KNOWS_FENCED_FROM: Final = 2
_CLIENT_VERSION: Final = 0  # the transaction version of clients that send this


def handle(
    node: Node, request: AddOffsetsToTxnRequest, context: RequestContext
) -> AddOffsetsToTxnResponse | Parked[AddOffsetsToTxnResponse]:
    parked: Parked[AddOffsetsToTxnResponse] = Parked()

    def done(error: BrokerResponseError | None) -> None:
        if error is None:
            parked.answer(AddOffsetsToTxnResponse())
        else:
            knows_fenced = context.api_version >= _KNOWS_FENCED_FROM
            parked.answer(refuse(request, known_error(error, knows_fenced=knows_fenced)))

    def add(_created: object = None) -> None:
        try:
            partition = node.coordinator.offsets_partition(request.group_id)
        except BrokerResponseError as error:
            done(error)
            return
        node.transactions.add_partitions(
            request.transactional_id,
            ProducerIdAndEpoch(request.producer_id, request.producer_epoch),
            [partition],
            done,
            client_version=_CLIENT_VERSION,
        )

    if node.image.topic(CONSUMER_OFFSETS) is None:
        node.controller.create_topics([internal_topic(CONSUMER_OFFSETS, node.config)], add)
    else:
        add()
    return parked


def refuse(
    request: AddOffsetsToTxnRequest,
    error: BrokerResponseError,
) -> AddOffsetsToTxnResponse:
    return AddOffsetsToTxnResponse(error_code=error.code)
