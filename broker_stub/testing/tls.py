"""Certificates for tests: a CA, a broker's certificate, clients' certificates. Needs `trustme`.

    certificates = TlsCertificates(tmp_path)
    with Broker(config=certificates.broker_config) as broker:
        KafkaProducer(bootstrap_servers=broker.bootstrap_servers, **certificates.client_options)

The fixtures `kafka_tls_certificates` and `kafka_tls_broker` do the same.
"""

import os
from functools import cached_property
from pathlib import Path
from typing import Any, Final

_LOOPBACK: Final = ("localhost", "127.0.0.1", "::1")


class TlsCertificates:
    """A CA and the certificates it issues, as files in a directory.

    Attributes:
        authority: trustme's CA, to issue special certificates.
        ca_file: the CA's certificate, for `ssl_cafile` and `ssl.truststore.location`.
    """

    def __init__(self, folder: str | os.PathLike[str]) -> None:
        """Create the CA.

        Raises:
            ModuleNotFoundError: the package `trustme` is not installed.
        """
        try:
            import trustme
        except ModuleNotFoundError as error:
            raise ModuleNotFoundError(
                "certificates for tests are made by the package trustme:"
                " pip install 'kafka-pyclient[testing]'"
            ) from error
        self._folder = Path(folder)
        self.authority: Any = trustme.CA()
        self.ca_file = str(self._folder / "ca.pem")
        self.authority.cert_pem.write_to_path(self.ca_file)

    def issue(self, *names: str, file: str, **details: Any) -> str:
        """The path of a new PEM file with a certificate and its private key.

        Args:
            names: its hosts, addresses or, with an @, users.
            file: the file's name.
            details: arguments for trustme, such as `not_after=...` for an expired one.
        """
        from cryptography.hazmat.primitives import serialization  # comes with trustme

        issued = self.authority.issue_cert(*names, **details)
        key = serialization.load_pem_private_key(issued.private_key_pem.bytes(), None)
        text = key.private_bytes(
            serialization.Encoding.PEM,
            serialization.PrivateFormat.PKCS8,  # the one that Java reads
            serialization.NoEncryption(),
        )
        text += b"".join(one.bytes() for one in issued.cert_chain_pems)
        path = self._folder / file
        path.write_bytes(text)
        path.chmod(0o600)
        return str(path)

    @cached_property
    def broker_file(self) -> str:
        """The broker's certificate and key, for every name of the loopback interface."""
        return self.issue(*_LOOPBACK, file="broker.pem")

    @cached_property
    def client_file(self) -> str:
        """A client's certificate and key."""
        return self.issue("client@test.invalid", file="client.pem")

    @property
    def broker_config(self) -> dict[str, object]:
        """Options for a broker with one TLS listener, on a free loopback port."""
        return {
            "listeners": "SSL://127.0.0.1:0",
            "ssl.keystore.type": "PEM",
            "ssl.keystore.location": self.broker_file,
            "ssl.truststore.type": "PEM",
            "ssl.truststore.location": self.ca_file,
        }

    @property
    def client_options(self) -> dict[str, Any]:
        """Options for a client of that broker, without a client certificate."""
        return {"security_protocol": "SSL", "ssl_cafile": self.ca_file}

    @property
    def client_options_with_certificate(self) -> dict[str, Any]:
        """Options for a client with a certificate, for `ssl.client.auth=required`."""
        return {**self.client_options, "ssl_certfile": self.client_file}
