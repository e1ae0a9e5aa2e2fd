"""A client's TLS options, made into an `ssl.SSLContext` once, when the client is created.

Imported only where `security.protocol` is SSL, so that other clients do not load `ssl`.
"""

import ssl
from collections.abc import Mapping
from typing import Any, Final, NamedTuple

from pyclient.config.tls import tls_options_given
from pyclient.errors import KafkaConfigurationError
from pyclient.net.pem import Pem, load_identity, load_revocations, load_trust, set_versions

_CONTEXT: Final = "ssl.context"


class TlsSettings(NamedTuple):
    """What all TLS connections of a client have in common.

    Attributes:
        trusts: where the trusted authorities are from, for messages.
        has_certificate: whether the client has one of its own; None if only the context knows.
    """

    context: ssl.SSLContext
    trusts: str
    has_certificate: bool | None


def tls_settings(config: Mapping[str, Any]) -> TlsSettings:
    """Read the files that the options name.

    Raises:
        KafkaConfigurationError: a file cannot be read or used, or options contradict each other.
    """
    if config[_CONTEXT] is not None:
        return _given(config)
    context = ssl.SSLContext(ssl.PROTOCOL_TLS_CLIENT)
    set_versions(context, config["ssl.enabled.protocols"])
    context.check_hostname = (
        config["ssl.check.hostname"] and config["ssl.endpoint.identification.algorithm"] == "https"
    )
    if config["ssl.ciphers"] is not None:
        try:
            context.set_ciphers(config["ssl.ciphers"])
        except ssl.SSLError:
            raise KafkaConfigurationError(
                f"ssl_ciphers cannot be {config['ssl.ciphers']!r}: OpenSSL knows no such cipher",
                key="ssl.ciphers",
                value=config["ssl.ciphers"],
            ) from None
    trusted = _one_of(config, "ssl.cafile", "ssl.truststore.certificates")
    if trusted is None:
        context.load_default_certs()
    else:
        load_trust(context, trusted)
    if config["ssl.crlfile"] is not None:
        load_revocations(context, Pem("ssl_crlfile", config["ssl.crlfile"]))
    has_certificate = _load_identity(context, config)
    return TlsSettings(context, str(trusted or "the system"), has_certificate)


def _given(config: Mapping[str, Any]) -> TlsSettings:
    """The settings for a context of the program; other TLS options are refused."""
    context: ssl.SSLContext = config[_CONTEXT]
    for name in tls_options_given(config):
        agrees = name == "ssl.check.hostname" and config[name] == context.check_hostname
        if name != _CONTEXT and not agrees:
            raise KafkaConfigurationError(
                f"{_spelt(name)} contradicts ssl_context: set it up in the context", key=name
            )
    return TlsSettings(context, "ssl_context", None)


def _load_identity(context: ssl.SSLContext, config: Mapping[str, Any]) -> bool:
    chain = _one_of(config, "ssl.certfile", "ssl.keystore.certificate.chain")
    if chain is None:
        for name in ("ssl.keyfile", "ssl.keystore.key", "ssl.password"):
            if config[name] is not None:
                raise KafkaConfigurationError(
                    f"{_spelt(name)} needs ssl_certfile: there is no certificate", key=name
                )
        return False
    key = chain
    if chain.path is None:
        if config["ssl.keystore.key"] is None:
            raise chain.error("it needs ssl.keystore.key, the private key")
        key = Pem("ssl.keystore.key", text=str(config["ssl.keystore.key"].reveal()))
    elif config["ssl.keyfile"] is not None:
        key = Pem("ssl_keyfile", config["ssl.keyfile"])
    load_identity(context, chain, key, config["ssl.password"], "ssl_password")
    return True


def _one_of(config: Mapping[str, Any], path: str, text: str) -> Pem | None:
    """The source that is given, of an option that names a file and one that holds the text."""
    if config[path] is not None and config[text] is not None:
        raise KafkaConfigurationError(
            f"{_spelt(path)} and {text} mean the same: set only one of them", key=path
        )
    if config[path] is not None:
        return Pem(_spelt(path), config[path])
    return None if config[text] is None else Pem(text, text=config[text])


def _spelt(name: str) -> str:
    return name.replace(".", "_")
