"""DescribeDelegationToken (API key 41): the delegation tokens of some owners."""

from pyclient.protocol.primitives import BYTES, INT16, INT32, INT64, STRING
from pyclient.protocol.schema import Message, Struct, array, field


class DescribeDelegationTokenOwner(Struct):
    """A principal whose tokens are wanted."""

    principal_type: str = field(STRING)
    principal_name: str = field(STRING)


class DescribeDelegationTokenRequest(Message, api_key=41, versions="1-3", flexible="2+"):
    """Describe delegation tokens; null owners for all."""

    owners: list[DescribeDelegationTokenOwner] | None = field(
        array(DescribeDelegationTokenOwner), nullable="0+"
    )


class DescribedDelegationTokenRenewer(Struct):
    """A principal that may renew the token."""

    principal_type: str = field(STRING)
    principal_name: str = field(STRING)


class DescribedDelegationToken(Struct):
    principal_type: str = field(STRING)
    principal_name: str = field(STRING)
    token_requester_principal_type: str = field(STRING, versions="3+")
    token_requester_principal_name: str = field(STRING, versions="3+")
    issue_timestamp: int = field(INT64)
    expiry_timestamp: int = field(INT64)
    max_timestamp: int = field(INT64)
    token_id: str = field(STRING)
    hmac: bytes = field(BYTES)
    renewers: list[DescribedDelegationTokenRenewer] = field(array(DescribedDelegationTokenRenewer))


class DescribeDelegationTokenResponse(Message, api_key=41, versions="1-3", flexible="2+"):
    """The tokens that were found."""

    error_code: int = field(INT16)
    tokens: list[DescribedDelegationToken] = field(array(DescribedDelegationToken))
    throttle_time_ms: int = field(INT32)
