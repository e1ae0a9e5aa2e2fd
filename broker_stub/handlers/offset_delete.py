"""OffsetDelete (API key 47), version 0.

Deletes committed offsets of topics that no member of the group subscribes to; a subscribed topic is
GROUP_SUBSCRIBED_TO_TOPIC. In a group with members of another type than `consumer`, nothing can be
deleted: NON_EMPTY_GROUP. A partition without an offset is not an error.
"""

from typing import TYPE_CHECKING

from broker_stub.request import RequestContext
from pyclient.error_codes import code_of
from pyclient.errors import (
    GroupSubscribedToTopicError,
    KafkaError,
    UnknownTopicOrPartitionError,
)
from pyclient.protocol.messages.offset_delete import (
    OffsetDeleteRequest,
    OffsetDeleteResponse,
    OffsetDeleteResponsePartition,
    OffsetDeleteResponseTopic,
)
from pyclient.types import TopicPartition

if TYPE_CHECKING:
    from broker_stub.coordinator.groups.classic_group import ClassicGroup
    from broker_stub.node import Node


def handle(
    node: "Node", request: OffsetDeleteRequest, context: RequestContext
) -> OffsetDeleteResponse:
    group = node.coordinator.find_for_offset_delete(request.group_id)
    response = OffsetDeleteResponse()
    doomed: list[TopicPartition] = []
    for topic in request.topics:
        answer = OffsetDeleteResponseTopic(name=topic.name)
        response.topics.append(answer)
        for index in (one.partition_index for one in topic.partitions):
            partition = TopicPartition(topic.name, index)
            code = _check(node, group, partition)
            answer.partitions.append(
                OffsetDeleteResponsePartition(partition_index=index, error_code=code)
            )
            if not code:
                doomed.append(partition)
    node.coordinator.delete_offsets(request.group_id, doomed)
    return response


def _check(node: "Node", group: "ClassicGroup", partition: TopicPartition) -> int:
    topic = node.image.topic(partition.topic)
    if topic is None or not 0 <= partition.partition < len(topic.partitions):
        return UnknownTopicOrPartitionError.code
    if group.may_subscribe_to(partition.topic):
        return GroupSubscribedToTopicError.code
    return 0


def refuse(_request: OffsetDeleteRequest, error: KafkaError) -> OffsetDeleteResponse:
    """Fail as a whole."""
    return OffsetDeleteResponse(error_code=code_of(error))
