"""DescribeCluster (API key 60), versions 0-2.

The brokers as clients of this listener reach them. Controllers (endpoint type 2) have no
listener of their own here: UNSUPPORTED_ENDPOINT_TYPE.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Final

from broker_stub.handlers._errors import message_of
from broker_stub.request import RequestContext
from pyclient.error_codes import BrokerResponseError, UnsupportedEndpointTypeError
from pyclient.protocol.messages.describe_cluster import (
    DescribeClusterBroker,
    DescribeClusterRequest,
    DescribeClusterResponse,
)

if TYPE_CHECKING:
    from broker_stub.node import Node

_BROKERS: Final = 1


def handle(
    node: Node, request: DescribeClusterRequest, context: RequestContext
) -> DescribeClusterResponse:
    """Describe the cluster."""
    if request.endpoint_type != _BROKERS:
        raise UnsupportedEndpointTypeError("only brokers have endpoints here")
    return DescribeClusterResponse(
        cluster_id=node.cluster_id,
        controller_id=node.node_id,
        brokers=[
            DescribeClusterBroker(
                broker_id=broker.broker_id, host=endpoint.host, port=endpoint.port, rack=broker.rack
            )
            for broker, endpoint in node.brokers(context.connection.listener)
        ],
    )


def refuse(request: DescribeClusterRequest, error: BrokerResponseError) -> DescribeClusterResponse:
    """Fail."""
    return DescribeClusterResponse(
        error_code=error.code,
        error_message=message_of(error),
        endpoint_type=request.endpoint_type,
    )
