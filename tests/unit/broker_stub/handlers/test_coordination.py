"""FindCoordinator, InitProducerId and DescribeCluster."""

import pytest

from pyclient.error_codes import (
    InvalidRequestError,
    MismatchedEndpointTypeError,
    NotCoordinatorError,
    UnsupportedEndpointTypeError,
)
from pyclient.protocol.messages.describe_cluster import DescribeClusterRequest
from pyclient.protocol.messages.find_coordinator import FindCoordinatorRequest
from pyclient.protocol.messages.init_producer_id import InitProducerIdRequest
from tests.support.node_harness import HOST, PORT


@pytest.mark.parametrize("version", range(4))
def test_a_groups_coordinator_is_found_and_its_topic_made(harness, version):
    response = harness.ask(FindCoordinatorRequest(key="group"), version)
    assert response.error_code == 0
    assert (response.node_id, response.host, response.port) == (1, HOST, PORT)
    assert response.error_message == ("NONE" if version >= 1 else "")  # Apache Kafka's word
    assert len(harness.node.image.topic("__consumer_offsets").partitions) == 50


@pytest.mark.parametrize("version", [4, 5, 6])
def test_many_coordinators_are_found_at_once(harness, version):
    response = harness.ask(FindCoordinatorRequest(coordinator_keys=["a", "b"]), version)
    assert [(one.key, one.node_id, one.error_code) for one in response.coordinators] == [
        ("a", 1, 0),
        ("b", 1, 0),
    ]


def test_the_first_transactional_id_creates_the_log_of_transactions(harness):
    old = harness.ask(FindCoordinatorRequest(key="t", key_type=1), 2)
    assert (old.error_code, old.node_id, old.port) == (0, 1, PORT)
    (new,) = harness.ask(FindCoordinatorRequest(coordinator_keys=["t"], key_type=1), 6).coordinators
    assert (new.error_code, new.node_id, new.port) == (0, 1, PORT)
    assert len(harness.node.image.topic("__transaction_state").partitions) == 50
    options = harness.node.image.topic_config("__transaction_state")
    assert options["cleanup.policy"] == "compact"
    assert options["compression.type"] == "uncompressed"


@pytest.mark.parametrize("key_type", [2, 3, -1])
def test_keys_of_other_types_are_refused(harness, key_type):
    old = harness.ask(FindCoordinatorRequest(key="k", key_type=key_type), 2)
    assert old.error_code == InvalidRequestError.code
    request = FindCoordinatorRequest(coordinator_keys=["k"], key_type=key_type)
    (new,) = harness.ask(request, 6).coordinators
    assert new.error_code == InvalidRequestError.code
    assert harness.ask(FindCoordinatorRequest(key_type=key_type), 6).coordinators == []


@pytest.mark.parametrize("version", range(6))
def test_every_producer_gets_an_id_of_its_own(harness, version):
    request = InitProducerIdRequest(transactional_id=None)
    first, second = harness.ask(request, version), harness.ask(request, version)
    assert (first.error_code, first.producer_epoch) == (0, 0)
    assert first.producer_id != second.producer_id


def test_producer_ids_are_never_given_twice_over_restarts(harness):
    request = InitProducerIdRequest(transactional_id=None)
    seen = {harness.ask(request).producer_id for _ in range(1001)}
    assert len(seen) == 1001
    harness.restart(clean=False)
    assert harness.ask(request).producer_id not in seen


def test_a_transactional_producer_has_to_find_its_coordinator_first(harness):
    request = InitProducerIdRequest(transactional_id="t", transaction_timeout_ms=1000)
    response = harness.ask(request)
    assert (response.error_code, response.producer_id) == (NotCoordinatorError.code, -1)


@pytest.mark.parametrize(
    "fields",
    [
        {"transactional_id": ""},
        {"transactional_id": None, "producer_id": 5},
        {"transactional_id": None, "producer_epoch": 5},
    ],
)
def test_half_an_identity_is_refused(harness, fields):
    response = harness.ask(InitProducerIdRequest(**fields), 5)
    assert (response.error_code, response.producer_id) == (InvalidRequestError.code, -1)


@pytest.mark.parametrize("version", range(3))
def test_the_cluster_is_described(harness, version):
    response = harness.ask(DescribeClusterRequest(), version)
    assert response.cluster_id == harness.node.cluster_id
    assert response.controller_id == 1
    (broker,) = response.brokers
    assert (broker.broker_id, broker.host, broker.port) == (1, HOST, PORT)


@pytest.mark.parametrize(
    ("endpoint_type", "error"),
    [(2, MismatchedEndpointTypeError), (3, UnsupportedEndpointTypeError)],
)
def test_only_brokers_have_endpoints(harness, endpoint_type, error):
    response = harness.ask(DescribeClusterRequest(endpoint_type=endpoint_type), 1)
    assert response.error_code == error.code


def test_all_that_can_be_done_to_the_cluster_is_told_to_who_asks(harness):
    request = DescribeClusterRequest(include_cluster_authorized_operations=True)
    assert harness.ask(request).cluster_authorized_operations == 8096
    assert harness.ask(DescribeClusterRequest()).cluster_authorized_operations == -(2**31)
