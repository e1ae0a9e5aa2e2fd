"""FindCoordinator, InitProducerId and DescribeCluster."""

from __future__ import annotations

import pytest

from pyclient.error_codes import UnsupportedEndpointTypeError, UnsupportedVersionError
from pyclient.protocol.messages.describe_cluster import DescribeClusterRequest
from pyclient.protocol.messages.find_coordinator import FindCoordinatorRequest
from pyclient.protocol.messages.init_producer_id import InitProducerIdRequest
from tests.support.node_harness import HOST, PORT


@pytest.mark.parametrize("version", range(4))
def test_a_groups_coordinator_is_found_and_its_topic_made(harness, version):
    response = harness.ask(FindCoordinatorRequest(key="group"), version)
    assert response.error_code == 0
    assert (response.node_id, response.host, response.port) == (1, HOST, PORT)
    assert len(harness.node.image.topic("__consumer_offsets").partitions) == 50


@pytest.mark.parametrize("version", [4, 5, 6])
def test_many_coordinators_are_found_at_once(harness, version):
    response = harness.ask(FindCoordinatorRequest(coordinator_keys=["a", "b"]), version)
    assert [(one.key, one.node_id, one.error_code) for one in response.coordinators] == [
        ("a", 1, 0),
        ("b", 1, 0),
    ]


def test_transactional_ids_have_no_coordinator(harness):
    old = harness.ask(FindCoordinatorRequest(key="t", key_type=1), 2)
    assert old.error_code == UnsupportedVersionError.code
    (new,) = harness.ask(FindCoordinatorRequest(coordinator_keys=["t"], key_type=1), 6).coordinators
    assert (new.error_code, new.node_id) == (UnsupportedVersionError.code, -1)
    assert "transactional" in new.error_message


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


def test_transactional_producers_are_refused(harness):
    response = harness.ask(InitProducerIdRequest(transactional_id="t"))
    assert response.error_code == UnsupportedVersionError.code
    assert response.producer_id == -1


@pytest.mark.parametrize("version", range(3))
def test_the_cluster_is_described(harness, version):
    response = harness.ask(DescribeClusterRequest(), version)
    assert response.cluster_id == harness.node.cluster_id
    assert response.controller_id == 1
    (broker,) = response.brokers
    assert (broker.broker_id, broker.host, broker.port) == (1, HOST, PORT)


def test_controllers_have_no_endpoints(harness):
    response = harness.ask(DescribeClusterRequest(endpoint_type=2), 1)
    assert response.error_code == UnsupportedEndpointTypeError.code
