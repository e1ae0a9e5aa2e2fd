"""IncrementalAlterConfigs (API key 44): change single configuration entries."""

from pyclient.protocol.messages.alter_configs import AlterConfigsResourceResponse
from pyclient.protocol.primitives import BOOL, INT8, INT32, STRING
from pyclient.protocol.schema import Message, Struct, array, field


class AlterableConfig(Struct):
    name: str = field(STRING)
    config_operation: int = field(INT8)  # 0 set, 1 delete, 2 append, 3 subtract
    value: str | None = field(STRING, nullable="0+")


class AlterConfigsResource(Struct):
    # 2 topic, 4 broker, 8 broker logger, 16 client metrics, 32 group
    resource_type: int = field(INT8)
    resource_name: str = field(STRING)
    configs: list[AlterableConfig] = field(array(AlterableConfig))


class IncrementalAlterConfigsRequest(Message, api_key=44, versions="0-1", flexible="1+"):
    """Set, delete, append to or subtract from configuration entries."""

    resources: list[AlterConfigsResource] = field(array(AlterConfigsResource))
    validate_only: bool = field(BOOL)


class IncrementalAlterConfigsResponse(Message, api_key=44, versions="0-1", flexible="1+"):
    """Which resources were changed."""

    throttle_time_ms: int = field(INT32)
    responses: list[AlterConfigsResourceResponse] = field(array(AlterConfigsResourceResponse))
