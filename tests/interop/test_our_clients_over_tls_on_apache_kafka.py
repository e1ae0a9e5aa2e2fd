"""Our producer, consumer and admin client on Apache Kafka 4.3 over TLS."""

import ssl
from typing import Any

import pytest

from broker_stub.testing.tls import TlsCertificates
from pyclient import KafkaAdminClient, KafkaConsumer, KafkaProducer
from pyclient.errors import NoBrokersAvailable
from tests.interop.apache_kafka import ApacheKafka

VALUES = [b"%d" % index * 3_000 for index in range(200)]


def round_trip(topic: str, **options: Any) -> None:
    with KafkaAdminClient(**options) as admin:
        admin.create_topics({topic: {"num_partitions": 2, "replication_factor": 1}})
    with KafkaProducer(**options, compression_type="lz4") as producer:
        futures = [producer.send(topic, value) for value in VALUES]
        assert all(future.get(30).offset >= 0 for future in futures)
    settings = {"group_id": topic, "auto_offset_reset": "earliest", "consumer_timeout_ms": 30_000}
    with KafkaConsumer(topic, **settings, **options) as consumer:
        found = [record.value for _, record in zip(VALUES, consumer, strict=False)]
    assert sorted(found) == sorted(VALUES)


def failure(servers: str, **options: Any) -> str:
    with pytest.raises(NoBrokersAvailable) as raised:
        KafkaProducer(bootstrap_servers=servers, **options)
    return str(raised.value)


@pytest.mark.parametrize("version", ["TLSv1.2", "TLSv1.3"])
def test_all_clients_work(apache: ApacheKafka, kafka_tls_certificates, version):
    options = {**kafka_tls_certificates.client_options, "ssl.enabled.protocols": version}
    round_trip(f"tls-{version}", bootstrap_servers=apache.tls_servers, **options)


@pytest.mark.parametrize("version", ["TLSv1.2", "TLSv1.3"])
def test_all_clients_work_with_a_certificate_of_their_own(
    apache: ApacheKafka, kafka_tls_certificates, version
):
    options = kafka_tls_certificates.client_options_with_certificate
    options["ssl.enabled.protocols"] = version
    round_trip(f"strict-{version}", bootstrap_servers=apache.strict_tls_servers, **options)


def test_a_context_of_the_programs_own_works(apache: ApacheKafka, kafka_tls_certificates):
    context = ssl.create_default_context(cafile=kafka_tls_certificates.ca_file)
    options = {"security_protocol": "SSL", "ssl_context": context}
    round_trip("context", bootstrap_servers=apache.tls_servers, **options)


@pytest.mark.parametrize("version", ["TLSv1.2", "TLSv1.3"])
def test_a_missing_certificate_is_told(apache: ApacheKafka, kafka_tls_certificates, version):
    options = {**kafka_tls_certificates.client_options, "ssl.enabled.protocols": version}
    told = failure(apache.strict_tls_servers, **options)
    assert "the broker wants a client certificate, and none was sent" in told


def test_a_strangers_certificate_is_told(apache: ApacheKafka, kafka_tls_certificates, tmp_path):
    stranger = TlsCertificates(tmp_path)
    options = {**kafka_tls_certificates.client_options, "ssl_certfile": stranger.client_file}
    told = failure(apache.strict_tls_servers, **options)
    assert "the broker rejects the client's certificate" in told


def test_a_broker_of_another_authority_is_told(apache: ApacheKafka, tmp_path):
    told = failure(apache.tls_servers, **TlsCertificates(tmp_path).client_options)
    assert "the broker's certificate is not trusted" in told


def test_ports_with_and_without_tls_are_told_apart(apache: ApacheKafka, kafka_tls_certificates):
    options = {**kafka_tls_certificates.client_options, "bootstrap_timeout_ms": 500}
    assert "is it a listener with TLS?" in failure(apache.bootstrap_servers, **options)
    told = failure(apache.tls_servers, bootstrap_timeout_ms=500)
    assert "security_protocol" in told
