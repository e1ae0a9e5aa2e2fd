"""OffsetCommit (API key 8), versions 2-10.

From version 10 on topics are given by id; one that no topic has: UNKNOWN_TOPIC_ID. The usual
request takes `data_path/offset_commit.py`.
"""

from __future__ import annotations

from functools import partial
from typing import TYPE_CHECKING, Final

from broker_stub.coordinator.groups.commit_offsets import (
    CommitResults,
    OffsetCommit,
    commit_offsets,
)
from broker_stub.request import Parked, RequestContext
from pyclient.error_codes import code_of
from pyclient.errors import KafkaError
from pyclient.protocol.messages.offset_commit import (
    OffsetCommitRequest,
    OffsetCommitResponse,
    OffsetCommitResponsePartition,
    OffsetCommitResponseTopic,
)

if TYPE_CHECKING:
    from broker_stub.node import Node


NAMES_MISSING_GROUP_FROM: Final = 9
BY_ID_FROM: Final = 10


def handle(
    node: Node, request: OffsetCommitRequest, context: RequestContext
) -> OffsetCommitResponse | Parked[OffsetCommitResponse]:
    """Commit a group's offsets."""
    by_id = context.api_version >= BY_ID_FROM
    commit = OffsetCommit(
        request.group_id,
        request.generation_id_or_member_epoch,
        request.member_id,
        request.group_instance_id,
        request.retention_time_ms,
        [
            (
                node.image.topic_name(topic.topic_id) if by_id else topic.name,
                [
                    (
                        one.partition_index,
                        one.committed_offset,
                        one.committed_leader_epoch,
                        one.committed_metadata,
                    )
                    for one in topic.partitions
                ],
            )
            for topic in request.topics
        ],
        context.api_version >= NAMES_MISSING_GROUP_FROM,
    )
    return commit_offsets(node, commit, partial(_respond, request))


def _respond(request: OffsetCommitRequest, results: CommitResults) -> OffsetCommitResponse:
    """The response for each partition's outcome."""
    return OffsetCommitResponse(
        topics=[
            OffsetCommitResponseTopic(
                name=topic.name,
                topic_id=topic.topic_id,
                partitions=[
                    OffsetCommitResponsePartition(partition_index=index, error_code=code)
                    for index, code in outcomes
                ],
            )
            for topic, (_, outcomes) in zip(request.topics, results, strict=True)
        ]
    )


def refuse(request: OffsetCommitRequest, error: KafkaError) -> OffsetCommitResponse:
    code = code_of(error)
    return _respond(
        request,
        [
            (topic.name, [(one.partition_index, code) for one in topic.partitions])
            for topic in request.topics
        ],
    )
