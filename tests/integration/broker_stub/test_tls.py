"""Listeners with TLS: handshakes that fail, stall or are nonsense, and what clients are told."""

import gc
import os
import shutil
import socket
import ssl
import threading
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest

from broker_stub import Broker
from broker_stub.net.tls_connection import HANDSHAKE_MAX_MS
from broker_stub.testing.tls import TlsCertificates
from pyclient import KafkaAdminClient, KafkaConsumer, KafkaProducer
from pyclient.clock import ManualClock
from pyclient.errors import KafkaConfigurationError, NoBrokersAvailable
from pyclient.protocol.messages.api_versions import ApiVersionsRequest
from pyclient.protocol.messages.describe_configs import (
    DescribeConfigsRequest,
    DescribeConfigsResource,
)
from tests.integration.broker_stub.raw_client import RawClient
from tests.support import tls_files

BROKER = 4
VALUES = [os.urandom(100_000) for _ in range(30)]


@pytest.fixture
def certificates(kafka_tls_certificates: TlsCertificates) -> TlsCertificates:
    return kafka_tls_certificates


@pytest.fixture
def broker(kafka_tls_broker: Broker) -> Broker:
    return kafka_tls_broker


@pytest.fixture
def strict(certificates: TlsCertificates) -> Iterator[Broker]:
    """A broker whose clients need a certificate."""
    with Broker(config={**certificates.broker_config, "ssl.client.auth": "required"}) as broker:
        yield broker


def round_trip(broker: Broker, options: dict[str, Any]) -> None:
    """Create a topic, write to it and read it, with all three clients."""
    common = {"bootstrap_servers": broker.bootstrap_servers, **options}
    with KafkaAdminClient(**common) as admin:
        admin.create_topics({"orders": {"num_partitions": 3}})
    with KafkaProducer(**common) as producer:
        futures = [producer.send("orders", value) for value in VALUES]
        assert all(future.get(20).offset >= 0 for future in futures)
    with KafkaConsumer(
        "orders", group_id="g", auto_offset_reset="earliest", consumer_timeout_ms=20_000, **common
    ) as consumer:
        found = [record.value for _, record in zip(VALUES, consumer, strict=False)]
    assert sorted(found) == sorted(VALUES)


def failure(broker: Broker, options: dict[str, Any], timeout_ms: int = 60_000) -> str:
    with pytest.raises(NoBrokersAvailable) as raised:
        KafkaProducer(
            bootstrap_servers=broker.bootstrap_servers, bootstrap_timeout_ms=timeout_ms, **options
        )
    assert broker.bootstrap_servers in str(raised.value)
    return str(raised.value)


def test_all_clients_work_over_tls(broker, certificates):
    round_trip(broker, certificates.client_options)


@pytest.mark.parametrize("protocol", ["TLSv1.2", "TLSv1.3"])
def test_all_clients_work_with_a_certificate_of_their_own(strict, certificates, protocol):
    options = certificates.client_options_with_certificate
    round_trip(strict, {**options, "ssl.enabled.protocols": protocol})


def test_a_client_without_a_certificate_is_refused_where_one_is_required(strict, certificates):
    assert "the broker wants a client certificate" in failure(strict, certificates.client_options)


def test_a_strangers_certificate_is_refused_even_where_none_is_needed(certificates, tmp_path):
    stranger = TlsCertificates(tmp_path)
    config = {**certificates.broker_config, "ssl.client.auth": "requested"}
    with Broker(config=config) as broker:
        round_trip(broker, certificates.client_options)
        told = failure(
            broker, {**certificates.client_options, "ssl_certfile": stranger.client_file}
        )
    assert "the broker rejects the client's certificate" in told


def test_an_address_without_tls_is_told_apart(certificates, kafka_broker):
    told = failure(kafka_broker, certificates.client_options, timeout_ms=300)
    assert "disconnected during the TLS handshake: is it a listener with TLS?" in told


def test_a_client_without_tls_is_told_so(broker):
    told = failure(broker, {}, timeout_ms=300)
    assert "security_protocol" in told


def test_listeners_with_and_without_tls_stand_side_by_side(certificates):
    config = {
        **certificates.broker_config,
        "listeners": "PLAINTEXT://127.0.0.1:0,INTERNAL://127.0.0.1:0",
        "listener.security.protocol.map": "PLAINTEXT:PLAINTEXT,INTERNAL:SSL",
        "listener.name.internal.ssl.client.auth": "required",
    }
    with Broker(config=config) as broker:
        plain, internal = broker.listeners.values()
        with KafkaProducer(bootstrap_servers=plain) as producer:
            producer.send("orders", b"one").get(20)
        options = certificates.client_options_with_certificate
        with KafkaConsumer(
            "orders", bootstrap_servers=internal, auto_offset_reset="earliest", **options
        ) as consumer:
            assert next(iter(consumer)).value == b"one"
            assert [
                one.port for one in consumer._core.engine.metadata.snapshot.brokers.values()
            ] == [int(internal.rpartition(":")[2])]


def test_an_ipv6_address_is_a_name_in_the_certificate_too(certificates):
    with Broker(config={**certificates.broker_config, "listeners": "SSL://[::1]:0"}) as broker:
        assert broker.bootstrap_servers.startswith("[::1]:")
        round_trip(broker, certificates.client_options)


def hello() -> bytes:
    """The beginning of a handshake, as a client sends it."""
    incoming, outgoing = ssl.MemoryBIO(), ssl.MemoryBIO()
    client = ssl.create_default_context().wrap_bio(incoming, outgoing, server_hostname="localhost")
    with pytest.raises(ssl.SSLWantReadError):
        client.do_handshake()
    return outgoing.read()


