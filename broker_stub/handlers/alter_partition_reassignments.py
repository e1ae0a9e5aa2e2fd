"""AlterPartitionReassignments (API key 45), versions 0-1.

The only broker has every replica: reassigning a partition to it succeeds at once, and other brokers
are INVALID_REPLICA_ASSIGNMENT. No reassignment is ever in progress, so cancelling one is
NO_REASSIGNMENT_IN_PROGRESS.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

from broker_stub.handlers._errors import message_of
from broker_stub.metadata.reassignments import check_reassignment
from broker_stub.request import RequestContext
from pyclient.error_codes import BrokerResponseError
from pyclient.protocol.messages.alter_partition_reassignments import (
    AlterPartitionReassignmentsRequest,
    AlterPartitionReassignmentsResponse,
    ReassignablePartition,
    ReassignablePartitionResponse,
    ReassignableTopicResponse,
)

if TYPE_CHECKING:
    from broker_stub.node import Node


def handle(
    node: Node, request: AlterPartitionReassignmentsRequest, context: RequestContext
) -> AlterPartitionReassignmentsResponse:
    """Check the reassignments; valid ones are complete already."""

    def moved(topic: str, asked: ReassignablePartition) -> ReassignablePartitionResponse:
        try:
            check_reassignment(topic, asked.partition_index, asked.replicas, node.image)
        except BrokerResponseError as error:
            return ReassignablePartitionResponse(
                partition_index=asked.partition_index,
                error_code=error.code,
                error_message=message_of(error),
            )
        return ReassignablePartitionResponse(
            partition_index=asked.partition_index, error_message=None
        )

    return AlterPartitionReassignmentsResponse(
        allow_replication_factor_change=request.allow_replication_factor_change,
        error_message=None,
        responses=[
            ReassignableTopicResponse(
                name=topic.name, partitions=[moved(topic.name, one) for one in topic.partitions]
            )
            for topic in request.topics
        ],
    )


def refuse(
    request: AlterPartitionReassignmentsRequest, error: BrokerResponseError
) -> AlterPartitionReassignmentsResponse:
    return AlterPartitionReassignmentsResponse(
        allow_replication_factor_change=request.allow_replication_factor_change,
        error_code=error.code,
        error_message=message_of(error),
    )
