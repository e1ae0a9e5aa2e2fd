"""OffsetCommit (API key 8), versions 2-9.

The log is written before the answer; the offsets of one request are one batch. Partitions that
do not exist are refused one by one, the others are kept.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

from broker_stub.coordinator.offsets import CommittedOffset
from broker_stub.request import RequestContext
from pyclient.error_codes import code_of
from pyclient.errors import (
    KafkaError,
    OffsetMetadataTooLargeError,
    UnknownTopicOrPartitionError,
)
from pyclient.protocol.messages.offset_commit import (
    OffsetCommitRequest,
    OffsetCommitRequestPartition,
    OffsetCommitResponse,
    OffsetCommitResponsePartition,
    OffsetCommitResponseTopic,
)
from pyclient.types import TopicPartition

if TYPE_CHECKING:
    from broker_stub.node import Node


def handle(
    node: Node, request: OffsetCommitRequest, _context: RequestContext
) -> OffsetCommitResponse:
    """Keep a group's offsets."""
    node.coordinator.check_commit(
        request.group_id,
        request.member_id,
        request.group_instance_id,
        request.generation_id_or_member_epoch,
    )
    accepted: dict[TopicPartition, CommittedOffset] = {}
    response = OffsetCommitResponse()
    for topic in request.topics:
        answer = OffsetCommitResponseTopic(name=topic.name)
        for partition in topic.partitions:
            error_code = _check(node, topic.name, partition)
            if error_code == 0:
                accepted[TopicPartition(topic.name, partition.partition_index)] = CommittedOffset(
                    partition.committed_offset,
                    partition.committed_leader_epoch,
                    partition.committed_metadata or "",
                    node.clock.now_ms(),
                )
            answer.partitions.append(
                OffsetCommitResponsePartition(
                    partition_index=partition.partition_index, error_code=error_code
                )
            )
        response.topics.append(answer)
    node.coordinator.commit(request.group_id, accepted)
    return response


def _check(node: Node, topic: str, partition: OffsetCommitRequestPartition) -> int:
    image = node.image.topic(topic)
    if image is None or not 0 <= partition.partition_index < len(image.partitions):
        return UnknownTopicOrPartitionError.code
    metadata = partition.committed_metadata or ""
    if len(metadata.encode()) > node.config["offset.metadata.max.bytes"]:
        return OffsetMetadataTooLargeError.code
    return 0


def refuse(request: OffsetCommitRequest, error: KafkaError) -> OffsetCommitResponse:
    """Nothing was kept: every partition says so."""
    return OffsetCommitResponse(
        topics=[
            OffsetCommitResponseTopic(
                name=topic.name,
                partitions=[
                    OffsetCommitResponsePartition(
                        partition_index=one.partition_index, error_code=code_of(error)
                    )
                    for one in topic.partitions
                ],
            )
            for topic in request.topics
        ]
    )
