"""`kill -9` of the broker while a group rebalances: offsets stay, and the group settles again."""

import random
import time
from collections.abc import Iterator
from contextlib import suppress
from pathlib import Path
from threading import Event, Thread

import pytest

from pyclient.protocol.messages.find_coordinator import FindCoordinatorRequest
from tests.integration.broker_stub.raw_client import RawClient
from tests.interop.group_processes import (
    REBALANCE_MS,
    SESSION_MS,
    ForeignGroup,
    group_server,
    watching_owners,
)
from tests.support.offset_requests import offset_commit_request, offset_fetch_request
from tests.support.server_process import ServerProcess

TOPIC = "orders"
PARTITIONS = 6
SEED = 20
KILL_WITHIN_SECONDS = 1.0
SETTLED_SECONDS = (SESSION_MS + REBALANCE_MS) / 1000 + 10  # clients also have to reconnect

pytestmark = pytest.mark.timeout(900)


@pytest.fixture
def server(tmp_path: Path) -> Iterator[ServerProcess]:
    with group_server(tmp_path, TOPIC, PARTITIONS) as running:
        yield running


class Commits:
    """Commits one offset after another; `acknowledged` is the last that the broker confirmed."""

    def __init__(self, port: int) -> None:
        self._port = port
        self.acknowledged = -1
        self._over = Event()
        self._thread = Thread(target=self._run)

    def __enter__(self) -> "Commits":
        self._thread.start()
        return self

    def __exit__(self, *_: object) -> None:
        self._over.set()
        self._thread.join()

    def _run(self) -> None:
        while not self._over.wait(0.05):
            with suppress(OSError), RawClient(self._port) as client:
                client.ask(FindCoordinatorRequest(coordinator_keys=["ledger"]), 4)
                while not self._over.is_set():
                    self._commit(client, self.acknowledged + 1)

    def _commit(self, client: RawClient, offset: int) -> None:
        request = offset_commit_request("ledger", {(TOPIC, 0): offset}, metadata="kept")
        response = client.ask(request, 9)
        if response.topics[0].partitions[0].error_code == 0:
            self.acknowledged = offset


def committed(port: int) -> int:
    """The offset that the broker has."""
    with RawClient(port) as client:
        client.ask(FindCoordinatorRequest(coordinator_keys=["ledger"]), 4)
        (group,) = client.ask(offset_fetch_request("ledger", None), 9).groups
    return max(
        (one.committed_offset for topic in group.topics for one in topic.partitions), default=-1
    )


@pytest.mark.parametrize("kills", [5, pytest.param(20, marks=pytest.mark.soak)])
def test_groups_settle_and_keep_their_offsets_when_the_broker_is_killed(server, kills):
    chance = random.Random(SEED)
    with (
        ForeignGroup(server.port, "group", TOPIC, PARTITIONS) as group,
        watching_owners(server.port, "group"),
        Commits(server.port) as commits,
    ):
        for _ in range(2):
            group.start("confluent", "range")
        group.wait_until_shared()
        for number in range(kills):
            if number % 2:
                group.alive[0].leave()
            else:
                group.start("confluent", "range")
            Event().wait(chance.uniform(0, KILL_WITHIN_SECONDS))
            acknowledged = commits.acknowledged
            server.kill()
            server.start()
            assert committed(server.port) >= acknowledged
            start = time.monotonic()
            group.wait_until_shared()
            assert time.monotonic() - start < SETTLED_SECONDS
    assert commits.acknowledged > kills
