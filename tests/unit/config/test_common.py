"""The options that all clients share, and that every option of the peers is known."""

import selectors
from types import ModuleType
from typing import Any

import kafka
import pytest

from pyclient.config import admin, consumer, producer
from pyclient.config.common import addresses
from pyclient.errors import KafkaConfigurationError

PEERS: list[tuple[ModuleType, Any]] = [
    (producer, kafka.KafkaProducer),
    (consumer, kafka.KafkaConsumer),
    (admin, kafka.KafkaAdminClient),
]

OF_KAFKA_PYTHON_2 = {
    producer: {
        "buffer_memory",
        "api_version_auto_timeout_ms",
        "sock_chunk_bytes",
        "sock_chunk_buffer_count",
        "socks5_proxy",
    },
    consumer: {
        "api_version_auto_timeout_ms",
        "sock_chunk_bytes",
        "sock_chunk_buffer_count",
        "socks5_proxy",
        "legacy_iterator",
    },
    admin: {"api_version_auto_timeout_ms", "sock_chunk_bytes", "sock_chunk_buffer_count"},
}

# Objects of kafka-python's own; a program that passes them wants what ours does by default.
OBJECTS_OF_KAFKA_PYTHON = {"selector", "kafka_client", "partition_assignment_strategy"}


@pytest.mark.parametrize(("ours", "theirs"), PEERS, ids=lambda each: each.__name__)
def test_every_option_of_kafka_python_is_known_and_takes_its_default(
    ours: ModuleType, theirs: Any
) -> None:
    defaults = {
        name: value
        for name, value in theirs.DEFAULT_CONFIG.items()
        if name not in OBJECTS_OF_KAFKA_PYTHON
    }
    ours.parse(defaults)
    known = {*ours.DEFINITION.keys, *ours.DEFINITION.refused}
    aliases = {alias for key in ours.DEFINITION.keys.values() for alias in key.aliases}
    for name in {*theirs.DEFAULT_CONFIG, *OF_KAFKA_PYTHON_2[ours]}:
        assert name.replace("_", ".") in known | aliases


@pytest.mark.parametrize(("ours", "_"), PEERS, ids=lambda each: each.__name__)
@pytest.mark.parametrize(
    ("option", "value", "reason"),
    [
        ("selector", selectors.DefaultSelector, "its own I/O loop"),
        ("kafka_client", object, "its own I/O loop"),
        ("proxy_url", "socks5://proxy", "directly"),
        ("socks5_proxy", "socks5://proxy", "directly"),
        ("ssl_truststore_password", "secret", "PEM files have no store password"),
        ("sasl_mechanism", "PLAIN", "SASL is not supported yet"),
        ("sasl_plain_password", "secret", "SASL is not supported yet"),
    ],
)
def test_what_does_not_exist_is_refused_by_name_with_the_reason(
    ours: ModuleType, _: Any, option: str, value: object, reason: str
) -> None:
    with pytest.raises(KafkaConfigurationError, match=f"{option!r} is not supported: .*{reason}"):
        ours.parse({option: value})


@pytest.mark.parametrize(
    ("given", "expected"),
    [
        ("localhost", [("localhost", 9092)]),
        ("a:1,b:2", [("a", 1), ("b", 2)]),
        ("a:1, b", [("a", 1), ("b", 9092)]),
        (["a:1", "b:2"], [("a", 1), ("b", 2)]),
        ("[::1]:9093", [("::1", 9093)]),
        ("[::1]", [("::1", 9092)]),
        ("::1", [("::1", 9092)]),
        ("PLAINTEXT://a:1", [("a", 1)]),
    ],
)
def test_bootstrap_servers_are_read_as_hosts_and_ports(
    given: object, expected: list[tuple[str, int]]
) -> None:
    servers = admin.parse({"bootstrap_servers": given})["bootstrap.servers"]
    assert servers == given  # as kafka-python's programs read it
    assert list(addresses(servers)) == expected


@pytest.mark.parametrize(
    "given",
    [
        "",
        "a:b",
        "a:0",
        "a:70000",
        ":9092",
        "a:1,,b:2",
        "[::1",
        "[::1]x",
        [],
        9092,
        None,
        b"a:1",
        [("a", 1)],
        "http://a:1",
    ],
)
def test_bootstrap_servers_that_are_no_addresses_are_refused(given: object) -> None:
    with pytest.raises(KafkaConfigurationError, match=r"bootstrap_servers.*'host:port'"):
        admin.parse({"bootstrap_servers": given})


@pytest.mark.parametrize(
    ("given", "expected"),
    [((2, 8), (2, 8)), ([0, 10, 1], (0, 10, 1)), ("auto", None), (None, None)],
)
def test_api_version_takes_what_kafka_python_takes(given: object, expected: object) -> None:
    assert admin.parse({"api_version": given})["api.version"] == expected


def test_socket_options_are_arguments_of_setsockopt() -> None:
    assert admin.parse({"socket_options": [[6, 1, 1]]})["socket.options"] == ((6, 1, 1),)
    for wrong in ([(6, 1)], [("SOL_TCP", 1, 1)], [(6, 1, 1.5)], 6, [None]):
        with pytest.raises(KafkaConfigurationError, match="arguments for setsockopt"):
            admin.parse({"socket_options": wrong})
