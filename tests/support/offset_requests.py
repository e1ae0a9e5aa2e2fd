"""OffsetCommit and OffsetFetch requests, with offsets and partitions by name."""

from collections.abc import Iterable, Mapping
from typing import Any

from pyclient.protocol.messages.offset_commit import (
    OffsetCommitRequest,
    OffsetCommitRequestPartition,
    OffsetCommitRequestTopic,
)
from pyclient.protocol.messages.offset_fetch import (
    OffsetFetchRequest,
    OffsetFetchRequestGroup,
    OffsetFetchRequestTopic,
    OffsetFetchRequestTopics,
)

BY_GROUP_FROM = 8
"""The first version of OffsetFetch that asks for several groups."""


def offset_commit_request(
    group_id: str,
    offsets: Mapping[tuple[str, int], int],
    *,
    metadata: str | None = "",
    leader_epoch: int = -1,
    **fields: Any,
) -> OffsetCommitRequest:
    """A commit of offsets by topic and partition; `fields` are those of the request."""
    topics = {
        name: OffsetCommitRequestTopic(name=name, partitions=[])
        for name in dict.fromkeys(name for name, _ in offsets)
    }
    for (name, index), offset in offsets.items():
        topics[name].partitions.append(
            OffsetCommitRequestPartition(
                partition_index=index,
                committed_offset=offset,
                committed_leader_epoch=leader_epoch,
                committed_metadata=metadata,
            )
        )
    return OffsetCommitRequest(group_id=group_id, **fields, topics=list(topics.values()))


def offset_fetch_request(
    group_id: str,
    wanted: Mapping[str, list[int]] | Iterable[tuple[str, list[int]]] | None,
    version: int = 9,
) -> OffsetFetchRequest:
    """A lookup of partitions by topic, or of all, in the form that the version has."""
    pieces = list(wanted.items() if isinstance(wanted, Mapping) else wanted or ())
    kind = OffsetFetchRequestTopic if version < BY_GROUP_FROM else OffsetFetchRequestTopics
    topics: Any = [kind(name=name, partition_indexes=indexes) for name, indexes in pieces]
    if wanted is None:
        topics = None
    if version < BY_GROUP_FROM:
        return OffsetFetchRequest(group_id=group_id, topics=topics)
    return OffsetFetchRequest(groups=[OffsetFetchRequestGroup(group_id=group_id, topics=topics)])
