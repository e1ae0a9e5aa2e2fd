"""Clients that share no code with us, with TLS and certificates, on `python -m broker_stub`."""

from collections.abc import Iterator

import pytest

from broker_stub.testing.tls import TlsCertificates
from tests.interop.aiokafka_client import Aiokafka
from tests.interop.apache_kafka import run_tool
from tests.interop.confluent_client import Confluent
from tests.interop.foreign_clients import ForeignClient
from tests.interop.foreign_records import Record
from tests.interop.kafka_python_client import KafkaPython
from tests.support.server_process import ServerProcess


@pytest.fixture(scope="module")
def bootstrap(kafka_tls_certificates: TlsCertificates) -> Iterator[str]:
    config = {**kafka_tls_certificates.broker_config, "ssl.client.auth": "required"}
    with ServerProcess(*(f"--config={key}={value}" for key, value in config.items())) as running:
        yield running.bootstrap_servers


def kafka_python(certificates: TlsCertificates) -> ForeignClient:
    return KafkaPython(**certificates.client_options_with_certificate)


def confluent(certificates: TlsCertificates) -> ForeignClient:
    return Confluent(
        **{
            "security.protocol": "ssl",
            "ssl.ca.location": certificates.ca_file,
            "ssl.certificate.location": certificates.client_file,
            "ssl.key.location": certificates.client_file,
        }
    )


def aiokafka(certificates: TlsCertificates) -> ForeignClient:
    from aiokafka.helpers import create_ssl_context

    context = create_ssl_context(
        cafile=certificates.ca_file,
        certfile=certificates.client_file,
        keyfile=certificates.client_file,
    )
    return Aiokafka(security_protocol="SSL", ssl_context=context)


def test_javas_own_client_is_served(kafka_jars, bootstrap, kafka_tls_certificates, tmp_path):
    record = Record(0, None, b"value", (), 1_700_000_000_000)
    confluent(kafka_tls_certificates).produce(bootstrap, "for-java", [record])
    stores = {"truststore": kafka_tls_certificates.ca_file}
    stores["keystore"] = kafka_tls_certificates.client_file
    lines = [f"ssl.{name}.type=PEM\nssl.{name}.location={file}" for name, file in stores.items()]
    options = tmp_path / "client.properties"
    options.write_text("\n".join(["security.protocol=SSL", *lines]))
    where = ["--bootstrap-server", bootstrap, "--command-config", str(options)]
    shown = run_tool("org.apache.kafka.tools.TopicCommand", [*where, "--list"])
    assert "for-java" in shown.split()


@pytest.mark.parametrize(
    "new_client", [kafka_python, confluent, aiokafka], ids=lambda one: one.__name__
)
def test_what_is_written_is_read(bootstrap, kafka_tls_certificates, new_client):
    client = new_client(kafka_tls_certificates)
    topic = new_client.__name__
    sent = [Record(0, b"%d" % index, bytes(50_000), (), 1_700_000_000_000) for index in range(40)]
    assert client.produce(bootstrap, topic, sent) == list(range(40))
    found = client.consume(bootstrap, topic, 1, len(sent))
    assert found == {0: sent}
