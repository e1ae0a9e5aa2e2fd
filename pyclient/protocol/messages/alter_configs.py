"""AlterConfigs (API key 33): replace the whole configuration of resources.

What a request leaves out goes back to its default; IncrementalAlterConfigs changes single
entries instead.
"""

from pyclient.protocol.primitives import BOOL, INT8, INT16, INT32, STRING
from pyclient.protocol.schema import Message, Struct, array, field


class AlterableConfig(Struct):
    name: str = field(STRING)
    value: str | None = field(STRING, nullable="0+")


class AlterConfigsResource(Struct):
    # 2 topic, 4 broker, 8 broker logger, 16 client metrics, 32 group
    resource_type: int = field(INT8)
    resource_name: str = field(STRING)
    configs: list[AlterableConfig] = field(array(AlterableConfig))


class AlterConfigsRequest(Message, api_key=33, versions="0-2", flexible="2+"):
    """Replace the whole configuration of resources."""

    resources: list[AlterConfigsResource] = field(array(AlterConfigsResource))
    validate_only: bool = field(BOOL)


class AlterConfigsResourceResponse(Struct):
    error_code: int = field(INT16)
    error_message: str | None = field(STRING, nullable="0+")
    resource_type: int = field(INT8)
    resource_name: str = field(STRING)


class AlterConfigsResponse(Message, api_key=33, versions="0-2", flexible="2+"):
    """Which resources were changed."""

    throttle_time_ms: int = field(INT32)
    responses: list[AlterConfigsResourceResponse] = field(array(AlterConfigsResourceResponse))
