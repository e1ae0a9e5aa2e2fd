"""Listeners: where a broker listens, and what it tells clients."""

import os

import pytest

from broker_stub.config.broker_config import BrokerConfig
from broker_stub.config.listeners import Endpoint, Listener, configured_listeners
from pyclient.errors import KafkaConfigurationError

MAP = "INTERNAL:PLAINTEXT,EXTERNAL:PLAINTEXT,CONTROLLER:PLAINTEXT"


def listeners(text: str | None = None, **options: str) -> list[Listener]:
    given = {name.replace("_", "."): value for name, value in options.items()}
    if text is not None:
        given["listeners"] = text
    return configured_listeners(BrokerConfig(given), port=9092)


def refused(text: str | None = None, **options: str) -> str:
    with pytest.raises(KafkaConfigurationError) as raised:
        listeners(text, **options)
    return str(raised.value)


def test_without_options_there_is_one_on_the_loopback_address():
    (one,) = listeners()
    assert one.endpoint == Endpoint("PLAINTEXT", "127.0.0.1", 9092)


def test_several_have_names_in_capitals_and_addresses_of_their_own():
    internal, external = listeners(
        "internal://127.0.0.1:9093,EXTERNAL://[::1]:9094", listener_security_protocol_map=MAP
    )
    assert internal == Listener("INTERNAL", "127.0.0.1", 9093)
    assert external == Listener("EXTERNAL", "::1", 9094)


def test_clients_are_told_the_advertised_address():
    internal, external = listeners(
        "INTERNAL://127.0.0.1:9093,EXTERNAL://0.0.0.0:9094",
        advertised_listeners="EXTERNAL://kafka.test:19094",
        listener_security_protocol_map=MAP,
    )
    assert internal.endpoint == Endpoint("INTERNAL", "127.0.0.1", 9093)
    assert external.endpoint == Endpoint("EXTERNAL", "kafka.test", 19094)


def test_an_advertised_port_of_0_is_the_one_that_was_found():
    (one,) = listeners("PLAINTEXT://:0", advertised_listeners="PLAINTEXT://kafka.test:0")
    assert one._replace(port=4711).endpoint == Endpoint("PLAINTEXT", "kafka.test", 4711)


def test_who_listens_everywhere_is_known_by_the_machines_name():
    (one,) = listeners("PLAINTEXT://:9092")
    assert one.host == ""
    assert one.endpoint.host == os.uname().nodename


def test_the_controllers_listener_is_left_out():
    (one,) = listeners(
        "PLAINTEXT://127.0.0.1:9092,CONTROLLER://127.0.0.1:9093",
        controller_listener_names="CONTROLLER",
    )
    assert one.name == "PLAINTEXT"
    assert "no listener for clients" in refused(
        "CONTROLLER://127.0.0.1:9093",
        controller_listener_names="CONTROLLER",
        listener_security_protocol_map=MAP,
    )


@pytest.mark.parametrize(
    "text",
    [
        "9092",
        "127.0.0.1:9092",
        "PLAINTEXT:/h:1",
        "PLAINTEXT://h",
        "PLAINTEXT://h:70000",
        "A://h:-1",
    ],
)
def test_what_is_no_listener_is_refused_with_the_form(text):
    assert "NAME://host:port" in refused(text)


def test_names_and_ports_are_there_once():
    assert "it has PLAINTEXT twice" in refused("PLAINTEXT://h:1,plaintext://h:2")
    twice = "INTERNAL://127.0.0.1:9092,EXTERNAL://127.0.0.1:9092"
    assert "the same port" in refused(twice, listener_security_protocol_map=MAP)
    listeners("INTERNAL://127.0.0.1:0,EXTERNAL://127.0.0.1:0", listener_security_protocol_map=MAP)


def test_tls_is_spoken_where_the_map_says_so():
    assert [one.has_tls for one in listeners("SSL://127.0.0.1:9093,PLAINTEXT://:0")] == [
        True,
        False,
    ]
    (one,) = listeners("INTERNAL://127.0.0.1:1", listener_security_protocol_map="INTERNAL:SSL")
    assert one.has_tls
    assert one.endpoint.security_protocol == 1  # as it is registered in the metadata log


def test_sasl_is_not_served():
    assert "SASL_SSL is not supported" in refused(
        "INTERNAL://127.0.0.1:9092", listener_security_protocol_map="INTERNAL:SASL_SSL"
    )


def test_a_name_needs_a_protocol():
    told = refused("INTERNAL://127.0.0.1:9092")
    assert "listener.security.protocol.map has no entry" in told
    assert "NAME:PROTOCOL" in refused(
        "INTERNAL://h:1", listener_security_protocol_map="INTERNAL:CARRIER_PIGEON"
    )


@pytest.mark.parametrize("host", ["0.0.0.0", "[::]"])
def test_an_address_that_means_all_is_not_for_clients(host):
    assert "advertised.listeners" in refused(f"PLAINTEXT://{host}:9092")
    assert "clients can't connect to" in refused(
        f"PLAINTEXT://{host}:9092", advertised_listeners=f"PLAINTEXT://{host}:9092"
    )


def test_what_is_advertised_must_be_listened_on_and_have_a_host():
    assert "not among the listeners" in refused(advertised_listeners="OTHER://h:1")
    assert "needs a host" in refused(advertised_listeners="PLAINTEXT://:9092")


@pytest.mark.parametrize("name", ["INTERNAL", "typo"])
def test_options_of_no_listener_are_refused(name):
    config = {
        "listeners": "INTERNAL://127.0.0.1:0",
        "listener.security.protocol.map": "INTERNAL:PLAINTEXT",
    }
    option = "ssl.client.auth"
    configured_listeners(BrokerConfig({**config, f"listener.name.internal.{option}": "none"}))
    with pytest.raises(KafkaConfigurationError, match=r"internal \(write them in lower case"):
        configured_listeners(BrokerConfig({**config, f"listener.name.{name}.{option}": "none"}))


def test_controllers_that_listen_elsewhere_may_have_options():
    option = {"listener.name.controller.ssl.client.auth": "none"}
    (one,) = configured_listeners(
        BrokerConfig({"controller.listener.names": "CONTROLLER", **option}), port=9092
    )
    assert one.name == "PLAINTEXT"
