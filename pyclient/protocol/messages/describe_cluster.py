"""DescribeCluster (API key 60): the cluster's id, controller and brokers."""

from pyclient.protocol.primitives import BOOL, INT8, INT16, INT32, STRING
from pyclient.protocol.schema import Message, Struct, array, field


class DescribeClusterRequest(Message, api_key=60, versions="0-2", flexible="0+"):
    include_cluster_authorized_operations: bool = field(BOOL)
    endpoint_type: int = field(INT8, versions="1+", default=1)  # 1 brokers, 2 controllers
    include_fenced_brokers: bool = field(BOOL, versions="2+")


class DescribeClusterBroker(Struct):
    """A broker or controller and its address."""

    broker_id: int = field(INT32)
    host: str = field(STRING)
    port: int = field(INT32)
    rack: str | None = field(STRING, nullable="0+", default=None)
    is_fenced: bool = field(BOOL, versions="2+")


class DescribeClusterResponse(Message, api_key=60, versions="0-2", flexible="0+"):
    """The cluster and its nodes."""

    throttle_time_ms: int = field(INT32)
    error_code: int = field(INT16)
    error_message: str | None = field(STRING, nullable="0+", default=None)
    endpoint_type: int = field(INT8, versions="1+", default=1)  # 1 brokers, 2 controllers
    cluster_id: str = field(STRING)
    controller_id: int = field(INT32, default=-1)
    brokers: list[DescribeClusterBroker] = field(array(DescribeClusterBroker))
    cluster_authorized_operations: int = field(INT32, default=-(2**31))
