"""SaslHandshake (API key 17): client and broker agree on a SASL mechanism.

After version 0 the tokens follow as bare length-prefixed bytes; after version 1 they travel in
SaslAuthenticate.
"""

from pyclient.protocol.primitives import INT16, STRING
from pyclient.protocol.schema import Message, array, field


class SaslHandshakeRequest(Message, api_key=17, versions="0-1", flexible="none"):
    """Choose a SASL mechanism."""

    mechanism: str = field(STRING)


class SaslHandshakeResponse(Message, api_key=17, versions="0-1", flexible="none"):
    """Whether the mechanism will do, and which ones would."""

    error_code: int = field(INT16)
    mechanisms: list[str] = field(array(STRING))
