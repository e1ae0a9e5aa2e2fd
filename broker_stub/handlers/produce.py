"""Produce (API key 0), versions 3-13.

Appends one batch per partition. The batches are views of the receive buffer: the log patches
offsets into them and writes them without a copy. On one node, acks=1 and acks=all differ only by
`min.insync.replicas`. With acks=0 there is no response, so a failure closes the connection. From
version 13 on, topics are named by id.

A transactional batch is refused unless its transaction has the partition; from version 12 on, the
batch adds it (KIP-890).

With `flush.messages`, records are on disk before they are acked and before they are read: the
response is parked until the fsync is done. zstd needs version 7, as in Apache Kafka.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Final

from broker_stub.handlers._errors import message_of
from broker_stub.log.batch.append_info import AppendInfo
from broker_stub.log.batch.record_rules import RefusedRecordsError
from broker_stub.replica.append_in_transaction import ProduceTransaction
from broker_stub.replica.append_records import AppendedTopics, append_records
from broker_stub.request import Parked, RequestContext
from pyclient.error_codes import BrokerResponseError
from pyclient.protocol.messages.produce import (
    BatchIndexAndErrorMessage,
    PartitionProduceResponse,
    ProduceRequest,
    ProduceResponse,
    TopicProduceResponse,
)

if TYPE_CHECKING:
    from broker_stub.node import Node

BY_ID_FROM: Final = 13
ZSTD_FROM: Final = 7


def handle(
    node: Node, request: ProduceRequest, context: RequestContext
) -> ProduceResponse | Parked[ProduceResponse] | None:
    return append_records(
        node,
        request.acks,
        [
            (
                topic.name,
                topic.topic_id,
                [(data.index, data.records) for data in topic.partition_data],
            )
            for topic in request.topic_data
        ],
        respond,
        by_id=context.api_version >= BY_ID_FROM,
        allows_zstd=context.api_version >= ZSTD_FROM,
        transaction=ProduceTransaction(request.transactional_id, context.api_version),
    )


def refuse(request: ProduceRequest, error: BrokerResponseError) -> ProduceResponse | None:
    if request.acks == 0:
        return None
    return ProduceResponse(
        responses=[
            TopicProduceResponse(
                name=topic.name,
                topic_id=topic.topic_id,
                partition_responses=[_failed(data.index, error) for data in topic.partition_data],
            )
            for topic in request.topic_data
        ]
    )


def respond(topics: AppendedTopics) -> ProduceResponse:
    """The response of what was appended."""
    return ProduceResponse(
        responses=[
            TopicProduceResponse(
                name=name,
                topic_id=topic_id,
                partition_responses=[_partition(index, result) for index, result in results],
            )
            for name, topic_id, results in topics
        ]
    )


def _partition(index: int, result: AppendInfo | BrokerResponseError) -> PartitionProduceResponse:
    if isinstance(result, BrokerResponseError):
        return _failed(index, result)
    return PartitionProduceResponse(
        index=index,
        base_offset=result.first_offset,
        log_append_time_ms=result.log_append_time_ms,
        log_start_offset=result.log_start_offset,
    )


def _failed(index: int, error: BrokerResponseError) -> PartitionProduceResponse:
    record_errors = error.record_errors if isinstance(error, RefusedRecordsError) else ()
    return PartitionProduceResponse(
        index=index,
        error_code=error.code,
        base_offset=-1,
        record_errors=[
            BatchIndexAndErrorMessage(
                batch_index=one.batch_index, batch_index_error_message=one.message
            )
            for one in record_errors
        ],
        error_message=message_of(error),
    )
