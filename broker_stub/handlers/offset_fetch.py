"""OffsetFetch (API key 9), versions 1-9.

Up to version 7 for one group, from version 8 on for several. Null topics (version 2 and later) mean
all that the group has. A partition without an offset gets -1 and no error.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Sequence
from itertools import groupby
from operator import attrgetter
from typing import TYPE_CHECKING, TypeVar

from broker_stub.coordinator.offsets import CommittedOffset
from broker_stub.request import RequestContext
from pyclient.error_codes import code_of
from pyclient.errors import KafkaError
from pyclient.protocol.messages.offset_fetch import (
    OffsetFetchRequest,
    OffsetFetchRequestGroup,
    OffsetFetchRequestTopic,
    OffsetFetchRequestTopics,
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
    node.coordinator.log_topic()  # without it: NOT_COORDINATOR
    if context.api_version >= 8:
        return OffsetFetchResponse(groups=[_of_group(node, group) for group in request.groups])
    return OffsetFetchResponse(
        topics=[
            OffsetFetchResponseTopic(
                name=topic, partitions=_partitions(offsets, OffsetFetchResponsePartition)
            )
            for topic, offsets in _look_up(node, request.group_id, request.topics)
        ]
    )


def _of_group(node: Node, group: OffsetFetchRequestGroup) -> OffsetFetchResponseGroup:
    return OffsetFetchResponseGroup(
        group_id=group.group_id,
        topics=[
            OffsetFetchResponseTopics(
                name=topic, partitions=_partitions(offsets, OffsetFetchResponsePartitions)
            )
            for topic, offsets in _look_up(node, group.group_id, group.topics)
        ],
    )


def _partitions(
    offsets: Iterable[tuple[int, CommittedOffset]], declared: Callable[..., PartitionResult]
) -> list[PartitionResult]:
    """The offsets of a topic, in the message of the request's version."""
    return [
        declared(
            partition_index=index,
            committed_offset=offset.offset,
            committed_leader_epoch=offset.leader_epoch,
            metadata=offset.metadata,
        )
        for index, offset in offsets
    ]


def _look_up(
    node: Node,
    group_id: str,
    topics: Sequence[OffsetFetchRequestTopic | OffsetFetchRequestTopics] | None,
) -> list[tuple[str, list[tuple[int, CommittedOffset]]]]:
    """The offsets by topic, in the order of the request; a topic may come several times."""
    offsets = node.coordinator.offsets
    if topics is None:
        by_topic = groupby(offsets.partitions(group_id), key=attrgetter("topic"))
        wanted = [(topic, [one.partition for one in found]) for topic, found in by_topic]
    else:
        wanted = [(topic.name, topic.partition_indexes) for topic in topics]
    return [
        (
            topic,
            [
                (index, offsets.get(group_id, TopicPartition(topic, index)) or _NONE)
                for index in indexes
            ],
        )
        for topic, indexes in wanted
    ]


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
