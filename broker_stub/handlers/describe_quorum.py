"""DescribeQuorum (API key 55), versions 0-2.

The quorum of `__cluster_metadata-0` is this node: it leads, and is its only voter. It has no
listener for other controllers, so it is described without one (2+). As in Apache Kafka, a request
that asks for anything but this one partition is UNKNOWN_TOPIC_OR_PARTITION throughout.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Final

from broker_stub.handlers._errors import message_of
from broker_stub.metadata.log import CLUSTER_METADATA
from broker_stub.request import RequestContext
from pyclient.error_codes import BrokerResponseError, UnknownTopicOrPartitionError
from pyclient.protocol.messages import describe_quorum
from pyclient.protocol.messages.describe_quorum import (
    DescribeQuorumRequest,
    DescribeQuorumResponse,
    PartitionResult,
    ReplicaState,
    TopicResult,
)

if TYPE_CHECKING:
    from broker_stub.node import Node

_NODES_FROM: Final = 2


def handle(
    node: Node, request: DescribeQuorumRequest, context: RequestContext
) -> DescribeQuorumResponse:
    asked = [
        (topic.topic_name, [one.partition_index for one in topic.partitions])
        for topic in request.topics
    ]
    if asked != [(CLUSTER_METADATA, [0])]:
        return _unknown(asked)
    quorum = node.controller.quorum
    now_ms = node.clock.now_ms()
    voter = ReplicaState(
        replica_id=quorum.leader_id,
        log_end_offset=quorum.end_offset,
        last_fetch_timestamp=now_ms,
        last_caught_up_timestamp=now_ms,
    )
    partition = PartitionResult(
        partition_index=0,
        leader_id=quorum.leader_id,
        leader_epoch=quorum.leader_epoch,
        high_watermark=quorum.end_offset,
        current_voters=[voter],
    )
    return DescribeQuorumResponse(
        topics=[TopicResult(topic_name=CLUSTER_METADATA, partitions=[partition])],
        nodes=(
            [describe_quorum.Node(node_id=quorum.leader_id)]
            if context.api_version >= _NODES_FROM
            else []
        ),
    )


def refuse(request: DescribeQuorumRequest, error: BrokerResponseError) -> DescribeQuorumResponse:
    return DescribeQuorumResponse(error_code=error.code, error_message=message_of(error))


def _unknown(asked: list[tuple[str, list[int]]]) -> DescribeQuorumResponse:
    return DescribeQuorumResponse(
        topics=[
            TopicResult(
                topic_name=name,
                partitions=[
                    PartitionResult(
                        partition_index=index,
                        error_code=UnknownTopicOrPartitionError.code,
                        error_message="This server does not host this topic-partition.",
                    )
                    for index in indexes
                ],
            )
            for name, indexes in asked
        ]
    )
