"""Faults and a log of requests, on the node without sockets."""

import pytest

from broker_stub.testing.fault_injector import FaultInjector
from broker_stub.testing.faults import Faults
from broker_stub.testing.request_log import RequestLog
from tests.support.node_harness import NodeHarness


@pytest.fixture
def faults(harness: NodeHarness) -> Faults:
    """The faults of the node under test."""
    made = Faults()
    harness.node.dispatcher.interceptors.append(FaultInjector(made, harness.node))
    return made


@pytest.fixture
def requests(harness: NodeHarness) -> RequestLog:
    """The requests that came to the node under test."""
    made = RequestLog()
    harness.node.dispatcher.interceptors.append(made)
    return made
