"""ElectLeaders (API key 43), versions 0-2.

Null means all partitions; those that need no election are left out of the response, but their
topics are in it. A single broker leads all partitions, so the result is ELECTION_NOT_NEEDED. A type
that is neither preferred nor unclean fails the whole request with INVALID_REQUEST.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

from broker_stub.handlers._errors import message_of
from broker_stub.metadata.elections import check_election, check_election_type
from broker_stub.request import RequestContext
from pyclient.error_codes import BrokerResponseError, ElectionNotNeededError
from pyclient.protocol.messages.elect_leaders import (
    ElectLeadersRequest,
    ElectLeadersResponse,
    PartitionResult,
    ReplicaElectionResult,
)

if TYPE_CHECKING:
    from broker_stub.node import Node


def handle(
    node: Node, request: ElectLeadersRequest, context: RequestContext
) -> ElectLeadersResponse:
    check_election_type(request.election_type)

    def elected(topic: str, index: int) -> PartitionResult:
        try:
            check_election(topic, index, request.election_type, node.image)
        except BrokerResponseError as error:
            return _failed(index, error)
        return PartitionResult(partition_id=index, error_message=None)

    if request.topic_partitions is not None:
        asked = [(topic.topic, topic.partitions) for topic in request.topic_partitions]
        results = {name: [elected(name, one) for one in indexes] for name, indexes in asked}
    else:
        results = {
            topic.name: [
                result
                for result in (elected(topic.name, index) for index in topic.partitions)
                if result.error_code != ElectionNotNeededError.code
            ]
            for topic in node.image.topics()
        }
    return ElectLeadersResponse(
        replica_election_results=[
            ReplicaElectionResult(topic=name, partition_result=partitions)
            for name, partitions in results.items()
        ]
    )


def refuse(request: ElectLeadersRequest, error: BrokerResponseError) -> ElectLeadersResponse:
    """Fail every partition of the request."""
    return ElectLeadersResponse(
        error_code=error.code,
        replica_election_results=[
            ReplicaElectionResult(
                topic=topic.topic,
                partition_result=[_failed(index, error) for index in topic.partitions],
            )
            for topic in request.topic_partitions or ()
        ],
    )


def _failed(index: int, error: BrokerResponseError) -> PartitionResult:
    return PartitionResult(
        partition_id=index, error_code=error.code, error_message=message_of(error)
    )
