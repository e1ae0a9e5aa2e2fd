"""DeleteRecords (API key 21), versions 0-2.

Moves the log start offset of partitions forward: to an offset, or with -1 to the high watermark.
An offset past that is OFFSET_OUT_OF_RANGE; one before the start changes nothing. Records before
the start cannot be read any more; their segments are deleted in the background. Topics that are
only compacted (POLICY_VIOLATION) and internal topics (INVALID_TOPIC_EXCEPTION) are refused.
"""

from __future__ import annotations

from functools import partial
from typing import TYPE_CHECKING

from broker_stub.handlers._partitions import always_fail, topic_results
from broker_stub.log.log_config import DELETE
from broker_stub.metadata.image import INTERNAL_TOPICS
from broker_stub.request import RequestContext
from pyclient.error_codes import BrokerResponseError, InvalidTopicError, PolicyViolationError
from pyclient.protocol.messages.delete_records import (
    DeleteRecordsPartition,
    DeleteRecordsPartitionResult,
    DeleteRecordsRequest,
    DeleteRecordsResponse,
    DeleteRecordsTopicResult,
)

if TYPE_CHECKING:
    from broker_stub.node import Node


def handle(
    node: Node, request: DeleteRecordsRequest, context: RequestContext
) -> DeleteRecordsResponse:
    """Move the log start offsets."""
    results = topic_results(
        DeleteRecordsTopicResult, request.topics, partial(_delete, node), _failed
    )
    return DeleteRecordsResponse(topics=results)


def refuse(request: DeleteRecordsRequest, error: BrokerResponseError) -> DeleteRecordsResponse:
    results = topic_results(DeleteRecordsTopicResult, request.topics, always_fail(error), _failed)
    return DeleteRecordsResponse(topics=results)


def _delete(node: Node, topic: str, asked: DeleteRecordsPartition) -> DeleteRecordsPartitionResult:
    if topic in INTERNAL_TOPICS:
        raise InvalidTopicError(f"{topic!r} is internal: its records can't be deleted")
    partition = node.replicas.partition(topic, asked.partition_index)
    partition.check_leader_epoch()
    config = partition.log.config
    if config.is_compacted and DELETE not in config.cleanup_policy:
        raise PolicyViolationError(f"{topic!r} is compacted: its records can't be deleted")
    start_offset = partition.log.delete_records(asked.offset)
    # Complete fetches that wait at a deleted offset now, not at their timeout.
    node.replicas.wake_fetches([partition])
    return DeleteRecordsPartitionResult(
        partition_index=asked.partition_index, low_watermark=start_offset
    )


def _failed(
    asked: DeleteRecordsPartition, error: BrokerResponseError
) -> DeleteRecordsPartitionResult:
    return DeleteRecordsPartitionResult(
        partition_index=asked.partition_index, low_watermark=-1, error_code=error.code
    )
