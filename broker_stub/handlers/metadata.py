"""Metadata (API key 3), versions 0-12.

Describes brokers, and topics with their partitions. A missing topic that is named is created if
the client allows it (always, before version 4) and `auto.create.topics.enable` does
(`metadata/auto_topic_creation.py`); the response waits until it exists. All topics are asked for
with an empty list in version 0, with null later. From version 12 on, topics may be named by id; an
id takes precedence over a name.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from typing import TYPE_CHECKING, Final

from broker_stub.handlers._names import unknown_topic
from broker_stub.handlers._operations import CLUSTER_OPERATIONS, NOT_ASKED_FOR, TOPIC_OPERATIONS
from broker_stub.metadata.auto_topic_creation import create_missing_topics, missing_topics
from broker_stub.metadata.image import INTERNAL_TOPICS, TopicImage
from broker_stub.metadata.topics import NewTopic
from broker_stub.request import Parked, RequestContext
from pyclient.error_codes import (
    BrokerResponseError,
    InvalidRequestError,
    LeaderNotAvailableError,
    UnknownTopicIdError,
)
from pyclient.protocol.messages.metadata import (
    MetadataRequest,
    MetadataRequestTopic,
    MetadataResponse,
    MetadataResponseBroker,
    MetadataResponsePartition,
    MetadataResponseTopic,
)
from pyclient.protocol.primitives import ZERO_UUID

if TYPE_CHECKING:
    from broker_stub.node import Node

_BY_ID_FROM: Final = 12


def handle(
    node: Node, request: MetadataRequest, context: RequestContext
) -> MetadataResponse | Parked[MetadataResponse]:
    """Describe the cluster, and create missing topics."""
    topics = request.topics
    if topics is None or (context.api_version == 0 and not topics):
        described = [_described(topic) for topic in node.image.topics()]
        return _response(node, request, context, described)
    by_name = all(topic.topic_id == ZERO_UUID and topic.name is not None for topic in topics)
    if not by_name and context.api_version < _BY_ID_FROM:
        raise InvalidRequestError("topics can be named by id only from version 12 on")
    once = {(topic.name, topic.topic_id): topic for topic in topics}.values()
    missing = _missing(node, request, once)
    if not missing:
        return _response(node, request, context, [_look_up(node, topic, {}) for topic in once])
    parked: Parked[MetadataResponse] = Parked()

    def created(errors: Mapping[str, BrokerResponseError]) -> None:
        found = [_look_up(node, topic, errors) for topic in once]
        parked.answer(_response(node, request, context, found))

    create_missing_topics(node.controller, missing, created)
    return parked


def refuse(request: MetadataRequest, error: BrokerResponseError) -> MetadataResponse:
    """Fail every topic of the request."""
    topics = [_failed(topic, error) for topic in request.topics or ()]
    for topic in topics:
        topic.name = topic.name or ""  # null is valid from version 12 on only
    return MetadataResponse(topics=topics, error_code=error.code)


def _missing(
    node: Node, request: MetadataRequest, topics: Iterable[MetadataRequestTopic]
) -> list[NewTopic]:
    if not request.allow_auto_topic_creation:
        return []
    names = [topic.name for topic in topics if topic.topic_id == ZERO_UUID]
    return missing_topics((name for name in names if name is not None), node.image, node.config)


def _look_up(
    node: Node, topic: MetadataRequestTopic, errors: Mapping[str, BrokerResponseError]
) -> MetadataResponseTopic:
    if topic.name is None or topic.topic_id != ZERO_UUID:
        found = node.image.topic_by_id(topic.topic_id)
        return _failed(topic, UnknownTopicIdError()) if found is None else _described(found)
    found = node.image.topic(topic.name)
    if found is not None:
        return _described(found)
    return _failed(topic, errors.get(topic.name) or unknown_topic(topic.name))


def _failed(topic: MetadataRequestTopic, error: BrokerResponseError) -> MetadataResponseTopic:
    return MetadataResponseTopic(
        error_code=error.code,
        name=topic.name,
        topic_id=topic.topic_id,
        is_internal=topic.name in INTERNAL_TOPICS,
    )


def _described(topic: TopicImage) -> MetadataResponseTopic:
    return MetadataResponseTopic(
        name=topic.name,
        topic_id=topic.topic_id,
        is_internal=topic.is_internal,
        partitions=[
            MetadataResponsePartition(
                error_code=0 if partition.leader >= 0 else LeaderNotAvailableError.code,
                partition_index=partition.partition_id,
                leader_id=partition.leader,
                leader_epoch=partition.leader_epoch,
                replica_nodes=list(partition.replicas),
                isr_nodes=list(partition.isr),
            )
            for partition in topic.partitions.values()
        ],
    )


def _response(
    node: Node,
    request: MetadataRequest,
    context: RequestContext,
    topics: list[MetadataResponseTopic],
) -> MetadataResponse:
    if request.include_topic_authorized_operations:
        for topic in topics:
            topic.topic_authorized_operations = TOPIC_OPERATIONS
    asks_for_operations = request.include_cluster_authorized_operations
    return MetadataResponse(
        brokers=[
            MetadataResponseBroker(
                node_id=broker.broker_id, host=endpoint.host, port=endpoint.port, rack=broker.rack
            )
            for broker, endpoint in node.brokers(context.connection.listener)
        ],
        cluster_id=node.cluster_id,
        controller_id=node.node_id,
        topics=topics,
        cluster_authorized_operations=CLUSTER_OPERATIONS if asks_for_operations else NOT_ASKED_FOR,
    )
