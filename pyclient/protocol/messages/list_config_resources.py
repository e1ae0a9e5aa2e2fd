"""ListConfigResources (API key 74): the resources that have configuration.

Version 0 knows client metrics only; it went by the name ListClientMetricsResources.
"""

from pyclient.protocol.primitives import INT8, INT16, INT32, STRING
from pyclient.protocol.schema import Message, Struct, array, field


class ListConfigResourcesRequest(Message, api_key=74, versions="0-1", flexible="0+"):
    """List resources with configuration; an empty filter means all types."""

    resource_types: list[int] = field(array(INT8), versions="1+")


class ConfigResource(Struct):
    resource_name: str = field(STRING)
    # 2 topic, 4 broker, 8 broker logger, 16 client metrics, 32 group
    resource_type: int = field(INT8, versions="1+", default=16, ignorable=True)


class ListConfigResourcesResponse(Message, api_key=74, versions="0-1", flexible="0+"):
    throttle_time_ms: int = field(INT32)
    error_code: int = field(INT16)
    config_resources: list[ConfigResource] = field(array(ConfigResource))
