"""What a newcomer meets first: each mistake ends in one clear message, of the right class."""

import socket
from collections.abc import Iterator
from typing import Any

import pytest

import spark_connector
from broker_stub import Broker
from pyclient import KafkaAdminClient, KafkaConsumer, KafkaProducer
from pyclient.clock import SystemClock
from pyclient.errors import (
    KafkaConfigurationError,
    KafkaTimeoutError,
    NoBrokersAvailable,
    RecordTooLargeError,
)
from pyclient.timers import Deadline


@pytest.fixture
def closed_port() -> Iterator[int]:
    """A port without a listener, reserved for the test."""
    with socket.socket() as taken:
        taken.bind(("127.0.0.1", 0))
        yield taken.getsockname()[1]


@pytest.fixture
def strict_broker() -> Iterator[Broker]:
    """A broker that does not create topics automatically."""
    with Broker(config={"auto.create.topics.enable": "false"}) as broker:
        yield broker


@pytest.mark.parametrize("client", [KafkaProducer, KafkaConsumer])
def test_no_broker_at_the_address_names_the_address_and_what_to_check(
    client: type, closed_port: int
) -> None:
    with pytest.raises(NoBrokersAvailable) as raised:
        client(bootstrap_servers=f"127.0.0.1:{closed_port}", bootstrap_timeout_ms=500)
    message = str(raised.value)
    assert f"127.0.0.1:{closed_port}" in message
    assert "connection refused" in message
    assert "is the broker running, and is the port right?" in message


def test_a_misspelt_option_gets_the_nearest_name() -> None:
    with pytest.raises(KafkaConfigurationError, match="did you mean 'linger_ms'"):
        KafkaProducer(bootstrap_servers="127.0.0.1:1", lingerms=5)  # type: ignore[call-arg]
    with pytest.raises(KafkaConfigurationError, match=r"did you mean 'auto\.offset\.reset'"):
        KafkaConsumer(bootstrap_servers="127.0.0.1:1", **{"auto.offset.rest": "earliest"})


def test_sending_to_a_topic_that_does_not_exist_says_so(strict_broker: Broker) -> None:
    servers = strict_broker.bootstrap_servers
    with (
        KafkaProducer(bootstrap_servers=servers, max_block_ms=300) as producer,
        pytest.raises(KafkaTimeoutError) as raised,
    ):
        producer.send("missing", b"value").get(10)
    assert "topic 'missing'" in str(raised.value)
    assert "does not exist" in str(raised.value)
    assert "create the topic" in str(raised.value)


def test_reading_a_topic_that_does_not_exist_is_not_silent(
    strict_broker: Broker, caplog: pytest.LogCaptureFixture
) -> None:
    with KafkaConsumer(
        "missing", bootstrap_servers=strict_broker.bootstrap_servers, group_id="g"
    ) as consumer:
        deadline = Deadline(SystemClock(), 10_000)
        while "topic 'missing' cannot be read yet" not in caplog.text:
            assert consumer.poll(timeout_ms=100) == {}
            assert not deadline.expired, "it said nothing"


def test_a_record_too_large_for_the_client_fails_at_once_with_both_sizes(
    kafka_broker: Broker,
) -> None:
    with (
        KafkaProducer(bootstrap_servers=kafka_broker.bootstrap_servers) as producer,
        pytest.raises(RecordTooLargeError) as raised,
    ):
        producer.send("topic", bytes(2_000_000))
    assert raised.value.size is not None
    assert raised.value.size > 2_000_000
    assert raised.value.limit == 1_048_576
    assert "max.request.size" in str(raised.value)


def test_a_record_too_large_for_its_topic_fails_its_future_and_names_the_option(
    kafka_broker: Broker,
) -> None:
    kafka_broker.create_topic("small", config={"max.message.bytes": "2000"})
    with KafkaProducer(bootstrap_servers=kafka_broker.bootstrap_servers) as producer:
        future = producer.send("small", bytes(3000))
        with pytest.raises(RecordTooLargeError, match=r"max\.message\.bytes"):
            future.get(20)


def test_spark_without_java_says_what_to_install(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.delenv("JAVA_HOME", raising=False)
    monkeypatch.setenv("PATH", "")
    with pytest.raises(spark_connector.MissingJavaError, match="openjdk-17-jre-headless"):
        spark_connector.require_java()


def test_a_java_home_without_java_is_named(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("JAVA_HOME", "/nowhere")
    with pytest.raises(spark_connector.MissingJavaError, match="JAVA_HOME is /nowhere"):
        spark_connector.require_java()


@pytest.mark.parametrize("name", ["key", "value"])
def test_a_serializer_that_fails_is_named(kafka_broker: Broker, name: str) -> None:
    options: dict[str, Any] = {f"{name}_serializer": str.encode}
    other = {"key": "value", "value": "key"}[name]
    with (
        KafkaProducer(bootstrap_servers=kafka_broker.bootstrap_servers, **options) as producer,
        pytest.raises(TypeError) as raised,  # as with kafka-python: the serializer's own error
    ):
        producer.send("orders", **{other: b"x"})
    (note,) = raised.value.__notes__
    assert note == f"{name}_serializer failed; the {name} of the record for 'orders' is None"


def test_an_address_stands_in_an_error_once(kafka_broker: Broker) -> None:
    servers = kafka_broker.bootstrap_servers
    with KafkaAdminClient(bootstrap_servers=servers, default_api_timeout_ms=500) as admin:
        admin.list_topics()
        kafka_broker.kill()
        with pytest.raises(KafkaTimeoutError) as raised:
            admin.list_topics()
    assert str(raised.value).count(servers) == 1
