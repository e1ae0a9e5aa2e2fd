"""Fixtures for foreign peers: Apache Kafka, one node for the whole session."""

import os
from collections.abc import Iterator

import pytest

from broker_stub.testing.tls import TlsCertificates
from tests.interop.apache_kafka import ApacheKafka, ApacheKafkaUnavailable, apache_kafka, jars


def pytest_collection_modifyitems(items: list[pytest.Item]) -> None:
    here = os.path.dirname(__file__)
    for item in items:
        if str(item.path).startswith(here):
            item.add_marker(pytest.mark.interop)


@pytest.fixture(scope="session")
def kafka_jars() -> None:
    """Skip, with the reason, where Apache Kafka can't be had; in CI that is a failure."""
    try:
        jars()
    except ApacheKafkaUnavailable as reason:
        if os.environ.get("CI"):
            raise
        pytest.skip(str(reason))


@pytest.fixture(scope="session")
def apache(
    kafka_jars: None,
    tmp_path_factory: pytest.TempPathFactory,
    kafka_tls_certificates: TlsCertificates,
) -> Iterator[ApacheKafka]:
    """Apache Kafka 4.3, one node, auto-creating topics of four partitions; TLS too."""
    folder = tmp_path_factory.mktemp("kafka")
    config = {"num.partitions": "4", "group.min.session.timeout.ms": "500"}
    with apache_kafka(folder, config, kafka_tls_certificates) as node:
        yield node
