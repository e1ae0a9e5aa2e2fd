"""OffsetCommit (API key 8), versions 2-9.

The offsets of a request are one batch, written to the log before the answer. A partition that does
not exist is refused whatever its group says, and one whose metadata is too long fails alone.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Final

from broker_stub.coordinator.offsets import CommittedOffset
from broker_stub.request import RequestContext
from pyclient.error_codes import BrokerResponseError, code_of
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


_NAMES_MISSING_GROUP_FROM: Final = 9


def handle(
    node: Node, request: OffsetCommitRequest, context: RequestContext
) -> OffsetCommitResponse:
    """Commit a group's offsets."""
    now_ms = node.clock.now_ms()
    expires_ms = -1 if request.retention_time_ms < 0 else now_ms + request.retention_time_ms
    accepted: dict[TopicPartition, CommittedOffset] = {}
    existing: list[OffsetCommitResponsePartition] = []
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
                    now_ms,
                    expires_ms,
                )
            answer.partitions.append(
                OffsetCommitResponsePartition(
                    partition_index=partition.partition_index, error_code=error_code
                )
            )
            if error_code != UnknownTopicOrPartitionError.code:
                existing.append(answer.partitions[-1])
        response.topics.append(answer)
    if existing:
        try:
            _commit(node, request, context, accepted)
        except BrokerResponseError as error:
            for one in existing:
                one.error_code = error.code
    return response


def _commit(
    node: Node,
    request: OffsetCommitRequest,
    context: RequestContext,
    offsets: dict[TopicPartition, CommittedOffset],
) -> None:
    node.coordinator.check_commit(
        request.group_id,
        request.member_id,
        request.group_instance_id,
        request.generation_id_or_member_epoch,
        names_missing_group=context.api_version >= _NAMES_MISSING_GROUP_FROM,
    )
    node.coordinator.commit(request.group_id, offsets)


def _check(node: Node, topic: str, partition: OffsetCommitRequestPartition) -> int:
    image = node.image.topic(topic)
    if image is None or not 0 <= partition.partition_index < len(image.partitions):
        return UnknownTopicOrPartitionError.code
    metadata = partition.committed_metadata
    if metadata and _utf16_length(metadata) > node.config["offset.metadata.max.bytes"]:
        return OffsetMetadataTooLargeError.code
    return 0


def _utf16_length(text: str) -> int:
    """How Java counts: the option says bytes, but Apache Kafka compares a string's length."""
    return len(text.encode("utf-16-le", "surrogatepass")) // 2


def refuse(request: OffsetCommitRequest, error: KafkaError) -> OffsetCommitResponse:
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
