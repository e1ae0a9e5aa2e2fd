"""Fetch (API key 1), versions 4-17.

Responds with whole batches as file ranges, from the batch that holds the offset on; the first
batch even if it exceeds every limit. Waits for `min_bytes` or `max_wait_ms`
(`replica/delayed_fetch.py`); an append or the deletion of the topic completes it, and an error is
answered at once. `read_committed` consumers stop at the last stable offset, and get the aborted
transactions. Sessions (KIP-227) are in `replica/fetch_sessions.py`. From version 13 on, topics are
named by id; from 16 on, the response to a wrong leader names the right one. Fetches of followers,
and so version 18, are not supported.
"""

from __future__ import annotations

from functools import partial
from typing import TYPE_CHECKING, Final

from broker_stub.replica.delayed_fetch import fetch_records
from broker_stub.replica.fetch_sessions import FetchedTopics, FetchTarget
from broker_stub.replica.read_partitions import (
    READ_COMMITTED,
    FetchParams,
    FetchPartitionData,
)
from broker_stub.request import Parked, RequestContext
from pyclient.error_codes import BrokerResponseError
from pyclient.protocol.messages.current_leader import LeaderIdAndEpoch, NodeEndpoint
from pyclient.protocol.messages.fetch import (
    AbortedTransaction,
    FetchableTopicResponse,
    FetchRequest,
    FetchResponse,
    PartitionData,
)

if TYPE_CHECKING:
    from broker_stub.node import Node

BY_ID_FROM: Final = 13
_LEADERS_FROM: Final = 16


def handle(
    node: Node, request: FetchRequest, context: RequestContext
) -> FetchResponse | Parked[FetchResponse]:
    """Read, or wait until there is enough to read."""
    return fetch_records(
        node, _params(request, context.api_version), partial(respond, node, context)
    )


def refuse(request: FetchRequest, error: BrokerResponseError) -> FetchResponse:
    """Fail the request; before version 7, only partitions have error codes."""
    return FetchResponse(
        error_code=error.code,
        responses=[
            FetchableTopicResponse(
                topic=topic.topic,
                topic_id=topic.topic_id,
                partitions=[
                    _data(FetchPartitionData(one.partition, error.code)) for one in topic.partitions
                ],
            )
            for topic in request.topics
        ],
    )


def _params(request: FetchRequest, version: int) -> FetchParams:
    return FetchParams(
        session_id=request.session_id,
        session_epoch=request.session_epoch,
        by_id=version >= BY_ID_FROM,
        max_wait_ms=request.max_wait_ms,
        min_bytes=request.min_bytes,
        max_bytes=request.max_bytes,
        committed_only=request.isolation_level == READ_COMMITTED,
        targets=[
            FetchTarget(
                (topic.topic_id, topic.topic, partition.partition),
                partition.fetch_offset,
                partition.partition_max_bytes,
                partition.current_leader_epoch,
            )
            for topic in request.topics
            for partition in topic.partitions
        ],
        forgotten=[
            (topic.topic_id, topic.topic, index)
            for topic in request.forgotten_topics_data
            for index in topic.partitions
        ],
    )


def names_leader(version: int, topics: FetchedTopics) -> bool:
    """Whether the response names the leader of a partition."""
    return version >= _LEADERS_FROM and any(
        read.leader is not None for reads in topics.values() for read in reads
    )


def respond(
    node: Node, context: RequestContext, session_id: int, topics: FetchedTopics
) -> FetchResponse:
    """The response of what was read."""
    response = FetchResponse(
        session_id=session_id,
        responses=[
            FetchableTopicResponse(
                topic=name, topic_id=topic_id, partitions=[_data(read) for read in reads]
            )
            for (topic_id, name), reads in topics.items()
        ],
    )
    if names_leader(context.api_version, topics):
        _name_leaders(node, context, response, topics)
    return response


def _name_leaders(
    node: Node, context: RequestContext, response: FetchResponse, topics: FetchedTopics
) -> None:
    leaders = set()
    for topic, reads in zip(response.responses, topics.values(), strict=True):
        for data, read in zip(topic.partitions, reads, strict=True):
            if read.leader is not None:
                leader_id, leader_epoch = read.leader
                leaders.add(leader_id)
                data.current_leader = LeaderIdAndEpoch(
                    leader_id=leader_id, leader_epoch=leader_epoch
                )
    response.node_endpoints = [
        NodeEndpoint(
            node_id=broker.broker_id, host=endpoint.host, port=endpoint.port, rack=broker.rack
        )
        for broker, endpoint in node.brokers(context.connection.listener)
        if broker.broker_id in leaders
    ]


def _data(read: FetchPartitionData) -> PartitionData:
    aborted = read.aborted
    return PartitionData(
        partition_index=read.index,
        error_code=read.error_code,
        high_watermark=read.high_watermark,
        last_stable_offset=read.last_stable_offset,
        log_start_offset=read.log_start_offset,
        aborted_transactions=None
        if aborted is None
        else [
            AbortedTransaction(producer_id=producer_id, first_offset=first_offset)
            for producer_id, first_offset in aborted
        ],
        records=b"" if read.records is None else read.records,
    )
