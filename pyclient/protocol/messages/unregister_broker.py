"""UnregisterBroker (API key 64): forget a broker."""

from pyclient.protocol.primitives import INT16, INT32, STRING
from pyclient.protocol.schema import Message, field


class UnregisterBrokerRequest(Message, api_key=64, versions="0", flexible="0+"):
    """Remove a broker's registration."""

    broker_id: int = field(INT32)


class UnregisterBrokerResponse(Message, api_key=64, versions="0", flexible="0+"):
    """Whether the registration was removed."""

    throttle_time_ms: int = field(INT32)
    error_code: int = field(INT16)
    error_message: str | None = field(STRING, nullable="0+")
