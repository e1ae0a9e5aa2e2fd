"""DescribeProducers (API key 61), version 0.

Lists the producers that partitions remember: epoch, last sequence, last timestamp, and the start
of an open transaction.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import TYPE_CHECKING

from broker_stub.handlers._errors import message_of
from broker_stub.handlers._partitions import always_fail, result_of_each
from broker_stub.request import RequestContext
from pyclient.error_codes import BrokerResponseError
from pyclient.protocol.messages.describe_producers import (
    DescribeProducersRequest,
    DescribeProducersResponse,
    PartitionResponse,
    ProducerState,
    TopicResponse,
)

if TYPE_CHECKING:
    from broker_stub.node import Node


def handle(
    node: Node, request: DescribeProducersRequest, context: RequestContext
) -> DescribeProducersResponse:
    def describe(topic: str, index: int) -> PartitionResponse:
        partition = node.replicas.partition(topic, index)
        partition.check_leader_epoch()
        return PartitionResponse(
            partition_index=index,
            active_producers=[
                ProducerState(
                    producer_id=entry.producer_id,
                    producer_epoch=entry.epoch,
                    last_sequence=entry.last_sequence,
                    last_timestamp=entry.last_timestamp,
                    coordinator_epoch=entry.coordinator_epoch,
                    current_txn_start_offset=entry.current_txn_first_offset,
                )
                for entry in partition.log.producers()
            ],
        )

    return _respond(request, describe)


def refuse(
    request: DescribeProducersRequest, error: BrokerResponseError
) -> DescribeProducersResponse:
    return _respond(request, always_fail(error))


def _respond(
    request: DescribeProducersRequest, act: Callable[[str, int], PartitionResponse]
) -> DescribeProducersResponse:
    return DescribeProducersResponse(
        topics=[
            TopicResponse(
                name=topic.name,
                partitions=result_of_each(topic.name, topic.partition_indexes, act, _failed),
            )
            for topic in request.topics
        ]
    )


def _failed(index: int, error: BrokerResponseError) -> PartitionResponse:
    return PartitionResponse(
        partition_index=index, error_code=error.code, error_message=message_of(error)
    )
