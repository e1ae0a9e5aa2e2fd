"""Makes a listener's TLS context of its `ssl.` options. Imported only if one speaks TLS."""

import ssl
from collections.abc import Mapping
from typing import Any, Final

from pyclient.config.definition import Secret
from pyclient.errors import KafkaConfigurationError
from pyclient.net.pem import Pem, load_identity, load_trust, set_versions

_CLIENT_AUTH: Final = {
    "none": ssl.CERT_NONE,
    "requested": ssl.CERT_OPTIONAL,
    "required": ssl.CERT_REQUIRED,
}
_PASSWORD: Final = "ssl.key.password"


def server_context(options: Mapping[str, Any]) -> ssl.SSLContext:
    """Make the context; reads the files that the options name.

    Raises:
        KafkaConfigurationError: a file cannot be read or used, or something is missing.
    """
    context = ssl.SSLContext(ssl.PROTOCOL_TLS_SERVER)
    set_versions(context, options["ssl.enabled.protocols"])
    context.verify_mode = _CLIENT_AUTH[options["ssl.client.auth"]]
    _load_identity(context, options)
    trusted = _source(
        options, "ssl.truststore.type", "ssl.truststore.location", "ssl.truststore.certificates"
    )
    if trusted is not None:
        load_trust(context, trusted)
    elif context.verify_mode is not ssl.CERT_NONE:
        context.load_default_certs(ssl.Purpose.CLIENT_AUTH)  # the system's CAs, as in Java
    return context


def _load_identity(context: ssl.SSLContext, options: Mapping[str, Any]) -> None:
    chain = _source(
        options, "ssl.keystore.type", "ssl.keystore.location", "ssl.keystore.certificate.chain"
    )
    if chain is None:
        raise KafkaConfigurationError(
            "a listener with TLS needs a certificate: set ssl.keystore.location to a PEM file"
            " and ssl.keystore.type=PEM",
            key="ssl.keystore.location",
        )
    key = chain
    if chain.path is None:
        if options["ssl.keystore.key"] is None:
            raise chain.error("it needs ssl.keystore.key, the private key")
        key = Pem("ssl.keystore.key", text=_revealed(options["ssl.keystore.key"]))
    load_identity(context, chain, key, options[_PASSWORD], _PASSWORD)


def _source(options: Mapping[str, Any], kind: str, path: str, text: str) -> Pem | None:
    """A key or trust store: from a file, or from the text of an option."""
    if options[path] is None and options[text] is None:
        return None
    if options[path] is not None and options[text] is not None:
        raise KafkaConfigurationError(f"set {path} or {text}, but not both", key=path)
    if options[kind] != "PEM":
        raise KafkaConfigurationError(
            f"{kind} is {options[kind]}, but only PEM is supported: convert the store"
            " (see docs/security.md) and set it to PEM",
            key=kind,
            value=options[kind],
        )
    if options[path] is not None:
        return Pem(path, options[path])
    return Pem(text, text=_revealed(options[text]))


def _revealed(secret: Secret) -> str:
    value = secret.reveal()
    return value if isinstance(value, str) else value.decode("latin-1")
