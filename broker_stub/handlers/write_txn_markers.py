"""WriteTxnMarkers (API key 27), versions 1-2.

Writes the marker that ends a transaction to partitions. Brokers send it to each other, and an
admin client to abort a transaction that no coordinator knows.
"""

from __future__ import annotations

from functools import partial
from typing import TYPE_CHECKING

from broker_stub.coordinator.transactions.markers import Marker, write_marker
from broker_stub.request import Parked, RequestContext
from pyclient.error_codes import BrokerResponseError, KafkaStorageError
from pyclient.protocol.messages.write_txn_markers import (
    WritableTxnMarker,
    WritableTxnMarkerPartitionResult,
    WritableTxnMarkerResult,
    WritableTxnMarkerTopicResult,
    WriteTxnMarkersRequest,
    WriteTxnMarkersResponse,
)

if TYPE_CHECKING:
    from broker_stub.node import Node
    from broker_stub.replica.partition import Partition


def handle(
    node: Node,
    request: WriteTxnMarkersRequest,
    context: RequestContext,
) -> WriteTxnMarkersResponse | Parked[WriteTxnMarkersResponse]:
    response = _response(request, 0)
    parked: Parked[WriteTxnMarkersResponse] = Parked()
    unflushed: list[tuple[Partition, WritableTxnMarkerPartitionResult]] = []
    for marker, written in zip(request.markers, response.markers, strict=True):
        for topic in written.topics:
            for result in topic.partitions:
                try:
                    partition, info = write_marker(
                        node, _marker(marker), topic.name, result.partition_index
                    )
                except BrokerResponseError as error:
                    result.error_code = error.code
                else:
                    if info.flush_due:
                        unflushed.append((partition, result))
    if not unflushed:
        return response
    outstanding = len(unflushed)

    def flushed(
        partition: Partition, result: WritableTxnMarkerPartitionResult, error: Exception | None
    ) -> None:
        nonlocal outstanding
        outstanding -= 1
        node.replicas.wake_fetches([partition])
        if error is not None:
            result.error_code = KafkaStorageError.code
        if not outstanding:
            parked.answer(response)

    for partition, result in unflushed:
        node.background.submit(partition.log.flush, partial(flushed, partition, result))
    return parked


def _marker(marker: WritableTxnMarker) -> Marker:
    return Marker(
        marker.producer_id,
        marker.producer_epoch,
        marker.transaction_result,
        marker.coordinator_epoch,
        marker.transaction_version,
    )


def refuse(request: WriteTxnMarkersRequest, error: BrokerResponseError) -> WriteTxnMarkersResponse:
    return _response(request, error.code)


def _response(request: WriteTxnMarkersRequest, error_code: int) -> WriteTxnMarkersResponse:
    return WriteTxnMarkersResponse(
        markers=[
            WritableTxnMarkerResult(
                producer_id=marker.producer_id,
                topics=[
                    WritableTxnMarkerTopicResult(
                        name=topic.name,
                        partitions=[
                            WritableTxnMarkerPartitionResult(
                                partition_index=index, error_code=error_code
                            )
                            for index in topic.partition_indexes
                        ],
                    )
                    for topic in marker.topics
                ],
            )
            for marker in request.markers
        ]
    )