@pytest.mark.parametrize("sent", [0, 1, 100, None])
def test_a_handshake_that_stalls_ends_in_time_and_holds_nobody_up(certificates, sent):
    clock = ManualClock()
    with Broker(config=certificates.broker_config, clock=clock) as broker:
        tls = ssl.create_default_context(cafile=certificates.ca_file)
        with socket.create_connection(("127.0.0.1", broker.port)) as stalled:
            stalled.settimeout(20)
            stalled.sendall(hello()[:sent])
            with RawClient(broker.port, tls=tls) as client:
                assert client.ask(ApiVersionsRequest(), 0).error_code == 0
                clock.advance(HANDSHAKE_MAX_MS)
                while stalled.recv(65_536):
                    pass  # the broker's side of the handshake, then the end
                assert client.ask(ApiVersionsRequest(), 0).error_code == 0


@pytest.mark.parametrize(
    "sent", [b"GET / HTTP/1.1\r\n\r\n", b"\0\0\0\x0a\0\x12\0\0\0\0\0\x01\xff\xff", bytes(4096)]
)
def test_nonsense_in_place_of_a_handshake_is_hung_up_on_at_once(broker, certificates, sent):
    tls = ssl.create_default_context(cafile=certificates.ca_file)
    with RawClient(broker.port) as bad, RawClient(broker.port, tls=tls) as good:
        bad.socket.sendall(sent)
        with pytest.raises(ConnectionError):
            bad.read(1 << 20)  # perhaps an alert, then the end
        assert good.ask(ApiVersionsRequest(), 0).error_code == 0


def test_handshakes_leave_no_socket_and_no_thread_behind(certificates, tmp_path):
    stranger = TlsCertificates(tmp_path).client_options
    gc.collect()  # what earlier tests left to it is not ours to count
    files, threads = open_files(), threading.active_count()
    with Broker(config=certificates.broker_config) as broker:
        for _ in range(10):
            failure(broker, stranger)
            KafkaAdminClient(
                bootstrap_servers=broker.bootstrap_servers, **certificates.client_options
            ).close()
            with socket.create_connection(("127.0.0.1", broker.port)) as garbage:
                garbage.sendall(b"GET / HTTP/1.1\r\n\r\n")
    gc.collect()
    # Fewer is no leak: something of an earlier test may have come to its end meanwhile.
    assert open_files() <= files
    assert threading.active_count() <= threads


def open_files() -> int:
    return len(os.listdir("/proc/self/fd"))


def test_a_renewed_certificate_is_read_at_the_next_start(certificates, tmp_path):
    file = tmp_path / "broker.pem"
    shutil.copy(tls_files.expired(certificates), file)
    config = {**certificates.broker_config, "ssl.keystore.location": str(file)}
    with Broker(config=config) as broker:
        assert "has expired" in failure(broker, certificates.client_options)
        shutil.copy(certificates.broker_file, file)
        broker.restart()
        round_trip(broker, certificates.client_options)


def test_certificate_and_key_may_be_text_and_the_key_encrypted(certificates, tmp_path):
    text = Path(tls_files.encrypted(certificates.broker_file, tmp_path)).read_text()
    at = text.index("-----BEGIN CERTIFICATE")
    config = {
        "listeners": "SSL://127.0.0.1:0",
        "ssl.keystore.type": "PEM",
        "ssl.keystore.certificate.chain": text[at:],
        "ssl.keystore.key": text[:at],
        "ssl.key.password": tls_files.PASSWORD,
    }
    with Broker(config=config) as broker:
        round_trip(broker, certificates.client_options)
        with KafkaAdminClient(
            bootstrap_servers=broker.bootstrap_servers, **certificates.client_options
        ):
            pass
        tls = ssl.create_default_context(cafile=certificates.ca_file)
        resource = DescribeConfigsResource(
            resource_type=BROKER, resource_name="1", configuration_keys=None
        )
        with RawClient(broker.port, tls=tls) as client:
            request = DescribeConfigsRequest(resources=[resource], include_synonyms=True)
            (result,) = client.ask(request, 4).results
    shown = {entry.name: entry for entry in result.configs}
    assert tls_files.PASSWORD not in repr(result)
    assert "PRIVATE KEY" not in repr(result)
    assert shown["ssl.key.password"].is_sensitive
    assert shown["ssl.key.password"].value is None
    assert not shown["ssl.keystore.type"].is_sensitive


@pytest.mark.parametrize(
    ("changes", "told"),
    [
        ({"ssl.keystore.location": None}, "a listener with TLS needs a certificate"),
        ({"ssl.keystore.location": "/no/such.pem"}, "ssl.keystore.location (/no/such.pem): the fi"),
        ({"ssl.keystore.type": "JKS"}, "ssl.keystore.type is JKS, but only PEM is supported"),
        ({"ssl.truststore.location": "/no/such.pem"}, "ssl.truststore.location (/no/such.pem)"),
        ({"ssl.client.auth": "perhaps"}, "one of none, requested, required"),
        ({"listeners": "SASL_SSL://127.0.0.1:0"}, "SASL_SSL is not supported"),
    ],
)
def test_what_is_wrong_with_the_options_is_said_when_the_broker_is_made(
    certificates, changes, told
):
    with pytest.raises(KafkaConfigurationError) as raised:
        Broker(config={**certificates.broker_config, **changes})
    assert told in str(raised.value)
