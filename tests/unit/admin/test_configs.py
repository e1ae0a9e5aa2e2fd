"""Configurations on a scripted network: described, altered, reset, whatever the broker can do."""

import pytest

from pyclient.admin import AlterConfigOp, ConfigFilterType, ConfigResource, ConfigResourceType
from pyclient.errors import (
    InvalidConfigurationError,
    ProtocolError,
    RequestTimedOutError,
    UnknownTopicOrPartitionError,
    UnsupportedVersionError,
)
from pyclient.net.scripted import DISCONNECT
from pyclient.protocol.messages import alter_configs as whole
from pyclient.protocol.messages import incremental_alter_configs as single
from pyclient.protocol.messages.alter_configs import AlterConfigsRequest
from pyclient.protocol.messages.describe_configs import (
    DescribeConfigsRequest,
    DescribeConfigsResourceResult,
    DescribeConfigsResponse,
    DescribeConfigsResult,
)
from pyclient.protocol.messages.incremental_alter_configs import IncrementalAlterConfigsRequest
from pyclient.protocol.messages.list_config_resources import ConfigResource as ListedResource
from pyclient.protocol.messages.list_config_resources import (
    ListConfigResourcesRequest,
    ListConfigResourcesResponse,
)

TOPIC_CONFIG, STATIC, DEFAULT, FROM_THE_FUTURE = 1, 4, 5, 99


def config_entry(name, source, read_only=False):
    return DescribeConfigsResourceResult(
        name=name, value="1", config_source=source, read_only=read_only, config_type=5
    )


def configs_of(request, version):
    entries = [
        config_entry("retention.ms", TOPIC_CONFIG),
        config_entry("node.id", STATIC, read_only=True),
        config_entry("segment.bytes", DEFAULT),
    ]
    return DescribeConfigsResponse(
        results=[
            DescribeConfigsResult(
                resource_type=one.resource_type, resource_name=one.resource_name, configs=entries
            )
            for one in request.resources
        ]
    )


@pytest.mark.parametrize(
    ("config_filter", "keys"),
    [
        ("modified", {"retention.ms"}),
        ("dynamic", {"retention.ms", "segment.bytes"}),
        ("static", {"node.id"}),
        ("default", {"node.id", "segment.bytes"}),
        ("all", {"retention.ms", "node.id", "segment.bytes"}),
    ],
)
def test_configurations_are_filtered(admin, controller, other, config_filter, keys):
    for broker in (controller, other):
        broker.on(DescribeConfigsRequest, configs_of)
    found = admin.describe_configs([ConfigResource("TOPIC", "orders")], config_filter=config_filter)
    assert set(found["topic"]["orders"]) == keys
    if "retention.ms" in keys:
        entry = found["topic"]["orders"]["retention.ms"]
        assert (entry["value"], entry["config_source"], entry["config_type"]) == (
            "1",
            "DYNAMIC_TOPIC_CONFIG",
            "LONG",
        )


def test_a_brokers_configuration_is_asked_of_that_broker(admin, controller, other):
    other.on(DescribeConfigsRequest, configs_of)
    found = admin.describe_configs(
        [ConfigResource("broker", "2", ["node.id"])], config_filter="all"
    )
    assert set(found) == {"broker"}
    (request,) = other.received(DescribeConfigsRequest)
    assert request.resources[0].configuration_keys == ["node.id"]
    assert not controller.received(DescribeConfigsRequest)


def test_a_resource_that_cannot_be_described_is_an_error(admin, controller, other):
    refused = DescribeConfigsResponse(
        results=[
            DescribeConfigsResult(
                resource_type=2,
                resource_name="oders",
                error_code=UnknownTopicOrPartitionError.code,
                error_message="no such topic",
            )
        ]
    )
    for broker in (controller, other):
        broker.on(DescribeConfigsRequest, refused)
    with pytest.raises(UnknownTopicOrPartitionError, match="topic 'oders': no such topic"):
        admin.describe_configs([ConfigResource("topic", "oders")])


def test_what_only_a_newer_client_could_name_is_unknown(admin, controller, other):
    entry = config_entry("retention.ms", FROM_THE_FUTURE)
    result = DescribeConfigsResult(resource_type=2, resource_name="orders", configs=[entry])
    for broker in (controller, other):
        broker.on(DescribeConfigsRequest, DescribeConfigsResponse(results=[result]))
    found = admin.describe_configs([ConfigResource("topic", "orders")])
    assert found["topic"]["orders"]["retention.ms"]["config_source"] == "UNKNOWN"


