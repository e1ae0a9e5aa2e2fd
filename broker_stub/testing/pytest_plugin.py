"""Fixtures for tests that need Kafka. pytest finds them once the package is installed.

def test_orders_are_published(kafka_broker):
    kafka_broker.create_topic("orders", partitions=3)
    producer = KafkaProducer(bootstrap_servers=kafka_broker.bootstrap_servers)

If plugin autoloading is off: `pytest -p broker_stub.testing.pytest_plugin`, or
`pytest_plugins = ["broker_stub.testing.pytest_plugin"]` in the top conftest.py.
"""

from __future__ import annotations

import re
from collections.abc import Iterator, Mapping
from itertools import count
from typing import TYPE_CHECKING, Any, Final

import pytest

if TYPE_CHECKING:
    from broker_stub.broker import Broker
    from broker_stub.testing.tls import TlsCertificates

_ILLEGAL: Final = re.compile(r"[^a-zA-Z0-9._-]")
_NAME_MAX: Final = 200  # of 249 that Kafka allows: the broker adds to it in its folder
_numbers = count(1)
_session_config = pytest.StashKey[Mapping[str, object]]()


@pytest.hookimpl(tryfirst=True)
def pytest_runtest_call(item: pytest.Item) -> None:
    """Fail a test whose options differ from those of the session's broker."""
    used: Mapping[str, Any] = getattr(item, "funcargs", None) or {}
    running = item.config.stash.get(_session_config, None)
    if running is None or "kafka_broker_session" not in used:
        return
    wanted = used.get("kafka_broker_config", running) or {}
    if wanted != running:
        pytest.fail(
            f"kafka_broker_session runs with the options {dict(running)!r}, not with this test's"
            f" kafka_broker_config, {dict(wanted)!r}: it is one broker for all tests, so override"
            " the options in the top conftest.py, or use kafka_broker here",
            pytrace=False,
        )


@pytest.fixture(scope="session")
def kafka_broker_config() -> Mapping[str, object]:
    """Broker options by Kafka's names. Empty by default; override it to set some.

    In the top conftest.py, with the session's scope:

    @pytest.fixture(scope="session")
    def kafka_broker_config():
        return {"auto.create.topics.enable": False}

    Another conftest.py or a test module may override it, too, for `kafka_broker` and
    `kafka_tls_broker`. `kafka_broker_session` is shared: a test that uses it with different options
    fails.
    """
    return {}


@pytest.fixture
def kafka_broker(kafka_broker_config: Mapping[str, object]) -> Iterator[Broker]:
    """A one-node broker on a free loopback port, empty for every test."""
    from broker_stub.broker import Broker

    with Broker(config=kafka_broker_config) as broker:
        yield broker


@pytest.fixture(scope="session")
def kafka_broker_session(
    request: pytest.FixtureRequest, kafka_broker_config: Mapping[str, object]
) -> Iterator[Broker]:
    """One broker for all tests. Each test should use its own topics (`kafka_topic`).

    A test that injects faults must clear them.
    """
    from broker_stub.broker import Broker

    request.config.stash[_session_config] = dict(kafka_broker_config or {})
    with Broker(config=kafka_broker_config) as broker:
        yield broker


@pytest.fixture
def kafka_topic(request: pytest.FixtureRequest, kafka_broker_session: Broker) -> str:
    """A new topic on the session's broker, named after the test.

    It has one partition, or `num.partitions` of `kafka_broker_config`.
    """
    test = _ILLEGAL.sub("_", request.node.name)[:_NAME_MAX]
    name = f"{test}-{next(_numbers)}"
    kafka_broker_session.create_topic(name, partitions=-1)
    return name


@pytest.fixture(scope="session")
def kafka_tls_certificates(tmp_path_factory: pytest.TempPathFactory) -> TlsCertificates:
    """Certificates for a broker and its clients; needs the package `trustme`."""
    from broker_stub.testing.tls import TlsCertificates

    return TlsCertificates(tmp_path_factory.mktemp("certificates"))


@pytest.fixture
def kafka_tls_broker(
    kafka_broker_config: Mapping[str, object], kafka_tls_certificates: TlsCertificates
) -> Iterator[Broker]:
    """A broker that speaks TLS; clients need `**kafka_tls_certificates.client_options`."""
    from broker_stub.broker import Broker

    with Broker(config={**kafka_tls_certificates.broker_config, **kafka_broker_config}) as broker:
        yield broker
