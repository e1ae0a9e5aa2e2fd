"""DescribeConfigs (API key 32), versions 1-4.

Describes topics (2) and brokers (4; an empty name stands for all brokers, and has only what was set
for all). Each value has its source: the topic, the running broker, all brokers, the options that
the broker was started with, or the default. Synonyms and documentation are sent on request. Other
resources: INVALID_REQUEST.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

from broker_stub.config.entries import (
    ConfigEntry,
    broker_entries,
    default_broker_entries,
    topic_entries,
)
from broker_stub.handlers._errors import message_of
from broker_stub.metadata.config_changes import check_resource
from broker_stub.metadata.image import TOPIC_RESOURCE
from broker_stub.request import RequestContext
from pyclient.error_codes import BrokerResponseError, UnknownTopicOrPartitionError
from pyclient.protocol.messages.describe_configs import (
    DescribeConfigsRequest,
    DescribeConfigsResource,
    DescribeConfigsResourceResult,
    DescribeConfigsResponse,
    DescribeConfigsResult,
    DescribeConfigsSynonym,
)

if TYPE_CHECKING:
    from broker_stub.node import Node


def handle(
    node: Node, request: DescribeConfigsRequest, context: RequestContext
) -> DescribeConfigsResponse:
    """Describe the configuration of each resource."""

    def describe(resource: DescribeConfigsResource) -> DescribeConfigsResult:
        try:
            entries = _entries(node, resource)
        except BrokerResponseError as error:
            return _failed(resource, error)
        wanted = resource.configuration_keys
        return DescribeConfigsResult(
            resource_type=resource.resource_type,
            resource_name=resource.resource_name,
            configs=[
                _shown(entry, request)
                for entry in entries
                # Null means all; so does an empty list, which kafka-python sends.
                if not wanted or entry.name in wanted
            ],
        )

    return DescribeConfigsResponse(results=[describe(one) for one in request.resources])


def refuse(request: DescribeConfigsRequest, error: BrokerResponseError) -> DescribeConfigsResponse:
    return DescribeConfigsResponse(results=[_failed(one, error) for one in request.resources])


def _entries(node: Node, resource: DescribeConfigsResource) -> list[ConfigEntry]:
    name = resource.resource_name
    check_resource(resource.resource_type, name, node.image, node.node_id, altering=False)
    if resource.resource_type == TOPIC_RESOURCE:
        return topic_entries(node.config, node.image.topic_config(name))
    return broker_entries(node.config) if name else default_broker_entries(node.config)


def _shown(entry: ConfigEntry, request: DescribeConfigsRequest) -> DescribeConfigsResourceResult:
    synonyms = entry.synonyms if request.include_synonyms else ()
    return DescribeConfigsResourceResult(
        name=entry.name,
        value=entry.value,
        read_only=entry.read_only,
        config_source=entry.source,
        is_sensitive=entry.sensitive,
        synonyms=[
            DescribeConfigsSynonym(name=one.name, value=one.value, source=one.source)
            for one in synonyms
        ],
        config_type=entry.wire_type,
        documentation=entry.documentation if request.include_documentation else None,
    )


def _failed(resource: DescribeConfigsResource, error: BrokerResponseError) -> DescribeConfigsResult:
    is_unknown = isinstance(error, UnknownTopicOrPartitionError)
    return DescribeConfigsResult(
        error_code=error.code,
        # Without a message, as in Apache Kafka: clients have their own for this code.
        error_message="" if is_unknown else message_of(error),
        resource_type=resource.resource_type,
        resource_name=resource.resource_name,
    )
