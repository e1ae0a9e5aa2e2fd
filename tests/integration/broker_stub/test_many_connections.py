"""Two thousand connections that say nothing, to a process of its own."""

import resource
from collections.abc import Iterator

import pytest

from pyclient.protocol.messages.api_versions import ApiVersionsRequest
from tests.integration.broker_stub.raw_client import RawClient
from tests.support.broker_load import resident_bytes
from tests.support.server_process import ServerProcess

CONNECTIONS = 2000
BYTES_A_CONNECTION_MAX = 10_000


@pytest.fixture
def descriptors() -> Iterator[None]:
    """As many as the test itself needs."""
    soft, hard = resource.getrlimit(resource.RLIMIT_NOFILE)
    wanted = CONNECTIONS + 500
    if hard != resource.RLIM_INFINITY and hard < wanted:
        pytest.skip(f"a process may have {hard} files open here")
    if soft != resource.RLIM_INFINITY and soft < wanted:
        resource.setrlimit(resource.RLIMIT_NOFILE, (wanted, hard))
    yield
    resource.setrlimit(resource.RLIMIT_NOFILE, (soft, hard))


@pytest.mark.usefixtures("descriptors")
def test_two_thousand_idle_connections_cost_little_and_are_served_when_they_wake():
    # The soft limit that most systems start a process with: the broker raises it by itself.
    with ServerProcess(wrapper=("prlimit", "--nofile=1024:")) as server:
        with RawClient(server.port) as first:
            assert first.ask(ApiVersionsRequest(), 0).error_code == 0
        before = resident_bytes(server.pid)
        idle = [RawClient(server.port) for _ in range(CONNECTIONS)]
        try:
            with RawClient(server.port) as other:
                for _ in range(100):
                    assert other.ask(ApiVersionsRequest(), 0).error_code == 0
            assert resident_bytes(server.pid) - before < CONNECTIONS * BYTES_A_CONNECTION_MAX
            for client in idle:
                client.send(ApiVersionsRequest(), 0)
            assert all(client.receive().error_code == 0 for client in idle)
        finally:
            for client in idle:
                client.socket.close()
