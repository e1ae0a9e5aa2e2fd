"""DescribeTopicPartitions (API key 75), version 0.

Describes topics in the order of their names, a page at a time: at most `response_partition_limit`
and `max.request.partition.size.limit` partitions; the cursor of a response starts the next page.
An empty list asks for all topics. There are no eligible leader replicas (KIP-966): on one node,
every replica is in sync.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import TYPE_CHECKING, Final

from broker_stub.handlers._names import unknown_topic
from broker_stub.handlers._operations import TOPIC_OPERATIONS
from broker_stub.metadata.image import PartitionImage, TopicImage
from broker_stub.request import RequestContext
from pyclient.error_codes import (
    BrokerResponseError,
    InvalidRequestError,
    LeaderNotAvailableError,
)
from pyclient.protocol.messages.describe_topic_partitions import (
    Cursor,
    DescribeTopicPartitionsRequest,
    DescribeTopicPartitionsResponse,
    DescribeTopicPartitionsResponsePartition,
    DescribeTopicPartitionsResponseTopic,
)

if TYPE_CHECKING:
    from broker_stub.node import Node

_PAGE_MAX: Final = "max.request.partition.size.limit"


def handle(
    node: Node, request: DescribeTopicPartitionsRequest, context: RequestContext
) -> DescribeTopicPartitionsResponse:
    """Describe the topics of one page."""
    response = DescribeTopicPartitionsResponse()
    room = max(1, min(request.response_partition_limit, node.config[_PAGE_MAX]))
    for name in _names(node, request):
        if room == 0:
            response.next_cursor = Cursor(topic_name=name, partition_index=0)
            break
        topic = node.image.topic(name)
        if topic is None:
            response.topics.append(_failed(name, unknown_topic(name)))
            continue
        cursor = request.cursor
        first = cursor.partition_index if cursor and cursor.topic_name == name else 0
        indexes = [index for index in sorted(topic.partitions) if index >= first]
        response.topics.append(_described(topic, indexes[:room]))
        if len(indexes) > room:
            response.next_cursor = Cursor(topic_name=name, partition_index=indexes[room])
            break
        room -= len(indexes)
    for described in response.topics:
        described.topic_authorized_operations = TOPIC_OPERATIONS
    return response


def refuse(
    request: DescribeTopicPartitionsRequest, error: BrokerResponseError
) -> DescribeTopicPartitionsResponse:
    """Fail every topic of the request."""
    return DescribeTopicPartitionsResponse(
        topics=[_failed(topic.name, error) for topic in request.topics]
    )


def _names(node: Node, request: DescribeTopicPartitionsRequest) -> list[str]:
    """The topics from the cursor on."""
    asked = {topic.name for topic in request.topics}
    cursor = request.cursor
    if cursor is not None:
        if cursor.partition_index < 0:
            raise InvalidRequestError(f"the cursor has partition {cursor.partition_index}")
        if asked and cursor.topic_name not in asked:
            raise InvalidRequestError(f"the cursor's topic {cursor.topic_name!r} is not asked for")
    first = "" if cursor is None else cursor.topic_name
    names = asked or {topic.name for topic in node.image.topics()}
    return sorted(name for name in names if name >= first)


def _described(topic: TopicImage, indexes: Sequence[int]) -> DescribeTopicPartitionsResponseTopic:
    return DescribeTopicPartitionsResponseTopic(
        name=topic.name,
        topic_id=topic.topic_id,
        is_internal=topic.is_internal,
        partitions=[_partition(topic.partitions[index]) for index in indexes],
    )


def _partition(partition: PartitionImage) -> DescribeTopicPartitionsResponsePartition:
    return DescribeTopicPartitionsResponsePartition(
        error_code=0 if partition.leader >= 0 else LeaderNotAvailableError.code,
        partition_index=partition.partition_id,
        leader_id=partition.leader,
        leader_epoch=partition.leader_epoch,
        replica_nodes=list(partition.replicas),
        isr_nodes=list(partition.isr),
        eligible_leader_replicas=[],
        last_known_elr=[],
    )


def _failed(name: str, error: BrokerResponseError) -> DescribeTopicPartitionsResponseTopic:
    return DescribeTopicPartitionsResponseTopic(error_code=error.code, name=name)
