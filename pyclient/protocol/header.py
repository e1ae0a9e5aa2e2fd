"""Request and response headers, and which version of them goes with a message."""

from pyclient.protocol.primitives import INT16, INT32, STRING
from pyclient.protocol.schema import Message, field

_API_VERSIONS = 18


class RequestHeader(Message, versions="1-2", flexible="2+", prefix=True):
    """The header of every request."""

    request_api_key: int = field(INT16)
    request_api_version: int = field(INT16)
    correlation_id: int = field(INT32)
    # Not compact even in the flexible header: a broker must be able to read the client id
    # of a request whose version it does not know.
    client_id: str | None = field(STRING, versions="1+", nullable="1+", flexible="none")


class ResponseHeader(Message, versions="0-1", flexible="1+", prefix=True):
    """The header of every response."""

    correlation_id: int = field(INT32)


def request_header_version(request: type[Message], version: int) -> int:
    """The header version of a request."""
    return 2 if version in request.flexible else 1


def response_header_version(response: type[Message], version: int) -> int:
    """The header version of a response.

    ApiVersions responses always have version 0: the client does not know yet which versions the
    broker supports, and must be able to read the response in any case.
    """
    return 1 if version in response.flexible and response.api_key != _API_VERSIONS else 0
