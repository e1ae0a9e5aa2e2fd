"""ListOffsets (API key 2), versions 1-10.

Looks up the offset of a timestamp: -1 is the end (the high watermark, or the last stable offset
with `read_committed`), -2 the start, -3 the record with the largest timestamp (7+), -4 the local
start (8+: the start, as there is no tiered storage), -5 the end of tiered storage (9+: none).
Other negative ones, and those of later versions: UNSUPPORTED_VERSION. Any other timestamp: the
first record at or after it, -1 if there is none. A partition that is in the request twice gets
INVALID_REQUEST, each time.
"""

from __future__ import annotations

from collections import Counter
from typing import TYPE_CHECKING, Final

from broker_stub.handlers._partitions import always_fail, topic_results
from broker_stub.replica.partition import Partition
from broker_stub.request import RequestContext
from pyclient.error_codes import (
    BrokerResponseError,
    InvalidRequestError,
    UnsupportedVersionError,
)
from pyclient.protocol.messages.list_offsets import (
    ListOffsetsPartition,
    ListOffsetsPartitionResponse,
    ListOffsetsRequest,
    ListOffsetsResponse,
    ListOffsetsTopicResponse,
)

if TYPE_CHECKING:
    from broker_stub.node import Node

_LATEST, _EARLIEST, _MAX_TIMESTAMP, _EARLIEST_LOCAL, _LATEST_TIERED = -1, -2, -3, -4, -5
_SINCE: Final = {_LATEST: 1, _EARLIEST: 1, _MAX_TIMESTAMP: 7, _EARLIEST_LOCAL: 8, _LATEST_TIERED: 9}
_LEADER_EPOCH_FROM: Final = 4
_READ_COMMITTED: Final = 1


def handle(node: Node, request: ListOffsetsRequest, context: RequestContext) -> ListOffsetsResponse:
    """Look up the offsets."""
    committed_only = request.isolation_level == _READ_COMMITTED
    special = {one for one, version in _SINCE.items() if version <= context.api_version}

    times = Counter(
        (topic.name, one.partition_index) for topic in request.topics for one in topic.partitions
    )

    def look_up(topic: str, asked: ListOffsetsPartition) -> ListOffsetsPartitionResponse:
        if times[topic, asked.partition_index] > 1:
            raise InvalidRequestError("the partition is in the request twice")
        if asked.timestamp < 0 and asked.timestamp not in special:
            raise UnsupportedVersionError()
        partition = node.replicas.partition(topic, asked.partition_index)
        partition.check_leader_epoch(asked.current_leader_epoch)
        found = _look_up(partition, asked.timestamp, committed_only=committed_only)
        found.partition_index = asked.partition_index
        if context.api_version < _LEADER_EPOCH_FROM:
            found.leader_epoch = -1
        return found

    results = topic_results(ListOffsetsTopicResponse, request.topics, look_up, _failed)
    return ListOffsetsResponse(topics=results)


def refuse(request: ListOffsetsRequest, error: BrokerResponseError) -> ListOffsetsResponse:
    act = always_fail(error)
    results = topic_results(ListOffsetsTopicResponse, request.topics, act, _failed)
    return ListOffsetsResponse(topics=results)


def _failed(
    asked: ListOffsetsPartition, error: BrokerResponseError
) -> ListOffsetsPartitionResponse:
    return ListOffsetsPartitionResponse(
        partition_index=asked.partition_index, error_code=error.code
    )


def _look_up(
    partition: Partition, timestamp: int, *, committed_only: bool
) -> ListOffsetsPartitionResponse:
    partition.follow_flushes()
    end = partition.readable_end(committed_only=committed_only)
    if timestamp == _LATEST:
        return ListOffsetsPartitionResponse(offset=end, leader_epoch=partition.leader_epoch)
    if timestamp in (_EARLIEST, _EARLIEST_LOCAL):
        start = partition.log_start_offset
        return ListOffsetsPartitionResponse(
            offset=start, leader_epoch=partition.log.leader_epochs.epoch_for(start)
        )
    if timestamp == _LATEST_TIERED:
        return ListOffsetsPartitionResponse()
    if timestamp == _MAX_TIMESTAMP:
        found = partition.log.max_timestamp()
    else:
        found = partition.log.lookup_timestamp(timestamp)
    # Records past the client's end are not visible to it yet.
    if found is None or found.offset >= end:
        return ListOffsetsPartitionResponse()
    return ListOffsetsPartitionResponse(
        timestamp=found.timestamp_ms, offset=found.offset, leader_epoch=found.leader_epoch
    )
