"""Explains a failed TLS handshake: the cause that OpenSSL gives, and the remedy.

Imported only where TLS is used.
"""

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
    "TLSV1_ALERT_UNKNOWN_CA": "it does not trust the CA that signed it",
    "SSLV3_ALERT_BAD_CERTIFICATE": "it is damaged or not valid",
    "SSLV3_ALERT_CERTIFICATE_EXPIRED": "it has expired",
    "SSLV3_ALERT_CERTIFICATE_REVOKED": "it is revoked",
    "SSLV3_ALERT_CERTIFICATE_UNKNOWN": "it was not accepted",
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
            "the other side does not speak TLS: is the port right, and the listener's protocol"
            " SSL? A listener without TLS needs security_protocol PLAINTEXT"
        )
    if reason in _VERSION:
        return (
            f"no TLS version in common ({reason}): ssl.enabled.protocols of client and broker"
            " must overlap"
        )
    if reason == _CERTIFICATE_REQUIRED or reason in _REFUSED_BECAUSE:
        return _client_certificate(reason, tls)
    if reason in _NO_COMMON_GROUND:
        missing = "" if tls.has_certificate else " or it wants a client certificate (ssl_certfile)"
        return (
            f"the broker rejects the handshake ({reason}): it has no cipher in common"
            f" (ssl_ciphers){missing}"
        )
    return f"the handshake failed ({reason})"


def _bad_certificate(error: ssl.SSLCertVerificationError, tls: TlsSettings) -> str:
    code, message = error.verify_code, error.verify_message
    if code in _OTHER_HOST:
        return (
            f"the broker's certificate is for another host ({message.rstrip('.').lower()}):"
            " connect by a name in the certificate, or reissue it for this host;"
            " ssl_check_hostname=False turns the check off"
        )
    if code == _EXPIRED:
        return "the broker's certificate has expired: renew it, or correct this machine's clock"
    if code == _NOT_YET_VALID:
        return "the broker's certificate is not valid yet: check the clocks of both machines"
    if code == _REVOKED:
        return "the broker's certificate is revoked (ssl_crlfile): replace it"
    if code in (_NO_CRL, _CRL_EXPIRED):
        return (
            f"the broker's certificate cannot be checked for revocation ({message}):"
            " ssl_crlfile needs a current list of the CA that signed it"
        )
    if code in _UNTRUSTED:
        return (
            f"the broker's certificate is not trusted ({message}); only the CAs of {tls.trusts}"
            " are. Pass the broker's CA in ssl_cafile"
        )
    return f"the broker's certificate is rejected ({message}): replace it"


def _client_certificate(reason: str, tls: TlsSettings) -> str:
    if reason == _CERTIFICATE_REQUIRED or tls.has_certificate is False:
        return (
            "the broker wants a client certificate, and none was sent: pass one in ssl_certfile"
            " and ssl_keyfile, signed by a CA that the broker trusts"
        )
    return (
        f"the broker rejects the client's certificate: {_REFUSED_BECAUSE[reason]}."
        " Pass one in ssl_certfile that is signed by a CA in its ssl.truststore"
    )
