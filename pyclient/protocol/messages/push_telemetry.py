"""PushTelemetry (API key 72): a client's metrics."""

from pyclient.protocol.primitives import BOOL, BYTES, INT8, INT16, INT32, UUID, Uuid
from pyclient.protocol.schema import Message, field


class PushTelemetryRequest(Message, api_key=72, versions="0", flexible="0+"):
    """Push metrics, as OTLP bytes."""

    client_instance_id: Uuid = field(UUID)
    subscription_id: int = field(INT32)
    terminating: bool = field(BOOL)
    compression_type: int = field(INT8)  # as in a batch's attributes
    metrics: bytes = field(BYTES)


class PushTelemetryResponse(Message, api_key=72, versions="0", flexible="0+"):
    """Whether the metrics were taken."""

    throttle_time_ms: int = field(INT32)
    error_code: int = field(INT16)
