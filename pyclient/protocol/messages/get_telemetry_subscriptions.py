"""GetTelemetrySubscriptions (API key 71): which metrics a broker wants from a client."""

from pyclient.protocol.primitives import BOOL, INT8, INT16, INT32, STRING, UUID, Uuid
from pyclient.protocol.schema import Message, array, field


class GetTelemetrySubscriptionsRequest(Message, api_key=71, versions="0", flexible="0+"):
    """Ask which metrics to push; a zero id asks for an id too."""

    client_instance_id: Uuid = field(UUID)


class GetTelemetrySubscriptionsResponse(Message, api_key=71, versions="0", flexible="0+"):
    """What to push, how often and how."""

    throttle_time_ms: int = field(INT32)
    error_code: int = field(INT16)
    client_instance_id: Uuid = field(UUID)
    subscription_id: int = field(INT32)
    accepted_compression_types: list[int] = field(array(INT8))
    push_interval_ms: int = field(INT32)
    telemetry_max_bytes: int = field(INT32)
    delta_temporality: bool = field(BOOL)
    requested_metrics: list[str] = field(array(STRING))
