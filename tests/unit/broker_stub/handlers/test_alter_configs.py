"""AlterConfigs and IncrementalAlterConfigs: options changed while the broker runs."""

from collections.abc import Mapping
from typing import Any

import pytest

from broker_stub.metadata.config_changes import APPEND, DELETE, SET, SUBTRACT
from pyclient.error_codes import (
    InvalidConfigurationError,
    InvalidRequestError,
    InvalidTopicError,
    RecordTooLargeError,
    UnknownTopicOrPartitionError,
)
from pyclient.protocol.messages import alter_configs, incremental_alter_configs
from pyclient.protocol.messages.describe_configs import (
    DescribeConfigsRequest,
    DescribeConfigsResource,
)
from tests.support.node_harness import NodeHarness, batch, produce_request

TOPIC, BROKER = 2, 4
TOPIC_SOURCE, DYNAMIC_BROKER, DYNAMIC_DEFAULT, STATIC_BROKER, DEFAULT = 1, 2, 3, 4, 5


def replace(
    harness: NodeHarness,
    configs: Mapping[str, str | None],
    kind: int = TOPIC,
    name: str = "orders",
    version: int = 2,
    **fields: Any,
) -> Any:
    resource = alter_configs.AlterConfigsResource(
        resource_type=kind,
        resource_name=name,
        configs=[alter_configs.AlterableConfig(name=k, value=v) for k, v in configs.items()],
    )
    request = alter_configs.AlterConfigsRequest(resources=[resource], **fields)
    return harness.ask(request, version).responses[0]


def change(
    harness: NodeHarness,
    *operations: tuple[str, int, str | None],
    kind: int = TOPIC,
    name: str = "orders",
    version: int = 1,
    **fields: Any,
) -> Any:
    resource = incremental_alter_configs.AlterConfigsResource(
        resource_type=kind,
        resource_name=name,
        configs=[
            incremental_alter_configs.AlterableConfig(name=key, config_operation=what, value=value)
            for key, what, value in operations
        ],
    )
    request = incremental_alter_configs.IncrementalAlterConfigsRequest(
        resources=[resource], **fields
    )
    return harness.ask(request, version).responses[0]


def described(
    harness: NodeHarness, kind: int = TOPIC, name: str = "orders"
) -> dict[str, tuple[str | None, int]]:
    resource = DescribeConfigsResource(
        resource_type=kind, resource_name=name, configuration_keys=None
    )
    response = harness.ask(DescribeConfigsRequest(resources=[resource]))
    return {one.name: (one.value, one.config_source) for one in response.results[0].configs}


def set_for_topic(harness: NodeHarness) -> dict[str, str | None]:
    return {
        name: value
        for name, (value, source) in described(harness).items()
        if source == TOPIC_SOURCE
    }


@pytest.fixture(autouse=True)
def orders(harness: NodeHarness) -> None:
    harness.create_topic("orders", 2, retention_ms="1000", segment_bytes="4096")


@pytest.mark.parametrize("version", range(3))
def test_alter_configs_replaces_the_whole_set(harness, version):
    result = replace(harness, {"retention.ms": "5000", "flush.ms": "10"}, version=version)
    assert (result.error_code, result.error_message) == (0, None)
    assert set_for_topic(harness) == {"retention.ms": "5000", "flush.ms": "10"}
    assert described(harness)["segment.bytes"] == ("1073741824", DEFAULT)


def test_alter_configs_with_nothing_sets_everything_back(harness):
    assert replace(harness, {}).error_code == 0
    assert set_for_topic(harness) == {}


@pytest.mark.parametrize("version", range(2))
def test_incremental_alter_configs_leaves_the_others_as_they_are(harness, version):
    result = change(
        harness, ("flush.ms", SET, "10"), ("retention.ms", DELETE, None), version=version
    )
    assert (result.error_code, result.error_message) == (0, None)
    assert set_for_topic(harness) == {"segment.bytes": "4096", "flush.ms": "10"}


def test_a_list_grows_by_what_it_has_not_and_shrinks_by_what_it_has(harness):
    change(harness, ("cleanup.policy", APPEND, "compact"))
    assert set_for_topic(harness)["cleanup.policy"] == "delete,compact"
    change(harness, ("cleanup.policy", APPEND, "compact, delete"))
    assert set_for_topic(harness)["cleanup.policy"] == "delete,compact"
    change(harness, ("cleanup.policy", SUBTRACT, "delete"))
    assert set_for_topic(harness)["cleanup.policy"] == "compact"
    assert harness.node.replicas.partition("orders", 0).log.config.is_compacted


