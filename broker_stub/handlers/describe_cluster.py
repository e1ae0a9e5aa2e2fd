"""DescribeCluster (API key 60), versions 0-2.

Lists the brokers with the addresses of the client's listener. Controllers (endpoint type 2) have
no listener here: MISMATCHED_ENDPOINT_TYPE.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

from broker_stub.handlers._errors import message_of
from broker_stub.handlers._operations import CLUSTER_OPERATIONS, NOT_ASKED_FOR
from broker_stub.request import RequestContext
from pyclient.error_codes import (
    BrokerResponseError,
    MismatchedEndpointTypeError,
    UnsupportedEndpointTypeError,
)
from pyclient.protocol.messages.describe_cluster import (
    DescribeClusterBroker,
    DescribeClusterRequest,
    DescribeClusterResponse,
)

if TYPE_CHECKING:
    from broker_stub.node import Node

_BROKERS, _CONTROLLERS = 1, 2


def handle(
    node: Node, request: DescribeClusterRequest, context: RequestContext
) -> DescribeClusterResponse:
    if request.endpoint_type == _CONTROLLERS:
        raise MismatchedEndpointTypeError(
            "The request was sent to an endpoint of type BROKER, but we wanted an endpoint of type "
            "CONTROLLER"
        )
    if request.endpoint_type != _BROKERS:
        raise UnsupportedEndpointTypeError(f"Unsupported endpoint type {request.endpoint_type}")
    asks_for_operations = request.include_cluster_authorized_operations
    return DescribeClusterResponse(
        cluster_id=node.cluster_id,
        controller_id=node.node_id,
        brokers=[
            DescribeClusterBroker(
                broker_id=broker.broker_id, host=endpoint.host, port=endpoint.port, rack=broker.rack
            )
            for broker, endpoint in node.brokers(context.connection.listener)
        ],
        cluster_authorized_operations=CLUSTER_OPERATIONS if asks_for_operations else NOT_ASKED_FOR,
    )


def refuse(request: DescribeClusterRequest, error: BrokerResponseError) -> DescribeClusterResponse:
    return DescribeClusterResponse(error_code=error.code, error_message=message_of(error))
