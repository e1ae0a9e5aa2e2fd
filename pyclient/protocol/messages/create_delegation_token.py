"""CreateDelegationToken (API key 38): make a delegation token."""

from pyclient.protocol.primitives import BYTES, INT16, INT32, INT64, STRING
from pyclient.protocol.schema import Message, Struct, array, field


class CreatableRenewers(Struct):
    """A principal that may renew the token."""

    principal_type: str = field(STRING)
    principal_name: str = field(STRING)


class CreateDelegationTokenRequest(Message, api_key=38, versions="1-3", flexible="2+"):
    """Create a delegation token."""

    owner_principal_type: str | None = field(STRING, versions="3+", nullable="3+")
    owner_principal_name: str | None = field(STRING, versions="3+", nullable="3+")
    renewers: list[CreatableRenewers] = field(array(CreatableRenewers))
    max_lifetime_ms: int = field(INT64)


class CreateDelegationTokenResponse(Message, api_key=38, versions="1-3", flexible="2+"):
    """The token that was made."""

    error_code: int = field(INT16)
    principal_type: str = field(STRING)
    principal_name: str = field(STRING)
    token_requester_principal_type: str = field(STRING, versions="3+")
    token_requester_principal_name: str = field(STRING, versions="3+")
    issue_timestamp_ms: int = field(INT64)
    expiry_timestamp_ms: int = field(INT64)
    max_timestamp_ms: int = field(INT64)
    token_id: str = field(STRING)
    hmac: bytes = field(BYTES)
    throttle_time_ms: int = field(INT32)