def test_a_list_can_shrink_to_nothing(harness):
    assert change(harness, ("cleanup.policy", SUBTRACT, "delete")).error_code == 0
    assert not harness.node.replicas.partition("orders", 0).log.config.cleanup_policy


def test_a_list_can_not_grow_beyond_what_is_allowed(harness):
    result = change(harness, ("cleanup.policy", APPEND, "shred"))
    assert result.error_code == InvalidConfigurationError.code


@pytest.mark.parametrize("operation", [APPEND, SUBTRACT])
def test_only_lists_grow_and_shrink(harness, operation):
    result = change(harness, ("retention.ms", operation, "1"))
    assert result.error_code == InvalidConfigurationError.code
    assert "retention.ms" in result.error_message


def test_a_change_is_in_force_at_once_in_every_partition(harness):
    for index in (0, 1):
        harness.ask(produce_request("orders", batch(b"v" * 500), partition=index), 9)
    change(harness, ("max.message.bytes", SET, "100"), ("min.insync.replicas", SET, "1"))
    for index in (0, 1):
        response = harness.ask(produce_request("orders", batch(b"v" * 500), partition=index), 9)
        (partition,) = response.responses[0].partition_responses
        assert partition.error_code == RecordTooLargeError.code


def test_a_change_survives_a_restart(harness):
    change(harness, ("retention.ms", SET, "7000"), ("segment.bytes", DELETE, None))
    harness.restart(clean=False)
    assert set_for_topic(harness) == {"retention.ms": "7000"}
    assert harness.node.replicas.partition("orders", 0).log.config.retention_ms == 7000


def test_what_was_set_for_a_topic_is_not_there_for_its_successor(harness):
    topic_id = harness.node.image.topic("orders").topic_id
    harness.node.controller.delete_topics([topic_id], lambda results: None)
    harness.create_topic("orders")
    assert set_for_topic(harness) == {}


def test_validate_only_changes_nothing(harness):
    before = set_for_topic(harness)
    assert replace(harness, {}, validate_only=True).error_code == 0
    assert change(harness, ("flush.ms", SET, "1"), validate_only=True).error_code == 0
    refused = change(harness, ("flush.ms", SET, "soon"), validate_only=True)
    assert refused.error_code == InvalidConfigurationError.code
    assert set_for_topic(harness) == before


@pytest.mark.parametrize(
    ("name", "value"), [("no.such.key", "1"), ("retention.ms", "soon"), ("cleanup.policy", "burn")]
)
def test_unknown_names_and_wrong_values_are_refused_by_name(harness, name, value):
    before = set_for_topic(harness)
    for result in (
        replace(harness, {"flush.ms": "1", name: value}),
        change(harness, ("flush.ms", SET, "1"), (name, SET, value)),
    ):
        assert result.error_code == InvalidConfigurationError.code
        assert name in result.error_message
    assert set_for_topic(harness) == before


def test_what_contradicts_an_option_that_is_set_already_is_refused(harness):
    assert change(harness, ("max.compaction.lag.ms", SET, "10")).error_code == 0
    result = change(harness, ("min.compaction.lag.ms", SET, "11"))
    assert result.error_code == InvalidConfigurationError.code
    assert "max.compaction.lag.ms (10)" in result.error_message
    assert "min.compaction.lag.ms" not in set_for_topic(harness)


def test_deleting_what_is_not_set_changes_nothing(harness):
    assert change(harness, ("flush.ms", DELETE, None), ("no.such", DELETE, None)).error_code == 0


@pytest.mark.parametrize(
    "operations",
    [
        [("flush.ms", SET, None)],
        [("cleanup.policy", APPEND, None)],
        [("flush.ms", SET, "1"), ("flush.ms", DELETE, None)],
        [("flush.ms", 4, "1")],
    ],
    ids=["null", "null for a list", "twice", "unknown operation"],
)
def test_operations_that_make_no_sense_are_refused(harness, operations):
    assert change(harness, *operations).error_code == InvalidRequestError.code


def test_a_null_value_is_refused_by_alter_configs_too(harness):
    assert replace(harness, {"flush.ms": None}).error_code == InvalidRequestError.code


@pytest.mark.parametrize(
    ("kind", "name", "error"),
    [
        (TOPIC, "missing", UnknownTopicOrPartitionError),
        (TOPIC, "bad name", InvalidTopicError),
        (TOPIC, "", InvalidRequestError),
        (BROKER, "7", InvalidRequestError),
        (BROKER, "one", InvalidRequestError),
        (8, "1", InvalidRequestError),
        (32, "group", InvalidRequestError),
    ],
)
def test_what_has_no_configuration_is_told_so(harness, kind, name, error):
    for result in (
        replace(harness, {}, kind, name),
        change(harness, ("flush.ms", SET, "1"), kind=kind, name=name),
    ):
        assert (result.error_code, result.resource_type, result.resource_name) == (
            error.code,
            kind,
            name,
        )


