"""The broker's options of TLS, by Kafka's names. A listener may have values of its own:
`listener.name.internal.ssl.client.auth` goes before `ssl.client.auth` for INTERNAL.

Tables only; `tls` makes contexts of them.
"""

from __future__ import annotations

from typing import Final

from pyclient.config.definition import SECRET, ConfigKey, Rule, one_of

_VERSIONS: Final = ("TLSv1.2", "TLSv1.3")

TLS_ROWS: Final = (
    ConfigKey(
        "ssl.client.auth",
        str,
        "none",
        one_of("none", "requested", "required"),
        "Whether clients must have a certificate that the trust store leads to, or may.",
    ),
    ConfigKey(
        "ssl.enabled.protocols",
        list,
        list(_VERSIONS),
        Rule(
            f"of {', '.join(_VERSIONS)}", lambda value: bool(value) and set(value) <= set(_VERSIONS)
        ),
        "The versions of TLS that may be spoken.",
    ),
    ConfigKey(
        "ssl.key.password",
        SECRET,
        None,
        None,
        "The password that the private key is encrypted with.",
    ),
    ConfigKey(
        "ssl.keystore.certificate.chain",
        SECRET,
        None,
        None,
        "The broker's certificate and those that lead up to its authority, as PEM text.",
    ),
    ConfigKey("ssl.keystore.key", SECRET, None, None, "The broker's private key, as PEM text."),
    ConfigKey(
        "ssl.keystore.location",
        str,
        None,
        None,
        "A PEM file with the broker's private key, its certificate and those that lead up to its"
        " authority.",
    ),
    ConfigKey(
        "ssl.keystore.type",
        str,
        "JKS",
        None,
        "The format of certificate and key: a listener with TLS needs PEM here.",
    ),
    ConfigKey(
        "ssl.truststore.certificates",
        SECRET,
        None,
        None,
        "The certificates of the authorities that clients' certificates are from, as PEM text.",
    ),
    ConfigKey(
        "ssl.truststore.location",
        str,
        None,
        None,
        "A PEM file with the certificates of the authorities that clients' certificates are from.",
    ),
    ConfigKey(
        "ssl.truststore.type",
        str,
        "JKS",
        None,
        "The format of the trust store: PEM, if there is one.",
    ),
)
TLS_NAMES: Final = frozenset(row.name for row in TLS_ROWS)
