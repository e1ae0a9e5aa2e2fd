"""CreateTopics (API key 19), versions 2-7.

Responds when the topics are in the metadata log and visible to clients. Counts of -1 mean the
broker's defaults (the protocol allows them from version 4 on, we always do); a list of assignments
replaces them. `validate_only` checks without creating. A name that is in the request twice gets
INVALID_REQUEST. More than 10,000 partitions in one request: POLICY_VIOLATION for all of it, as in
Kafka. The response has the topic's configuration from version 5 on, and its id from 7 on.
"""

from __future__ import annotations

from collections import Counter
from typing import TYPE_CHECKING

from broker_stub.config.entries import topic_entries
from broker_stub.handlers._errors import message_of
from broker_stub.handlers._names import once_each
from broker_stub.metadata.topics import NewTopic, PlannedTopic, check_new_partitions
from broker_stub.request import Parked, RequestContext
from pyclient.error_codes import BrokerResponseError, InvalidReplicaAssignmentError
from pyclient.protocol.messages.create_topics import (
    CreatableTopic,
    CreatableTopicConfigs,
    CreatableTopicResult,
    CreateTopicsRequest,
    CreateTopicsResponse,
)

if TYPE_CHECKING:
    from broker_stub.node import Node


def handle(
    node: Node, request: CreateTopicsRequest, context: RequestContext
) -> Parked[CreateTopicsResponse]:
    check_new_partitions(
        sum(max(0, topic.num_partitions) + len(topic.assignments) for topic in request.topics)
    )
    once, refused = once_each(request.topics)
    for topic in once:
        indexes = Counter(one.partition_index for one in topic.assignments)
        twice = next((index for index, count in indexes.items() if count > 1), None)
        if twice is not None:
            refused[topic.name] = InvalidReplicaAssignmentError(
                f"Found multiple manual partition assignments for partition {twice}"
            )
    wanted = [topic for topic in once if topic.name not in refused]
    parked: Parked[CreateTopicsResponse] = Parked()

    def created(results: list[PlannedTopic | BrokerResponseError]) -> None:
        answered = [
            _result(node, topic.name, result) for topic, result in zip(wanted, results, strict=True)
        ]
        answered += [_failed(*one) for one in refused.items()]
        parked.answer(CreateTopicsResponse(topics=answered))

    node.controller.create_topics(
        [_new_topic(topic) for topic in wanted], created, validate_only=request.validate_only
    )
    return parked


def refuse(request: CreateTopicsRequest, error: BrokerResponseError) -> CreateTopicsResponse:
    return CreateTopicsResponse(topics=[_failed(topic.name, error) for topic in request.topics])


def _new_topic(topic: CreatableTopic) -> NewTopic:
    return NewTopic(
        name=topic.name,
        partitions=topic.num_partitions,
        replication_factor=topic.replication_factor,
        assignments={one.partition_index: one.broker_ids for one in topic.assignments},
        configs={config.name: config.value for config in topic.configs},
    )


def _result(
    node: Node, name: str, result: PlannedTopic | BrokerResponseError
) -> CreatableTopicResult:
    if isinstance(result, BrokerResponseError):
        return _failed(name, result)
    return CreatableTopicResult(
        name=name,
        topic_id=result.topic_id,
        error_message=None,
        num_partitions=len(result.replicas),
        replication_factor=result.replication_factor,
        configs=[
            CreatableTopicConfigs(
                name=entry.name,
                value=entry.value,
                read_only=entry.read_only,
                config_source=entry.source,
            )
            for entry in topic_entries(node.config, result.configs)
        ],
    )


def _failed(name: str, error: BrokerResponseError) -> CreatableTopicResult:
    return CreatableTopicResult(name=name, error_code=error.code, error_message=message_of(error))
