"""SaslAuthenticate (API key 36): one SASL token each way."""

from pyclient.protocol.primitives import BYTES, INT16, INT64, STRING
from pyclient.protocol.schema import Message, field


class SaslAuthenticateRequest(Message, api_key=36, versions="0-2", flexible="2+"):
    """The client's next SASL token."""

    auth_bytes: bytes = field(BYTES)


class SaslAuthenticateResponse(Message, api_key=36, versions="0-2", flexible="2+"):
    """The broker's next SASL token, and how long the session may last."""

    error_code: int = field(INT16)
    error_message: str | None = field(STRING, nullable="0+")
    auth_bytes: bytes = field(BYTES)
    session_lifetime_ms: int = field(INT64, versions="1+", ignorable=True)