@pytest.mark.parametrize("given", ["static", "STATIC", 4, ConfigFilterType.STATIC])
def test_a_filter_can_be_given_in_all_forms(admin, controller, other, given):
    for broker in (controller, other):
        broker.on(DescribeConfigsRequest, configs_of)
    found = admin.describe_configs([ConfigResource("topic", "orders")], config_filter=given)
    assert set(found["topic"]["orders"]) == {"node.id"}


def test_a_filter_that_is_none_is_a_mistake(admin):
    with pytest.raises(ValueError, match="'some' is no ConfigFilterType; there are all, dynamic"):
        admin.describe_configs([ConfigResource("topic", "orders")], config_filter="some")


def test_resources_can_be_given_in_all_forms():
    for given in ("topic", "TOPIC", 2, ConfigResourceType.TOPIC):
        assert ConfigResource(given, "orders").resource_type is ConfigResourceType.TOPIC
    assert ConfigResource("broker", 1).name == "1"
    assert ConfigResource("client-metrics", "m").resource_type is ConfigResourceType.CLIENT_METRICS


def test_a_broker_is_named_by_its_number(admin):
    with pytest.raises(ValueError, match="a broker's name is its id"):
        admin.describe_configs([ConfigResource("broker", "one")])


def test_resources_with_configurations_are_listed(admin, controller, other):
    listed = ListConfigResourcesResponse(
        config_resources=[
            ListedResource(resource_name="orders", resource_type=2),
            ListedResource(resource_name="1", resource_type=4),
        ]
    )
    for broker in (controller, other):
        broker.on(ListConfigResourcesRequest, listed)
    assert admin.list_config_resources() == {"topic": ["orders"], "broker": ["1"]}


# --- changes -------------------------------------------------------------------------------------


def altered(module, name="IncrementalAlterConfigsResponse", error=0):
    def answer(request, version):
        return getattr(module, name)(
            responses=[
                module.AlterConfigsResourceResponse(
                    error_code=error,
                    error_message=None,
                    resource_type=one.resource_type,
                    resource_name=one.resource_name,
                )
                for one in request.resources
            ]
        )

    return answer


@pytest.fixture
def cluster(controller, other):
    """Two brokers that describe and change whatever they are asked to."""
    for broker in (controller, other):
        broker.on(DescribeConfigsRequest, configs_of)
        broker.on(IncrementalAlterConfigsRequest, altered(single))
        broker.on(AlterConfigsRequest, altered(whole, "AlterConfigsResponse"))
    return [controller, other]


@pytest.fixture
def old_cluster(cluster, admin):
    """One that can't change single entries; it learns so when it connects."""
    for broker in cluster:
        del broker.versions[IncrementalAlterConfigsRequest.api_key]
        broker.cut()
    return cluster


def received(cluster, request):
    return [one for broker in cluster for one in broker.received(request)]


def test_single_entries_are_changed(admin, cluster):
    configs = {
        "retention.ms": 5,
        "segment.bytes": ("delete", "whatever"),
        "cleanup.policy": ("append", "compact"),
        "follower.throttled.replicas": (AlterConfigOp.SUBTRACT, "0:1"),
        "preallocate": True,
    }
    resource = ConfigResource("topic", "orders", configs)
    assert admin.alter_configs([resource], raise_on_unknown=False) == {"topic": {"orders": "OK"}}
    (request,) = received(cluster, IncrementalAlterConfigsRequest)
    (changed,) = request.resources
    assert [(one.name, one.config_operation, one.value) for one in changed.configs] == [
        ("retention.ms", 0, "5"),
        ("segment.bytes", 1, None),
        ("cleanup.policy", 2, "compact"),
        ("follower.throttled.replicas", 3, "0:1"),
        ("preallocate", 0, "true"),
    ]
    assert not request.validate_only


def test_a_brokers_entries_are_changed_at_that_broker(admin, cluster, controller, other):
    admin.alter_configs(
        [
            ConfigResource("broker", "2", {"retention.ms": 1}),
            ConfigResource("broker", "1", {"retention.ms": 2}),
        ],
        validate_only=True,
    )
    for broker in cluster:
        (request,) = broker.received(IncrementalAlterConfigsRequest)
        assert [one.resource_name for one in request.resources] == [str(broker.node_id)]
        assert request.validate_only


def test_any_broker_changes_what_holds_for_all_brokers(admin, cluster):
    resource = ConfigResource("broker", "", {"retention.ms": 1})
    assert admin.alter_configs([resource]) == {"broker": {"": "OK"}}


def test_a_misspelt_key_is_a_mistake_and_nothing_is_changed(admin, cluster):
    with pytest.raises(ValueError, match=r"topic 'orders' has no retention\.m that"):
        admin.alter_configs([ConfigResource("topic", "orders", {"retention.m": 1})])
    assert not received(cluster, IncrementalAlterConfigsRequest)


