"""AlterReplicaLogDirs (API key 34), versions 1-2.

Partitions do not move between directories here: naming the current one succeeds, another one of
`log.dirs` is INVALID_REQUEST, and any other directory is LOG_DIR_NOT_FOUND.
"""

from __future__ import annotations

import os
from typing import TYPE_CHECKING

from broker_stub import diagnostics
from broker_stub.request import RequestContext
from pyclient.error_codes import BrokerResponseError, InvalidRequestError, LogDirNotFoundError
from pyclient.protocol.messages.alter_replica_log_dirs import (
    AlterReplicaLogDirPartitionResult,
    AlterReplicaLogDirsRequest,
    AlterReplicaLogDirsResponse,
    AlterReplicaLogDirTopicResult,
)

if TYPE_CHECKING:
    from broker_stub.node import Node


def handle(
    node: Node, request: AlterReplicaLogDirsRequest, context: RequestContext
) -> AlterReplicaLogDirsResponse:
    """Check that each replica is in the requested directory."""

    def code(path: str, topic: str, index: int) -> int:
        try:
            _check(node, path, topic, index)
        except BrokerResponseError as error:
            diagnostics.warn("%s-%d is not moved to %s: %s", topic, index, path, error)
            return error.code
        return 0

    return _response(
        [
            (topic.name, index, code(folder.path, topic.name, index))
            for folder in request.dirs
            for topic in folder.topics
            for index in topic.partitions
        ]
    )


def refuse(
    request: AlterReplicaLogDirsRequest, error: BrokerResponseError
) -> AlterReplicaLogDirsResponse:
    return _response(
        [
            (topic.name, index, error.code)
            for folder in request.dirs
            for topic in folder.topics
            for index in topic.partitions
        ]
    )


def _check(node: Node, path: str, topic: str, index: int) -> None:
    folders = {os.path.abspath(folder) for folder in node.logs.directory_ids}
    if not os.path.isabs(path) or os.path.normpath(path) not in folders:
        raise LogDirNotFoundError(f"{path} is not in log.dirs ({', '.join(sorted(folders))})")
    current = os.path.dirname(node.replicas.partition(topic, index).log.folder)
    if os.path.abspath(current) != os.path.normpath(path):
        raise InvalidRequestError(
            f"{topic}-{index} is in {current}: partitions do not move between directories here"
        )


def _response(codes: list[tuple[str, int, int]]) -> AlterReplicaLogDirsResponse:
    results: dict[str, list[AlterReplicaLogDirPartitionResult]] = {}
    for topic, index, error_code in codes:
        results.setdefault(topic, []).append(
            AlterReplicaLogDirPartitionResult(partition_index=index, error_code=error_code)
        )
    return AlterReplicaLogDirsResponse(
        results=[
            AlterReplicaLogDirTopicResult(topic_name=topic, partitions=partitions)
            for topic, partitions in results.items()
        ]
    )
