"""The options of TLS that all clients share: kafka-python's `ssl_*`, and Java's for PEM files.

Only rows: what is made of them, and what contradicts what, is in `pyclient.net.tls`.
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
            "one of PLAINTEXT, SSL: SASL is not there yet", lambda value: value in (PLAINTEXT, SSL)
        ),
        "What the brokers' listener speaks: SSL is TLS. The options below need SSL.",
    ),
    ConfigKey(
        "ssl.context",
        CONTEXT,
        None,
        None,
        "A context that is set up already, in place of all other `ssl.` options.",
    ),
    ConfigKey(
        "ssl.check.hostname",
        bool,
        True,
        None,
        "Whether a broker's certificate must be for the host that was connected to.",
    ),
    ConfigKey(
        "ssl.endpoint.identification.algorithm",
        str,
        "https",
        Rule("https or empty", lambda value: value in ("https", "")),
        "Java's way to say the same: empty turns the check of the host off.",
    ),
    ConfigKey(
        "ssl.cafile",
        PATH,
        None,
        None,
        "The certificates of the authorities to trust, in PEM. Default: those of the system.",
        aliases=("ssl.truststore.location",),
    ),
    ConfigKey(
        "ssl.truststore.certificates",
        str,
        None,
        None,
        "The same as PEM text, in place of a file.",
    ),
    ConfigKey(
        "ssl.certfile",
        PATH,
        None,
        None,
        "This client's certificate, then those that lead up to its authority, in PEM; its private"
        " key too, unless `ssl.keyfile` has it.",
        aliases=("ssl.keystore.location",),
    ),
    ConfigKey("ssl.keyfile", PATH, None, None, "The private key of `ssl.certfile`, in PEM."),
    ConfigKey(
        "ssl.keystore.certificate.chain",
        str,
        None,
        None,
        "This client's certificate and those that lead up to its authority, as PEM text.",
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
        "The password that the private key is encrypted with.",
        aliases=("ssl.key.password",),
    ),
    ConfigKey(
        "ssl.crlfile",
        PATH,
        None,
        None,
        "A list of revoked certificates, in PEM: a broker with one of them is refused.",
    ),
    ConfigKey(
        "ssl.ciphers",
        str,
        None,
        None,
        "The ciphers for TLS 1.2, in OpenSSL's notation. Those of TLS 1.3 are all good.",
    ),
    ConfigKey(
        "ssl.enabled.protocols",
        list,
        ["TLSv1.2", "TLSv1.3"],
        PROTOCOLS,
        "The versions of TLS that may be spoken.",
    ),
)

_STORE_PASSWORD = "PEM files have no password of their own: ssl.password is the private key's"

_OTHER_STORES = "certificates and keys are in PEM; docs/security.md converts other stores"

TLS_REFUSED = (
    RefusedKey("ssl.truststore.type", _OTHER_STORES, (None, "PEM")),
    RefusedKey("ssl.keystore.type", _OTHER_STORES, (None, "PEM")),
    RefusedKey("ssl.truststore.password", _STORE_PASSWORD),
    RefusedKey("ssl.keystore.password", _STORE_PASSWORD),
    RefusedKey("ssl.protocol", "ssl.enabled.protocols says it", (None, "TLS", "TLSv1.3")),
    RefusedKey("ssl.cipher.suites", "ssl.ciphers says it, in OpenSSL's notation"),
    RefusedKey("ssl.provider", "OpenSSL is the only one"),
)


def tls_options_given(config: Mapping[str, Any]) -> list[str]:
    """The options that only TLS uses and that are not at their default."""
    rows = [row for row in TLS_KEYS if row.name != "security.protocol"]
    return [row.name for row in rows if config[row.name] != row.default]
