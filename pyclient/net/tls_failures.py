"""What OpenSSL says of a failed handshake, in words that help: the cause and the remedy.

Imported only where TLS is used.
"""

from __future__ import annotations

import ssl
from collections.abc import Mapping
from typing import Final

from pyclient.net.tls import TlsSettings

# OpenSSL's X509_V_ERR_ codes that have a remedy of their own.
_NOT_YET_VALID: Final = 9
_EXPIRED: Final = 10
_CRL_EXPIRED: Final = 12
_REVOKED: Final = 23
_NO_CRL: Final = 3
_UNTRUSTED: Final = frozenset({18, 19, 20, 21, 24, 26})
_OTHER_HOST: Final = frozenset({62, 64})

_NOT_TLS: Final = frozenset(
    {
        "WRONG_VERSION_NUMBER",
        "PACKET_LENGTH_TOO_LONG",
        "RECORD_LAYER_FAILURE",
        "UNEXPECTED_MESSAGE",
        "UNKNOWN_PROTOCOL",
        "HTTP_REQUEST",
    }
)
_VERSION: Final = frozenset(
    {
        "UNSUPPORTED_PROTOCOL",
        "TLSV1_ALERT_PROTOCOL_VERSION",
        "TLSV1_ALERT_INAPPROPRIATE_FALLBACK",
        "NO_PROTOCOLS_AVAILABLE",
        "VERSION_TOO_LOW",
        "INAPPROPRIATE_FALLBACK",
    }
)
_CERTIFICATE_REQUIRED: Final = "TLSV13_ALERT_CERTIFICATE_REQUIRED"
_NO_COMMON_GROUND: Final = frozenset({"SSLV3_ALERT_HANDSHAKE_FAILURE", "NO_SHARED_CIPHER"})
_REFUSED_BECAUSE: Final[Mapping[str, str]] = {
    "TLSV1_ALERT_UNKNOWN_CA": "it does not trust the authority that signed it",
    "SSLV3_ALERT_BAD_CERTIFICATE": "it finds it bad",
    "SSLV3_ALERT_CERTIFICATE_EXPIRED": "it has expired",
    "SSLV3_ALERT_CERTIFICATE_REVOKED": "it is revoked",
    "SSLV3_ALERT_CERTIFICATE_UNKNOWN": "it does not know it",
    "SSLV3_ALERT_UNSUPPORTED_CERTIFICATE": "it is of an unsupported kind",
    "TLSV1_ALERT_ACCESS_DENIED": "it denies access",
    "TLSV1_ALERT_DECRYPT_ERROR": "its signature is wrong",
}


def explain(error: ssl.SSLError, tls: TlsSettings) -> str:
    """Why the handshake failed, and what to do about it."""
    if isinstance(error, ssl.SSLCertVerificationError):
        return _bad_certificate(error, tls)
    reason = error.reason or str(error)
    if reason in _NOT_TLS:
        return (
            "the other side does not speak TLS: is it a listener of protocol SSL, and the port"
            " right? A listener without TLS needs security_protocol PLAINTEXT"
        )
    if reason in _VERSION:
        return (
            f"no version of TLS in common ({reason}): make ssl.enabled.protocols of client and"
            " broker overlap"
        )
    if reason == _CERTIFICATE_REQUIRED or reason in _REFUSED_BECAUSE:
        return _client_certificate(reason, tls)
    if reason in _NO_COMMON_GROUND:
        missing = "" if tls.has_certificate else " or it wants a client certificate (ssl_certfile)"
        return (
            f"the broker refuses the handshake ({reason}): it has no cipher in common"
            f" (ssl_ciphers){missing}"
        )
    return f"the handshake failed ({reason})"


def _bad_certificate(error: ssl.SSLCertVerificationError, tls: TlsSettings) -> str:
    code, message = error.verify_code, error.verify_message
    if code in _OTHER_HOST:
        return (
            f"the broker's certificate is for another host ({message.rstrip('.').lower()}):"
            " connect by a name that is in it, or have it issued for this one;"
            " ssl_check_hostname=False turns the check off"
        )
    if code == _EXPIRED:
        return "the broker's certificate has expired: have it renewed (or is the clock here wrong?)"
    if code == _NOT_YET_VALID:
        return "the broker's certificate is not valid yet: is the clock here, or there, wrong?"
    if code == _REVOKED:
        return "the broker's certificate is revoked (ssl_crlfile): have it replaced"
    if code in (_NO_CRL, _CRL_EXPIRED):
        return (
            f"whether the broker's certificate is revoked cannot be told ({message}):"
            " ssl_crlfile needs a current list of the authority that signed it"
        )
    if code in _UNTRUSTED:
        return (
            f"the broker's certificate is not trusted ({message}), trusted is what"
            f" {tls.trusts} has: name the certificate of its authority in ssl_cafile"
        )
    return f"the broker's certificate is refused ({message}): have it replaced"


def _client_certificate(reason: str, tls: TlsSettings) -> str:
    if reason == _CERTIFICATE_REQUIRED or tls.has_certificate is False:
        return (
            "the broker wants a client certificate, and none was sent: name one in ssl_certfile"
            " and ssl_keyfile, of an authority that the broker trusts"
        )
    return (
        f"the broker refuses the client's certificate: {_REFUSED_BECAUSE[reason]}."
        " Use one in ssl_certfile that its ssl.truststore leads to"
    )
