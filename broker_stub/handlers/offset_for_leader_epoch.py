"""OffsetForLeaderEpoch (API key 23), versions 2-4.

Finds where an epoch ends in the log: at the start of the next one, or at the end of the log for
the current one. For an unknown epoch, the last one before it is returned. So a client finds out
after a change of leader whether the records that it read still exist.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import TYPE_CHECKING

from broker_stub.handlers._partitions import always_fail, result_of_each
from broker_stub.request import RequestContext
from pyclient.error_codes import BrokerResponseError
from pyclient.protocol.messages.offset_for_leader_epoch import (
    EpochEndOffset,
    OffsetForLeaderEpochRequest,
    OffsetForLeaderEpochResponse,
    OffsetForLeaderPartition,
    OffsetForLeaderTopicResult,
)

if TYPE_CHECKING:
    from broker_stub.node import Node


def handle(
    node: Node, request: OffsetForLeaderEpochRequest, context: RequestContext
) -> OffsetForLeaderEpochResponse:
    """Look up where the epochs end."""

    def look_up(topic: str, asked: OffsetForLeaderPartition) -> EpochEndOffset:
        partition = node.replicas.partition(topic, asked.partition)
        partition.check_leader_epoch(asked.current_leader_epoch)
        found = partition.log.end_of_epoch(asked.leader_epoch)
        return EpochEndOffset(
            partition=asked.partition, leader_epoch=found.epoch, end_offset=found.end_offset
        )

    return _respond(request, look_up)


def refuse(
    request: OffsetForLeaderEpochRequest, error: BrokerResponseError
) -> OffsetForLeaderEpochResponse:
    return _respond(request, always_fail(error))


def _respond(
    request: OffsetForLeaderEpochRequest,
    act: Callable[[str, OffsetForLeaderPartition], EpochEndOffset],
) -> OffsetForLeaderEpochResponse:
    return OffsetForLeaderEpochResponse(
        topics=[
            OffsetForLeaderTopicResult(
                topic=topic.topic,
                partitions=result_of_each(topic.topic, topic.partitions, act, _failed),
            )
            for topic in request.topics
        ]
    )


def _failed(asked: OffsetForLeaderPartition, error: BrokerResponseError) -> EpochEndOffset:
    return EpochEndOffset(partition=asked.partition, error_code=error.code)
