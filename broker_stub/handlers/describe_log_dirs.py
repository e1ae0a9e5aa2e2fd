"""DescribeLogDirs (API key 35), versions 1-5.

Describes every folder of `log.dirs`: its partitions with their sizes, and the total and usable
space of its file system (4+). Null asks for all partitions; missing ones are left out, as in Kafka.
Partitions don't move between folders here, so there are no future replicas.
"""

from __future__ import annotations

import os
from collections.abc import Iterable, Iterator
from typing import TYPE_CHECKING

from broker_stub.replica.partition import Partition
from broker_stub.request import RequestContext
from pyclient.error_codes import BrokerResponseError, KafkaStorageError
from pyclient.protocol.messages.describe_log_dirs import (
    DescribeLogDirsPartition,
    DescribeLogDirsRequest,
    DescribeLogDirsResponse,
    DescribeLogDirsResult,
    DescribeLogDirsTopic,
)

if TYPE_CHECKING:
    from broker_stub.node import Node


def handle(
    node: Node, request: DescribeLogDirsRequest, context: RequestContext
) -> DescribeLogDirsResponse:
    held: dict[str, dict[str, list[Partition]]] = {path: {} for path in node.logs.directory_ids}
    for partition in _partitions(node, request):
        folder = os.path.dirname(partition.log.folder)
        held[folder].setdefault(partition.topic, []).append(partition)
    return DescribeLogDirsResponse(
        results=[_described(path, topics) for path, topics in held.items()]
    )


def refuse(request: DescribeLogDirsRequest, error: BrokerResponseError) -> DescribeLogDirsResponse:
    """Fail; before version 3 there is no error code, only the empty list."""
    return DescribeLogDirsResponse(error_code=error.code)


def _partitions(node: Node, request: DescribeLogDirsRequest) -> Iterator[Partition]:
    asked: Iterable[tuple[str, int]]
    if request.topics is None:
        asked = [(topic.name, index) for topic in node.image.topics() for index in topic.partitions]
    else:
        asked = [(topic.topic, index) for topic in request.topics for index in topic.partitions]
    for name, index in dict.fromkeys(asked):
        topic = node.image.topic(name)
        if topic is not None and index in topic.partitions:
            yield node.replicas.partition_of(topic, index)


def _described(path: str, topics: dict[str, list[Partition]]) -> DescribeLogDirsResult:
    result = DescribeLogDirsResult(
        log_dir=os.path.abspath(path),
        topics=[
            DescribeLogDirsTopic(
                name=name,
                partitions=[
                    DescribeLogDirsPartition(
                        partition_index=partition.index, partition_size=partition.log.size
                    )
                    for partition in partitions
                ],
            )
            for name, partitions in topics.items()
        ],
    )
    try:
        space = os.statvfs(path)
    except OSError:
        result.error_code = KafkaStorageError.code
    else:
        result.total_bytes = space.f_blocks * space.f_frsize
        result.usable_bytes = space.f_bavail * space.f_frsize
    return result
