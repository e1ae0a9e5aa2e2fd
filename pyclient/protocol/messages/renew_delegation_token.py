"""RenewDelegationToken (API key 39): prolong a delegation token."""

from pyclient.protocol.primitives import BYTES, INT16, INT32, INT64
from pyclient.protocol.schema import Message, field


class RenewDelegationTokenRequest(Message, api_key=39, versions="1-2", flexible="2+"):
    """Renew a delegation token."""

    hmac: bytes = field(BYTES)
    renew_period_ms: int = field(INT64)


class RenewDelegationTokenResponse(Message, api_key=39, versions="1-2", flexible="2+"):
    """When the token expires now."""

    error_code: int = field(INT16)
    expiry_timestamp_ms: int = field(INT64)
    throttle_time_ms: int = field(INT32)
