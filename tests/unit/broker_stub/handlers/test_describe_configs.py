"""DescribeConfigs: values and where they come from."""

from typing import Any

import pytest

from pyclient.error_codes import InvalidRequestError, UnknownTopicOrPartitionError
from pyclient.protocol.messages.describe_configs import (
    DescribeConfigsRequest,
    DescribeConfigsResource,
)
from tests.support.node_harness import NodeHarness

TOPIC, BROKER = 2, 4
TOPIC_SOURCE, STATIC_BROKER_SOURCE, DEFAULT_SOURCE = 1, 4, 5


def describe(
    harness: NodeHarness,
    kind: int,
    name: str,
    keys: list[str] | None = None,
    version: int = 4,
    **fields: Any,
) -> Any:
    resource = DescribeConfigsResource(
        resource_type=kind, resource_name=name, configuration_keys=keys
    )
    return harness.ask(DescribeConfigsRequest(resources=[resource], **fields), version).results[0]


def entries(result: Any) -> dict[str, tuple[str | None, int]]:
    return {entry.name: (entry.value, entry.config_source) for entry in result.configs}


@pytest.mark.parametrize("version", range(1, 5))
def test_a_topic_shows_what_was_set_and_kafkas_defaults(harness, version):
    harness.create_topic("orders", retention_ms="1000")
    found = entries(describe(harness, TOPIC, "orders", version=version))
    assert found["retention.ms"] == ("1000", TOPIC_SOURCE)
    assert found["max.message.bytes"] == ("1048588", DEFAULT_SOURCE)
    assert found["segment.bytes"] == ("1073741824", DEFAULT_SOURCE)
    assert found["cleanup.policy"] == ("delete", DEFAULT_SOURCE)


@pytest.mark.parametrize("config", [{"log_retention_ms": 7_200_000}, {"log_retention_hours": 2}])
def test_a_topic_shows_what_the_broker_was_configured_with(tmp_path, config):
    harness = NodeHarness(tmp_path, **config)
    harness.create_topic("orders")
    found = entries(describe(harness, TOPIC, "orders"))
    assert found["retention.ms"] == ("7200000", STATIC_BROKER_SOURCE)


def test_synonyms_come_on_request_strongest_first(tmp_path):
    harness = NodeHarness(tmp_path, log_segment_bytes=2048)
    harness.create_topic("orders", segment_bytes="4096")
    (entry,) = describe(harness, TOPIC, "orders", ["segment.bytes"], include_synonyms=True).configs
    assert [(one.name, one.value, one.source) for one in entry.synonyms] == [
        ("segment.bytes", "4096", TOPIC_SOURCE),
        ("log.segment.bytes", "2048", STATIC_BROKER_SOURCE),
        ("log.segment.bytes", "1073741824", DEFAULT_SOURCE),
    ]
    (entry,) = describe(harness, TOPIC, "orders", ["segment.bytes"]).configs
    assert entry.synonyms == []


def test_documentation_comes_on_request(harness):
    harness.create_topic("orders")
    (entry,) = describe(
        harness, TOPIC, "orders", ["segment.bytes"], include_documentation=True
    ).configs
    assert "segment" in entry.documentation
    (entry,) = describe(harness, TOPIC, "orders", ["segment.bytes"]).configs
    assert entry.documentation is None


@pytest.mark.parametrize("keys", [None, []])
def test_no_keys_ask_for_all(harness, keys):
    harness.create_topic("orders")
    assert len(describe(harness, TOPIC, "orders", keys).configs) > 10


def test_the_broker_shows_its_own(harness):
    found = entries(describe(harness, BROKER, "1"))
    assert found["num.partitions"] == ("1", DEFAULT_SOURCE)
    assert found["log.retention.hours"] == ("168", DEFAULT_SOURCE)
    assert found["log.retention.ms"] == (None, DEFAULT_SOURCE)


@pytest.mark.parametrize(
    ("kind", "name", "error"),
    [
        (TOPIC, "missing", UnknownTopicOrPartitionError),
        (BROKER, "7", InvalidRequestError),
        (16, "metrics", InvalidRequestError),
    ],
)
def test_what_is_not_there_is_told_so(harness, kind, name, error):
    result = describe(harness, kind, name)
    assert result.error_code == error.code
    # Apache Kafka has no text for topics that do not exist: clients have one for this code.
    assert bool(result.error_message) == (error is not UnknownTopicOrPartitionError)


def test_values_have_the_types_that_kafka_gives_them(harness):
    harness.create_topic("orders")
    types = {one.name: one.config_type for one in describe(harness, TOPIC, "orders").configs}
    assert types["cleanup.policy"] == 7
    assert types["retention.ms"] == 5
    assert types["retention.bytes"] == 5
    assert types["segment.bytes"] == 3
    assert types["message.timestamp.type"] == 2