def test_what_is_to_change_is_a_dict(admin):
    with pytest.raises(TypeError, match="a dict of values by key"):
        admin.alter_configs([ConfigResource("topic", "orders", ["retention.ms"])])


def test_what_the_broker_refuses_is_in_the_result(admin, cluster):
    for broker in cluster:
        broker.on(
            IncrementalAlterConfigsRequest, altered(single, error=InvalidConfigurationError.code)
        )
    result = admin.alter_configs([ConfigResource("topic", "orders", {"retention.ms": "x"})])
    assert "INVALID_CONFIG" in result["topic"]["orders"]


def test_a_change_that_got_no_answer_is_tried_again(admin, cluster):
    done = single.AlterConfigsResourceResponse(
        error_message=None, resource_type=2, resource_name="orders"
    )
    for broker in cluster:
        broker.on(
            IncrementalAlterConfigsRequest,
            [DISCONNECT, single.IncrementalAlterConfigsResponse(responses=[done])],
        )
    resource = ConfigResource("topic", "orders", {"retention.ms": 1})
    assert admin.alter_configs([resource]) == {"topic": {"orders": "OK"}}
    assert len(received(cluster, IncrementalAlterConfigsRequest)) >= 2


def test_a_change_that_may_have_happened_is_not_called_done(admin, cluster):
    for broker in cluster:
        broker.on(IncrementalAlterConfigsRequest, altered(single, error=RequestTimedOutError.code))
    result = admin.alter_configs([ConfigResource("topic", "orders", {"retention.ms": 1})])
    assert "REQUEST_TIMED_OUT" in result["topic"]["orders"]


def test_a_resource_that_the_answer_leaves_out_is_not_called_done(admin, cluster):
    for broker in cluster:
        broker.on(IncrementalAlterConfigsRequest, single.IncrementalAlterConfigsResponse())
    with pytest.raises(ProtocolError, match="does not mention topic 'orders'"):
        admin.alter_configs([ConfigResource("topic", "orders", {"retention.ms": 1})])


def test_an_old_broker_gets_the_whole_configuration(admin, old_cluster):
    resource = ConfigResource("topic", "orders", {"segment.bytes": 7})
    assert admin.alter_configs([resource]) == {"topic": {"orders": "OK"}}
    (request,) = received(old_cluster, AlterConfigsRequest)
    (changed,) = request.resources
    assert {one.name: one.value for one in changed.configs} == {
        "retention.ms": "1",  # was set already
        "segment.bytes": "7",
    }
    assert resource.configs == {"segment.bytes": 7}  # the caller's: untouched


def test_an_old_broker_can_only_set_entries(admin, old_cluster):
    resource = ConfigResource("topic", "orders", {"segment.bytes": ("append", "7")})
    with pytest.raises(ValueError, match=r"segment\.bytes can't be changed by append"):
        admin.alter_configs([resource])
    assert not received(old_cluster, AlterConfigsRequest)


def test_single_changes_can_be_insisted_on(admin, old_cluster):
    resource = ConfigResource("topic", "orders", {"segment.bytes": 7})
    with pytest.raises(UnsupportedVersionError, match="does not serve IncrementalAlterConfigs"):
        admin.alter_configs([resource], incremental=True)


def test_the_whole_configuration_can_be_insisted_on(admin, cluster):
    admin.alter_configs(
        [ConfigResource("topic", "orders", {"segment.bytes": 7})], incremental=False
    )
    assert received(cluster, AlterConfigsRequest)
    assert not received(cluster, IncrementalAlterConfigsRequest)


def test_entries_are_reset(admin, cluster):
    admin.reset_configs(
        [
            ConfigResource("topic", "orders", ["segment.bytes"]),
            ConfigResource("topic", "payments"),  # all that was changed
        ]
    )
    (request,) = received(cluster, IncrementalAlterConfigsRequest)
    assert [
        (one.resource_name, [(entry.name, entry.config_operation) for entry in one.configs])
        for one in request.resources
    ] == [("orders", [("segment.bytes", 1)]), ("payments", [("retention.ms", 1)])]


def test_an_old_brokers_entries_are_reset(admin, old_cluster):
    admin.reset_configs(
        [
            ConfigResource("topic", "orders", ["segment.bytes"]),
            ConfigResource("topic", "payments", ["retention.ms"]),
        ]
    )
    (request,) = received(old_cluster, AlterConfigsRequest)
    assert [
        (one.resource_name, {entry.name: entry.value for entry in one.configs})
        for one in request.resources
    ] == [("orders", {"retention.ms": "1"}), ("payments", {})]
