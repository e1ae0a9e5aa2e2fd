"""Our options against Apache Kafka's own: the same names, types and defaults."""

import pytest

from broker_stub import Broker
from pyclient.protocol.messages.create_topics import CreatableTopic, CreateTopicsRequest
from pyclient.protocol.messages.describe_configs import (
    DescribeConfigsRequest,
    DescribeConfigsResource,
)
from tests.integration.broker_stub.raw_client import RawClient

TOPIC, BROKER = 2, 4
DEFAULT = 5
SET = "set for the test"

# Where ours differs for a reason: one node, fast tests, PLAINTEXT alone, large steps of sendfile.
OTHER_DEFAULTS = {
    "group.initial.rebalance.delay.ms",
    "log.dir",
    "log.flush.interval.ms",
    "log.roll.jitter.ms",
    "offsets.topic.replication.factor",
    "socket.send.buffer.bytes",
    "transaction.state.log.min.isr",
    "transaction.state.log.replication.factor",
}
OURS_ALONE = {"transaction.version"}  # a feature there, not an option


def described(port: int, kind: int, name: str) -> dict[str, tuple[int, str | None]]:
    """The type of every option, and its value where nobody has set one."""
    resource = DescribeConfigsResource(
        resource_type=kind, resource_name=name, configuration_keys=None
    )
    request = DescribeConfigsRequest(resources=[resource])
    with RawClient(port) as client:
        (result,) = client.ask(request, 4).results
    assert result.error_code == 0
    return {
        entry.name: (entry.config_type, entry.value if entry.config_source == DEFAULT else SET)
        for entry in result.configs
    }


@pytest.mark.parametrize(("kind", "name"), [(TOPIC, "described"), (BROKER, "1")])
def test_options_have_the_types_and_defaults_of_apache_kafka(apache, kind, name):
    create = CreateTopicsRequest(
        topics=[CreatableTopic(name="described", num_partitions=1, replication_factor=1)],
        timeout_ms=30_000,
    )
    with RawClient(apache.port) as client:
        client.ask(create, 7)
    with Broker() as broker:
        broker.create_topic("described")
        ours = described(broker.port, kind, name)
    theirs = described(apache.port, kind, name)
    for one in OURS_ALONE:
        ours.pop(one, None)
    assert set(ours) <= set(theirs)
    assert {one: kind for one, (kind, _) in ours.items()} == {
        one: kind for one, (kind, _) in theirs.items() if one in ours
    }
    same = {
        one for one in ours.keys() - OTHER_DEFAULTS if SET not in (ours[one][1], theirs[one][1])
    }
    assert {one: ours[one][1] for one in same} == {one: theirs[one][1] for one in same}
