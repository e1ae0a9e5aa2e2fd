"""FindCoordinator (API key 10), versions 0-6.

The coordinator of a group is the leader of its partition of `__consumer_offsets`, that of a
transactional id (key type 1) the leader of its partition of `__transaction_state`. The first
request creates the topic. Other types of keys: INVALID_REQUEST.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Final

from broker_stub.coordinator.placement import partition_for
from broker_stub.handlers._errors import message_of
from broker_stub.metadata.auto_topic_creation import internal_topic
from broker_stub.metadata.image import CONSUMER_OFFSETS, TRANSACTION_STATE, TopicImage
from broker_stub.metadata.topics import PlannedTopic
from broker_stub.request import Parked, RequestContext
from pyclient.error_codes import (
    BrokerResponseError,
    CoordinatorNotAvailableError,
    InvalidRequestError,
)
from pyclient.protocol.messages.find_coordinator import (
    Coordinator,
    FindCoordinatorRequest,
    FindCoordinatorResponse,
)

if TYPE_CHECKING:
    from broker_stub.node import Node

_TOPICS: Final = {0: CONSUMER_OFFSETS, 1: TRANSACTION_STATE}  # by the type of a key
_MANY_FROM: Final = 4
_FOUND: Final = "NONE"  # Apache Kafka's message without an error, up to version 3


def handle(
    node: Node, request: FindCoordinatorRequest, context: RequestContext
) -> FindCoordinatorResponse | Parked[FindCoordinatorResponse]:
    name = _TOPICS.get(request.key_type)
    if name is None:
        unserved = InvalidRequestError(f"keys of type {request.key_type} have no coordinator")
        if context.api_version < _MANY_FROM:
            raise unserved
        return FindCoordinatorResponse(
            coordinators=[_failed(key, unserved) for key in request.coordinator_keys]
        )
    topic = node.image.topic(name)
    if topic is not None:
        return _found(node, request, context, topic)
    parked: Parked[FindCoordinatorResponse] = Parked()

    def created(_results: list[PlannedTopic | BrokerResponseError]) -> None:
        # Created by this request or by an earlier one: either is fine.
        topic = node.image.topic(name)
        if topic is None:
            missing = CoordinatorNotAvailableError(f"{name} can't be created")
            parked.answer(refuse(request, missing))
        else:
            parked.answer(_found(node, request, context, topic))

    node.controller.create_topics([internal_topic(name, node.config)], created)
    return parked


def refuse(request: FindCoordinatorRequest, error: BrokerResponseError) -> FindCoordinatorResponse:
    """Fail every key, in the place that the version has for it."""
    if request.coordinator_keys:
        return FindCoordinatorResponse(
            coordinators=[_failed(key, error) for key in request.coordinator_keys]
        )
    return FindCoordinatorResponse(
        error_code=error.code, error_message=message_of(error), node_id=-1, port=-1
    )


def _found(
    node: Node, request: FindCoordinatorRequest, context: RequestContext, topic: TopicImage
) -> FindCoordinatorResponse:
    keys = request.coordinator_keys if context.api_version >= _MANY_FROM else [request.key]
    coordinators = [_coordinator(node, key, context.connection.listener, topic) for key in keys]
    if context.api_version >= _MANY_FROM:
        return FindCoordinatorResponse(coordinators=coordinators)
    (one,) = coordinators
    return FindCoordinatorResponse(
        error_code=one.error_code,
        error_message=one.error_message or _FOUND,
        node_id=one.node_id,
        host=one.host,
        port=one.port,
    )


def _coordinator(node: Node, key: str, listener: str, topic: TopicImage) -> Coordinator:
    leader = topic.partitions[partition_for(key, len(topic.partitions))].leader
    for broker, endpoint in node.brokers(listener):
        if broker.broker_id == leader:
            return Coordinator(
                key=key,
                node_id=leader,
                host=endpoint.host,
                port=endpoint.port,
            )
    return _failed(key, CoordinatorNotAvailableError())


def _failed(key: str, error: BrokerResponseError) -> Coordinator:
    return Coordinator(
        key=key,
        node_id=-1,
        port=-1,
        error_code=error.code,
        error_message=message_of(error),
    )
