"""Groups of Java's own verifiable consumer on `python -m broker_stub`."""

import json
from collections.abc import Iterator
from pathlib import Path

import pytest

from tests.interop.apache_kafka import jars
from tests.interop.group_processes import (
    ForeignGroup,
    ForeignProcess,
    group_server,
    watching_owners,
)
from tests.interop.test_foreign_groups_matrix import PARTITIONS, TOPIC, Records
from tests.support.server_process import ServerProcess

CONSUMER = "org.apache.kafka.tools.VerifiableConsumer"
ASSIGNORS = {
    "range": "RangeAssignor",
    "roundrobin": "RoundRobinAssignor",
    "sticky": "StickyAssignor",
    "cooperative-sticky": "CooperativeStickyAssignor",
}
SESSION_MS = 4_000

pytestmark = [pytest.mark.usefixtures("kafka_jars"), pytest.mark.timeout(400)]


@pytest.fixture
def server(tmp_path: Path) -> Iterator[ServerProcess]:
    with group_server(tmp_path, TOPIC, PARTITIONS) as running:
        yield running


class JavaMember(ForeignProcess):
    """One verifiable consumer; it prints what it is assigned and what it reads, in JSON."""

    def take(self, line: str) -> None:
        event = json.loads(line)
        partitions = frozenset(
            (one["topic"], one["partition"])
            for one in event.get("partitions", ())
            if "topic" in one
        )
        if event["name"] == "partitions_assigned":
            self.assigned |= partitions
        elif event["name"] == "partitions_revoked":
            self.assigned -= partitions
        elif event["name"] == "record_data":
            self.values.append(event["value"])


def java_classes(assignors: str) -> str:
    """The classes of assignors, whose names are separated by commas."""
    package = "org.apache.kafka.clients.consumer"
    return ",".join(f"{package}.{ASSIGNORS[name]}" for name in assignors.split(","))


def java_member(group: ForeignGroup, number: int, assignor: str, folder: Path) -> ForeignProcess:
    options = folder / f"{number}.properties"
    options.write_text("heartbeat.interval.ms=500\nmax.poll.interval.ms=15000\n")
    command = ["java", "-Xmx128m", "-XX:TieredStopAtLevel=1", "-cp", f"{jars()}/*", CONSUMER]
    arguments = {
        "bootstrap-server": f"127.0.0.1:{group.port}",
        "topic": group.topic,
        "group-id": group.group,
        "session-timeout": str(SESSION_MS),
        "assignment-strategy": java_classes(assignor),
        "reset-policy": "earliest",
        "command-config": str(options),
    }
    for name, value in arguments.items():
        command += [f"--{name}", value]
    return group.add(JavaMember(f"java-{number}", [*command, "--verbose"]))


@pytest.mark.parametrize(
    "assignor",
    [
        "cooperative-sticky",
        pytest.param("range", marks=pytest.mark.soak),
        pytest.param("sticky", marks=pytest.mark.soak),
    ],
)
def test_java_groups_of_three_go_on_when_one_is_killed(server, assignor, tmp_path):
    with (
        watching_owners(server.port, "group") as sizes,
        Records(server.bootstrap_servers) as records,
        ForeignGroup(server.port, "group", TOPIC, PARTITIONS) as group,
    ):
        members = [java_member(group, number, assignor, tmp_path) for number in range(3)]
        group.wait_until_shared()
        members[1].kill()
        group.wait_until_shared()
        java_member(group, 3, assignor, tmp_path)
        group.wait_until_shared()
        members[0].leave()
        group.wait_until_shared()
        group.wait_until_read(records.stop())
    assert {2, 3} <= set(sizes)
