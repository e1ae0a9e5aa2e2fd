"""The TLS options of all clients: kafka-python's `ssl_*`, and Java's for PEM files.

Rows only; `pyclient.net.tls` applies them and checks contradictions.
"""

import os
from collections.abc import Mapping
from typing import Any

from pyclient.config.definition import SECRET, ConfigKey, ConfigType, RefusedKey, Rule

PLAINTEXT = "PLAINTEXT"
SSL = "SSL"


def _to_protocol(value: Any) -> str:
    return str(value).upper()


def _to_path(value: Any) -> str:
    path = os.fspath(value)
    if not isinstance(path, str) or not path:
        raise ValueError(value)
    return path


def _to_context(value: Any) -> Any:
    # By what it can do: the module `ssl` is not imported before TLS is used.
    if not callable(getattr(value, "wrap_socket", None)):
        raise ValueError(value)
    return value


PATH = ConfigType("the path of a file", _to_path)
CONTEXT = ConfigType("an ssl.SSLContext", _to_context)
PROTOCOLS = Rule(
    "of TLSv1.2, TLSv1.3", lambda value: bool(value) and set(value) <= {"TLSv1.2", "TLSv1.3"}
)

TLS_KEYS = (
    ConfigKey(
        "security.protocol",
        ConfigType("a string", _to_protocol),
        PLAINTEXT,
        Rule(
            "one of PLAINTEXT, SSL: SASL is not supported yet",
            lambda value: value in (PLAINTEXT, SSL),
        ),
        "The protocol of the brokers' listener; SSL means TLS. The options below need SSL.",
    ),
    ConfigKey(
        "ssl.context",
        CONTEXT,
        None,
        None,
        "A configured context, instead of all other `ssl.` options.",
    ),
    ConfigKey(
        "ssl.check.hostname",
        bool,
        True,
        None,
        "Whether a broker's certificate must match the host name.",
    ),
    ConfigKey(
        "ssl.endpoint.identification.algorithm",
        str,
        "https",
        Rule("https or empty", lambda value: value in ("https", "")),
        "Java's name for the same: an empty value turns the host name check off.",
    ),
    ConfigKey(
        "ssl.cafile",
        PATH,
        None,
        None,
        "The CA certificates to trust, in PEM. Default: the system's.",
        aliases=("ssl.truststore.location",),
    ),
    ConfigKey(
        "ssl.truststore.certificates",
        str,
        None,
        None,
        "The CA certificates to trust, as PEM text.",
    ),
    ConfigKey(
        "ssl.certfile",
        PATH,
        None,
        None,
        "This client's certificate chain, in PEM; also its private key, unless `ssl.keyfile` is"
        " given.",
        aliases=("ssl.keystore.location",),
    ),
    ConfigKey("ssl.keyfile", PATH, None, None, "The private key of `ssl.certfile`, in PEM."),
    ConfigKey(
        "ssl.keystore.certificate.chain",
        str,
        None,
        None,
        "This client's certificate chain, as PEM text.",
    ),
    ConfigKey(
        "ssl.keystore.key",
        SECRET,
        None,
        None,
        "The private key of `ssl.keystore.certificate.chain`, as PEM text.",
    ),
    ConfigKey(
        "ssl.password",
        SECRET,
        None,
        None,
        "The password of the private key.",
        aliases=("ssl.key.password",),
    ),
    ConfigKey(
        "ssl.crlfile",
        PATH,
        None,
        None,
        "A certificate revocation list, in PEM. A broker with a revoked certificate is rejected.",
    ),
    ConfigKey(
        "ssl.ciphers",
        str,
        None,
        None,
        "The ciphers for TLS 1.2, in OpenSSL's notation. It does not affect TLS 1.3.",
    ),
    ConfigKey(
        "ssl.enabled.protocols",
        list,
        ["TLSv1.2", "TLSv1.3"],
        PROTOCOLS,
        "The TLS versions to accept.",
    ),
)

_STORE_PASSWORD = "PEM files have no store password; ssl.password is for the private key"

_OTHER_STORES = "only PEM is supported; docs/security.md shows how to convert other stores"

TLS_REFUSED = (
    RefusedKey("ssl.truststore.type", _OTHER_STORES, (None, "PEM")),
    RefusedKey("ssl.keystore.type", _OTHER_STORES, (None, "PEM")),
    RefusedKey("ssl.truststore.password", _STORE_PASSWORD),
    RefusedKey("ssl.keystore.password", _STORE_PASSWORD),
    RefusedKey("ssl.protocol", "use ssl.enabled.protocols", (None, "TLS", "TLSv1.3")),
    RefusedKey("ssl.cipher.suites", "use ssl.ciphers, in OpenSSL's notation"),
    RefusedKey("ssl.provider", "OpenSSL is the only provider"),
)


def tls_options_given(config: Mapping[str, Any]) -> list[str]:
    """The TLS options that are not at their defaults."""
    rows = [row for row in TLS_KEYS if row.name != "security.protocol"]
    return [row.name for row in rows if config[row.name] != row.default]
