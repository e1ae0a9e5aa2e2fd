"""ExpireDelegationToken (API key 40): end a delegation token, now or at a time."""

from pyclient.protocol.primitives import BYTES, INT16, INT32, INT64
from pyclient.protocol.schema import Message, field


class ExpireDelegationTokenRequest(Message, api_key=40, versions="1-2", flexible="2+"):
    """Change when a delegation token expires; negative means at once."""

    hmac: bytes = field(BYTES)
    expiry_time_period_ms: int = field(INT64)


class ExpireDelegationTokenResponse(Message, api_key=40, versions="1-2", flexible="2+"):
    """When the token expires now."""

    error_code: int = field(INT16)
    expiry_timestamp_ms: int = field(INT64)
    throttle_time_ms: int = field(INT32)
