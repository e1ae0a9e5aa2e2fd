"""ListConfigResources (API key 74), versions 0-1.

Lists brokers and topics, the only resources that have a configuration here. Client metrics (all
that version 0 can list), groups and broker loggers have none. Other types: UNSUPPORTED_VERSION.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Final

from broker_stub.metadata.image import BROKER_RESOURCE, TOPIC_RESOURCE
from broker_stub.request import RequestContext
from pyclient.error_codes import BrokerResponseError, UnsupportedVersionError
from pyclient.protocol.messages.list_config_resources import (
    ConfigResource,
    ListConfigResourcesRequest,
    ListConfigResourcesResponse,
)

if TYPE_CHECKING:
    from broker_stub.node import Node

_BROKER_LOGGER, _CLIENT_METRICS, _GROUP = 8, 16, 32
_TYPES: Final = frozenset(
    {TOPIC_RESOURCE, BROKER_RESOURCE, _BROKER_LOGGER, _CLIENT_METRICS, _GROUP}
)


def handle(
    node: Node, request: ListConfigResourcesRequest, context: RequestContext
) -> ListConfigResourcesResponse:
    asked = set(request.resource_types) if context.api_version else {_CLIENT_METRICS}
    if not asked <= _TYPES:
        raise UnsupportedVersionError()
    asked = asked or set(_TYPES)
    names = {
        BROKER_RESOURCE: [str(broker_id) for broker_id in node.image.brokers],
        TOPIC_RESOURCE: [topic.name for topic in node.image.topics()],
    }
    return ListConfigResourcesResponse(
        config_resources=[
            ConfigResource(resource_name=name, resource_type=kind)
            for kind, found in names.items()
            if kind in asked
            for name in found
        ]
    )


def refuse(
    request: ListConfigResourcesRequest, error: BrokerResponseError
) -> ListConfigResourcesResponse:
    return ListConfigResourcesResponse(error_code=error.code)
