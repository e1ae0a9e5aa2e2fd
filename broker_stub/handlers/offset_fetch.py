"""OffsetFetch (API key 9), versions 1-10.

Up to version 7 for one group, from version 8 on for several. Null topics (version 2 and later) mean
all that the group has. A partition without an offset gets -1 and no error. From version 10 on
topics are given by id: one that no topic has gets UNKNOWN_TOPIC_ID, and what the group has of
deleted topics is left out. With `require_stable` (7+), a partition whose offset an open transaction
may change gets UNSTABLE_OFFSET_COMMIT.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Sequence
from itertools import groupby
from operator import attrgetter
from typing import TYPE_CHECKING, Final, TypeVar

from broker_stub.coordinator.groups.offsets import CommittedOffset
from broker_stub.request import RequestContext
from pyclient.error_codes import UnknownTopicIdError, UnstableOffsetCommitError, code_of
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

_BY_ID_FROM: Final = 10
_NONE = CommittedOffset(offset=-1, leader_epoch=-1, metadata="", commit_timestamp_ms=-1)
_UNSTABLE = CommittedOffset(*_NONE)


def handle(node: Node, request: OffsetFetchRequest, context: RequestContext) -> OffsetFetchResponse:
    """Look up committed offsets."""
    node.coordinator.log_topic()  # without it: NOT_COORDINATOR
    if context.api_version >= 8:
        of_group = _of_group_by_id if context.api_version >= _BY_ID_FROM else _of_group
        stable = request.require_stable
        return OffsetFetchResponse(
            groups=[of_group(node, group, stable=stable) for group in request.groups]
        )
    return OffsetFetchResponse(
        topics=[
            OffsetFetchResponseTopic(
                name=topic, partitions=_partitions(offsets, OffsetFetchResponsePartition)
            )
            for topic, offsets in _look_up(
                node, request.group_id, request.topics, stable=request.require_stable
            )
        ]
    )


def _of_group(
    node: Node, group: OffsetFetchRequestGroup, *, stable: bool
) -> OffsetFetchResponseGroup:
    return OffsetFetchResponseGroup(
        group_id=group.group_id,
        topics=[
            OffsetFetchResponseTopics(
                name=topic, partitions=_partitions(offsets, OffsetFetchResponsePartitions)
            )
            for topic, offsets in _look_up(node, group.group_id, group.topics, stable=stable)
        ],
    )


def _of_group_by_id(
    node: Node, group: OffsetFetchRequestGroup, *, stable: bool
) -> OffsetFetchResponseGroup:
    if group.topics is None:
        named = _look_up(node, group.group_id, None, stable=stable)
        found = [
            OffsetFetchResponseTopics(
                topic_id=image.topic_id,
                partitions=_partitions(offsets, OffsetFetchResponsePartitions),
            )
            for topic, offsets in named
            if (image := node.image.topic(topic)) is not None
        ]
    else:
        found = [
            _of_topic_by_id(node, group.group_id, topic, stable=stable) for topic in group.topics
        ]
    return OffsetFetchResponseGroup(group_id=group.group_id, topics=found)


def _of_topic_by_id(
    node: Node, group_id: str, topic: OffsetFetchRequestTopics, *, stable: bool
) -> OffsetFetchResponseTopics:
    name = node.image.topic_name(topic.topic_id)
    if name is None:
        indexes = topic.partition_indexes
        partitions = _partitions(
            [(index, _NONE) for index in indexes], OffsetFetchResponsePartitions
        )
        for one in partitions:
            one.error_code = UnknownTopicIdError.code
    else:
        named = OffsetFetchRequestTopics(name=name, partition_indexes=topic.partition_indexes)
        ((_, offsets),) = _look_up(node, group_id, [named], stable=stable)
        partitions = _partitions(offsets, OffsetFetchResponsePartitions)
    return OffsetFetchResponseTopics(topic_id=topic.topic_id, partitions=partitions)


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
            error_code=UnstableOffsetCommitError.code if offset is _UNSTABLE else 0,
        )
        for index, offset in offsets
    ]


def _look_up(
    node: Node,
    group_id: str,
    topics: Sequence[OffsetFetchRequestTopic | OffsetFetchRequestTopics] | None,
    *,
    stable: bool,
) -> list[tuple[str, list[tuple[int, CommittedOffset]]]]:
    """The offsets by topic, in the order of the request; a topic may come several times."""
    offsets = node.coordinator.offsets
    pending = node.coordinator.pending

    def look_up(partition: TopicPartition) -> CommittedOffset:
        if stable and pending.has(group_id, partition):
            return _UNSTABLE
        return offsets.get(group_id, partition) or _NONE

    if topics is None:
        by_topic = groupby(offsets.partitions(group_id), key=attrgetter("topic"))
        wanted = [(topic, [one.partition for one in found]) for topic, found in by_topic]
    else:
        wanted = [(topic.name, topic.partition_indexes) for topic in topics]
    return [
        (
            topic,
            [(index, look_up(TopicPartition(topic, index))) for index in indexes],
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
