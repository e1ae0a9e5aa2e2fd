"""DescribeConfigs (API key 32): the configuration of topics, brokers and groups."""

from pyclient.protocol.primitives import BOOL, INT8, INT16, INT32, STRING
from pyclient.protocol.schema import Message, Struct, array, field


class DescribeConfigsResource(Struct):
    """A resource, and the keys wanted; null for all."""

    # 2 topic, 4 broker, 8 broker logger, 16 client metrics, 32 group
    resource_type: int = field(INT8)
    resource_name: str = field(STRING)
    configuration_keys: list[str] | None = field(array(STRING), nullable="0+")


class DescribeConfigsRequest(Message, api_key=32, versions="1-4", flexible="4+"):
    resources: list[DescribeConfigsResource] = field(array(DescribeConfigsResource))
    include_synonyms: bool = field(BOOL)
    include_documentation: bool = field(BOOL, versions="3+")


class DescribeConfigsSynonym(Struct):
    """Another place that sets the entry, strongest first."""

    name: str = field(STRING)
    value: str | None = field(STRING, nullable="0+")
    source: int = field(INT8)


class DescribeConfigsResourceResult(Struct):
    """A configuration entry and where it comes from."""

    name: str = field(STRING)
    value: str | None = field(STRING, nullable="0+")
    read_only: bool = field(BOOL)
    # 1 topic, 2 dynamic broker, 3 dynamic default broker, 4 static, 5 default
    config_source: int = field(INT8, default=-1)
    is_sensitive: bool = field(BOOL)
    synonyms: list[DescribeConfigsSynonym] = field(array(DescribeConfigsSynonym))
    config_type: int = field(INT8, versions="3+", ignorable=True)
    documentation: str | None = field(STRING, versions="3+", nullable="3+", ignorable=True)


class DescribeConfigsResult(Struct):
    error_code: int = field(INT16)
    error_message: str | None = field(STRING, nullable="0+")
    resource_type: int = field(INT8)  # as in the request
    resource_name: str = field(STRING)
    configs: list[DescribeConfigsResourceResult] = field(array(DescribeConfigsResourceResult))


class DescribeConfigsResponse(Message, api_key=32, versions="1-4", flexible="4+"):
    """The configuration that was asked for."""

    throttle_time_ms: int = field(INT32)
    results: list[DescribeConfigsResult] = field(array(DescribeConfigsResult))