def test_a_resource_twice_is_refused_and_the_others_are_not(harness):
    harness.create_topic("payments")
    resources = [
        alter_configs.AlterConfigsResource(
            resource_type=TOPIC,
            resource_name=name,
            configs=[alter_configs.AlterableConfig(name="flush.ms", value="1")],
        )
        for name in ("orders", "payments", "orders")
    ]
    response = harness.ask(alter_configs.AlterConfigsRequest(resources=resources))
    assert [one.error_code for one in response.responses] == [
        InvalidRequestError.code,
        0,
        InvalidRequestError.code,
    ]
    assert "flush.ms" not in set_for_topic(harness)


def test_the_defaults_of_topics_can_be_changed_for_the_broker(harness):
    result = change(harness, ("log.retention.ms", SET, "9000"), kind=BROKER, name="1")
    assert result.error_code == 0
    harness.create_topic("payments")
    assert described(harness, name="payments")["retention.ms"] == ("9000", DYNAMIC_BROKER)
    assert described(harness)["retention.ms"] == ("1000", TOPIC_SOURCE)
    assert described(harness, BROKER, "1")["log.retention.ms"] == ("9000", DYNAMIC_BROKER)
    assert harness.node.replicas.partition("payments", 0).log.config.retention_ms == 9000


def test_existing_partitions_take_changed_defaults_over(harness):
    log = harness.node.replicas.partition("orders", 0).log
    change(harness, ("message.max.bytes", SET, "100"), kind=BROKER, name="")
    assert log.config.max_message_bytes == 100
    change(harness, ("message.max.bytes", DELETE, None), kind=BROKER, name="")
    assert log.config.max_message_bytes == 1048588


def test_what_is_set_for_one_broker_goes_over_what_is_set_for_all(harness):
    change(harness, ("log.flush.interval.ms", SET, "1"), kind=BROKER, name="")
    assert described(harness)["flush.ms"] == ("1", DYNAMIC_DEFAULT)
    assert described(harness, BROKER, "") == {
        "log.flush.interval.ms": ("1", DYNAMIC_DEFAULT),
        "min.insync.replicas": ("1", DYNAMIC_DEFAULT),
    }
    change(harness, ("log.flush.interval.ms", SET, "2"), kind=BROKER, name="1")
    assert described(harness)["flush.ms"] == ("2", DYNAMIC_BROKER)
    harness.restart()
    assert described(harness)["flush.ms"] == ("2", DYNAMIC_BROKER)
    change(harness, ("log.flush.interval.ms", DELETE, None), kind=BROKER, name="1")
    assert described(harness)["flush.ms"] == ("1", DYNAMIC_DEFAULT)


@pytest.mark.parametrize("operation", [SET, DELETE])
def test_min_insync_replicas_is_set_for_the_whole_cluster_or_a_topic(harness, operation):
    """As since Apache Kafka 4.1: it was set for all brokers when the cluster was made."""
    option = "min.insync.replicas"
    changed = change(harness, (option, operation, "2"), kind=BROKER, name="")
    assert described(harness)[option] == ("1" if operation == DELETE else "2", DYNAMIC_DEFAULT)
    if operation == DELETE:
        assert changed.error_code == InvalidConfigurationError.code
        assert "cannot be removed" in changed.error_message
    else:
        refused = change(harness, (option, SET, "3"), kind=BROKER, name="1")
        assert refused.error_code == InvalidConfigurationError.code
        assert "cannot be altered" in refused.error_message


def test_the_running_brokers_other_options_are_fixed(harness):
    result = change(harness, ("num.partitions", SET, "3"), kind=BROKER, name="1")
    assert result.error_code == InvalidRequestError.code
    assert "num.partitions" in result.error_message
    result = change(harness, ("no.such.key", SET, "3"), kind=BROKER, name="1")
    assert result.error_code == InvalidConfigurationError.code


def test_only_what_can_be_changed_is_shown_as_such(harness):
    resource = DescribeConfigsResource(
        resource_type=BROKER, resource_name="1", configuration_keys=None
    )
    (result,) = harness.ask(DescribeConfigsRequest(resources=[resource])).results
    read_only = {one.name: one.read_only for one in result.configs}
    assert not read_only["log.retention.ms"]
    assert read_only["num.partitions"]
