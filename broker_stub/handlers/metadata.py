"""Metadata (API key 3), versions 0-12.

Brokers, and topics with their partitions. A topic that is asked for by name and does not exist
is created if the client allows it (always, before version 4) and `auto.create.topics.enable`
does; the answer is held back until it is there, so the client need not ask again. Version 0 asks
for all topics with an empty list, later ones with null. From version 12 on by id, too.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Final

from broker_stub.metadata.image import (
    CONSUMER_OFFSETS,
    INTERNAL_TOPICS,
    TRANSACTION_STATE,
    TopicImage,
)
from broker_stub.metadata.topics import NewTopic, PlannedTopic
from broker_stub.request import Parked, RequestContext
from pyclient.error_codes import (
    BrokerResponseError,
    InvalidRequestError,
    LeaderNotAvailableError,
    TopicExistsError,
    UnknownTopicIdError,
    UnknownTopicOrPartitionError,
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
    """Describe the cluster, and create what is missing."""
    topics = request.topics
    if topics is None or (context.api_version == 0 and not topics):
        described = [_described(topic) for topic in node.image.topics()]
        return _response(node, context, described)
    missing = _creatable(node, request, topics)
    if not missing:
        return _response(node, context, [_look_up(node, topic, context) for topic in topics])
    parked: Parked[MetadataResponse] = Parked()

    def created(results: list[PlannedTopic | BrokerResponseError]) -> None:
        errors = {
            topic.name: result
            for topic, result in zip(missing, results, strict=True)
            if isinstance(result, BrokerResponseError)
            # Another client was faster: the topic is there, which is all that was wanted.
            and not isinstance(result, TopicExistsError)
        }
        found = [_look_up(node, topic, context, errors) for topic in topics]
        parked.answer(_response(node, context, found))

    node.controller.create_topics(missing, created)
    return parked


def refuse(request: MetadataRequest, error: BrokerResponseError) -> MetadataResponse:
    """Fail every topic that was named."""
    topics = [_failed(topic, error) for topic in request.topics or ()]
    for topic in topics:
        topic.name = topic.name or ""  # null has a place in a response from version 12 on only
    return MetadataResponse(topics=topics, error_code=error.code)


def _creatable(
    node: Node, request: MetadataRequest, topics: list[MetadataRequestTopic]
) -> list[NewTopic]:
    if not (request.allow_auto_topic_creation and node.config["auto.create.topics.enable"]):
        return []
    names = dict.fromkeys(topic.name for topic in topics if topic.name is not None)
    return [
        node.offsets_topic() if name == CONSUMER_OFFSETS else NewTopic(name)
        for name in names
        # Without a transaction coordinator there is nothing that could be in its topic.
        if node.image.topic(name) is None and name != TRANSACTION_STATE
    ]


def _look_up(
    node: Node,
    topic: MetadataRequestTopic,
    context: RequestContext,
    errors: dict[str, BrokerResponseError] | None = None,
) -> MetadataResponseTopic:
    if topic.name is not None:
        found = node.image.topic(topic.name)
        error = (errors or {}).get(topic.name) or UnknownTopicOrPartitionError()
    else:
        if context.api_version < _BY_ID_FROM:
            raise InvalidRequestError("topics can be named by id from version 12 on")
        found = node.image.topic_by_id(topic.topic_id)
        error = UnknownTopicIdError()
    return _failed(topic, error) if found is None else _described(found)


def _failed(topic: MetadataRequestTopic, error: BrokerResponseError) -> MetadataResponseTopic:
    return MetadataResponseTopic(
        error_code=error.code,
        name=topic.name,
        topic_id=topic.topic_id if topic.name is None else ZERO_UUID,
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
    node: Node, context: RequestContext, topics: list[MetadataResponseTopic]
) -> MetadataResponse:
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
    )
