"""OffsetFetch (API key 9), versions 1-9.

Up to version 7 for one group, from version 8 on for several. Null topics (version 2 and later) mean
all that the group has. A partition without an offset gets -1 and no error.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import TYPE_CHECKING, TypeVar

from broker_stub.coordinator.offsets import CommittedOffset
from broker_stub.request import RequestContext
from pyclient.error_codes import code_of
from pyclient.errors import KafkaError
from pyclient.protocol.messages.offset_fetch import (
    OffsetFetchRequest,
    OffsetFetchRequestGroup,
    OffsetFetchResponse,
    OffsetFetchResponseGroup,
    OffsetFetchResponsePartition,
    OffsetFetchResponsePartitions,
    OffsetFetchResponseTopic,
    OffsetFetchResponseTopics,
)
from pyclient.types import TopicPartition

if TYPE_CHECKING:
    from broker_stub.node import Node

PartitionResult = TypeVar("PartitionResult")

_NONE = CommittedOffset(offset=-1, leader_epoch=-1, metadata="", commit_timestamp_ms=-1)


def handle(node: Node, request: OffsetFetchRequest, context: RequestContext) -> OffsetFetchResponse:
    """Look up committed offsets."""
    if context.api_version >= 8:
        return OffsetFetchResponse(groups=[_of_group(node, group) for group in request.groups])
    wanted = None
    if request.topics is not None:
        wanted = {topic.name: topic.partition_indexes for topic in request.topics}
    found = _look_up(node, request.group_id, wanted)
    return OffsetFetchResponse(
        topics=[
            OffsetFetchResponseTopic(
                name=topic, partitions=_partitions(offsets, OffsetFetchResponsePartition)
            )
            for topic, offsets in found.items()
        ]
    )


def _of_group(node: Node, group: OffsetFetchRequestGroup) -> OffsetFetchResponseGroup:
    wanted = None
    if group.topics is not None:
        wanted = {topic.name: topic.partition_indexes for topic in group.topics}
    found = _look_up(node, group.group_id, wanted)
    return OffsetFetchResponseGroup(
        group_id=group.group_id,
        topics=[
            OffsetFetchResponseTopics(
                name=topic, partitions=_partitions(offsets, OffsetFetchResponsePartitions)
            )
            for topic, offsets in found.items()
        ],
    )


def _partitions(
    offsets: dict[int, CommittedOffset], declared: Callable[..., PartitionResult]
) -> list[PartitionResult]:
    """The offsets of a topic, in the message of the request's version."""
    return [
        declared(
            partition_index=index,
            committed_offset=offset.offset,
            committed_leader_epoch=offset.leader_epoch,
            metadata=offset.metadata,
        )
        for index, offset in offsets.items()
    ]


def _look_up(
    node: Node, group_id: str, wanted: dict[str, list[int]] | None
) -> dict[str, dict[int, CommittedOffset]]:
    offsets = node.coordinator.offsets
    if wanted is None:
        wanted = {}
        for one in offsets.partitions(group_id):
            wanted.setdefault(one.topic, []).append(one.partition)
    return {
        topic: {
            index: offsets.get(group_id, TopicPartition(topic, index)) or _NONE for index in indexes
        }
        for topic, indexes in wanted.items()
    }


def refuse(request: OffsetFetchRequest, error: KafkaError) -> OffsetFetchResponse:
    """Fail every group. Version 1 has the error only per partition."""
    return OffsetFetchResponse(
        error_code=code_of(error),
        topics=[
            OffsetFetchResponseTopic(
                name=topic.name,
                partitions=[
                    OffsetFetchResponsePartition(
                        partition_index=index,
                        committed_offset=_NONE.offset,
                        metadata=_NONE.metadata,
                        error_code=code_of(error),
                    )
                    for index in topic.partition_indexes
                ],
            )
            for topic in request.topics or ()
        ],
        groups=[
            OffsetFetchResponseGroup(group_id=group.group_id, error_code=code_of(error))
            for group in request.groups
        ],
    )
