"""The broker's TLS options, by Kafka's names. A listener may have its own values:
`listener.name.internal.ssl.client.auth` overrides `ssl.client.auth` for INTERNAL.

Only tables; `net/tls.py` makes contexts of the values.
"""

from typing import Final

from pyclient.config.definition import SECRET, ConfigKey, Rule, one_of

_VERSIONS: Final = ("TLSv1.2", "TLSv1.3")

TLS_ROWS: Final = (
    ConfigKey(
        "ssl.client.auth",
        str,
        "none",
        one_of("none", "requested", "required"),
        "Whether a client certificate is required, requested, or not asked for.",
    ),
    ConfigKey(
        "ssl.enabled.protocols",
        list,
        list(_VERSIONS),
        Rule(
            f"of {', '.join(_VERSIONS)}", lambda value: bool(value) and set(value) <= set(_VERSIONS)
        ),
        "The TLS versions that are accepted.",
    ),
    ConfigKey(
        "ssl.key.password",
        SECRET,
        None,
        None,
        "The password of the private key.",
    ),
    ConfigKey(
        "ssl.keystore.certificate.chain",
        SECRET,
        None,
        None,
        "The broker's certificate chain, as PEM text.",
    ),
    ConfigKey("ssl.keystore.key", SECRET, None, None, "The broker's private key, as PEM text."),
    ConfigKey(
        "ssl.keystore.location",
        str,
        None,
        None,
        "A PEM file with the broker's private key and certificate chain.",
    ),
    ConfigKey(
        "ssl.keystore.type",
        str,
        "JKS",
        None,
        "The format of the key store; must be PEM for a listener with TLS.",
    ),
    ConfigKey(
        "ssl.truststore.certificates",
        SECRET,
        None,
        None,
        "The CA certificates that client certificates are verified with, as PEM text.",
    ),
    ConfigKey(
        "ssl.truststore.location",
        str,
        None,
        None,
        "A PEM file with the CA certificates that client certificates are verified with.",
    ),
    ConfigKey(
        "ssl.truststore.type",
        str,
        "JKS",
        None,
        "The format of the trust store; must be PEM if there is one.",
    ),
)
TLS_NAMES: Final = frozenset(row.name for row in TLS_ROWS)
