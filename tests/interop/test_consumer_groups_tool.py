"""Java's kafka-consumer-groups prints the same for our broker as for Apache Kafka 4.3."""

import re
import subprocess
from collections.abc import Callable, Iterator
from concurrent.futures import ThreadPoolExecutor
from datetime import UTC, datetime, timedelta
from pathlib import Path
from typing import Any

import pytest

from broker_stub import Broker
from tests.interop.apache_kafka import jars
from tests.interop.confluent_client import Confluent
from tests.interop.foreign_records import Record
from tests.interop.group_script import GroupScript
from tests.support.broker_load import create_topic
from tests.support.subscriptions import assignment, subscription

TOOL = "org.apache.kafka.tools.consumer.group.ConsumerGroupCommand"
TOPIC, OTHER = "tool-orders", "tool-payments"
PARTITIONS = 2
RECORDS = 10
# A second per record, from an hour ago: older ones would be deleted at once.
START = datetime.now(UTC).replace(microsecond=0) - timedelta(hours=1)
START_MS = int(START.timestamp() * 1000)
COMMAND_SECONDS = 100
LONG = {"session_timeout_ms": 900_000, "rebalance_timeout_ms": 900_000}

pytestmark = pytest.mark.timeout(400)


class Side:
    """One of the two brokers."""

    def __init__(self, broker: Any, folder: Path) -> None:
        self.bootstrap = broker.bootstrap_servers
        self.port = broker.port
        self._folder = folder

    def prepare(self) -> None:
        for topic in (TOPIC, OTHER):
            create_topic(self.bootstrap, topic, PARTITIONS)
        records = [
            Record(index % PARTITIONS, None, b"v", (), START_MS + index * 1000)
            for index in range(RECORDS * PARTITIONS)
        ]
        Confluent().produce(self.bootstrap, TOPIC, records)

    def tool(self, *arguments: str) -> str:
        """What the tool prints, without what differs from run to run."""
        arguments = tuple(one.replace("FOLDER", str(self._folder)) for one in arguments)
        command = ["java", "-Xmx256m", "-XX:TieredStopAtLevel=1", "-cp", f"{jars()}/*", TOOL]
        done = subprocess.run(
            [*command, "--bootstrap-server", self.bootstrap, *arguments],
            capture_output=True,
            text=True,
            timeout=COMMAND_SECONDS,
            check=False,
        )
        return self._normal(done.stdout + done.stderr) + f"\nexit {done.returncode}"

    def _normal(self, printed: str) -> str:
        printed = printed.replace(str(self._folder), "FOLDER")
        printed = re.sub(r"[0-9a-f]{8}(-[0-9a-f]{4}){3}-[0-9a-f]{12}", "UUID", printed)
        printed = printed.replace(f":{self.port}", ":PORT")
        lines = (" ".join(line.split()) for line in printed.splitlines())
        kept = [line for line in lines if line and not line.startswith(("at ", "SLF4J"))]
        # Headings first, then sorted: the tool lists members in the order of their random ids.
        return "\n".join(sorted(kept, key=lambda line: (not line.startswith("GROUP"), line)))


@pytest.fixture(scope="module")
def sides(apache: Any, tmp_path_factory: pytest.TempPathFactory) -> Iterator[tuple[Side, Side]]:
    config = {"group.min.session.timeout.ms": 500, "offsets.topic.num.partitions": 5}
    with Broker(config=config) as broker:
        both = tuple(Side(one, tmp_path_factory.mktemp("tool")) for one in (apache, broker))
        for side in both:
            side.prepare()
        yield both  # type: ignore[misc]


def on_both(sides: tuple[Side, Side], play: Callable[[Side], dict[str, str]]) -> None:
    """Run the same commands on both brokers at once; all must print the same."""
    with ThreadPoolExecutor(2) as pool:
        theirs, ours = pool.map(play, sides)
    assert ours == theirs


def stable_group(script: GroupScript) -> None:
    """A dynamic and a static member that share the partitions; offsets of one are committed."""
    script.join("a", metadata=subscription(TOPIC), **LONG)
    script.sync("a", 1, assignments={"a": assignment()})
    script.start_join("b", metadata=subscription(TOPIC), group_instance_id="pod-1", **LONG)
    while script.heartbeat("a", 1) != 27:
        script.pause(0.01)
    script.join("a", metadata=subscription(TOPIC), **LONG)
    script.joined("b")
    script.start_sync("b", 2, group_instance_id="pod-1")
    halves = [assignment(**{TOPIC: [index]}) for index in range(PARTITIONS)]
    script.sync("a", 2, assignments={"a": halves[0], "b": halves[1]})
    script.synced("b")
    assert script.commit("a", 2, topic=TOPIC, offset=4, metadata="note") == 0


def commit_all(script: GroupScript, topic: str = TOPIC, offset: int = 5) -> None:
    """Offsets of a group without members."""
    for partition in range(PARTITIONS):
        assert script.commit("", -1, topic=topic, partition=partition, offset=offset) == 0


def test_a_stable_group_is_listed_and_described(sides):
    def play(side: Side) -> dict[str, str]:
        group = ("--describe", "--group", "tool-stable")
        with GroupScript(side.port, "tool-stable") as script:
            stable_group(script)
            return {
                "offsets": side.tool(*group),
                "offsets verbose": side.tool(*group, "--offsets", "--verbose"),
                "members": side.tool(*group, "--members"),
                "members verbose": side.tool(*group, "--members", "--verbose"),
                "state": side.tool(*group, "--state"),
                "state verbose": side.tool(*group, "--state", "--verbose"),
                "reset": side.tool(
                    "--reset-offsets", "--group", "tool-stable", "--topic", TOPIC,
                    "--to-earliest", "--execute",
                ),
                "delete": side.tool("--delete", "--group", "tool-stable"),
                "delete offsets": side.tool(
                    "--delete-offsets", "--group", "tool-stable", "--topic", TOPIC
                ),
            }  # fmt: skip

    on_both(sides, play)


def test_groups_are_listed_with_states_and_types(sides):
    def only_mine(printed: str) -> str:
        kept = ("GROUP", "tool-listed", "exit", "Error")
        return "\n".join(line for line in printed.splitlines() if line.startswith(kept))

    def play(side: Side) -> dict[str, str]:
        with GroupScript(side.port, "tool-listed") as script:
            commit_all(script)
            commands = {
                "list": ("--list",),
                "state": ("--list", "--state"),
                "state empty": ("--list", "--state", "Empty"),
                "type": ("--list", "--type"),
                "both": ("--list", "--type", "--state", "empty"),
                "missing": ("--describe", "--group", "tool-missing"),
                "missing state": ("--describe", "--group", "tool-missing", "--state"),
                "describe": ("--describe", "--group", "tool-listed"),
                "members": ("--describe", "--group", "tool-listed", "--members"),
            }
            return {name: only_mine(side.tool(*command)) for name, command in commands.items()}

    on_both(sides, play)


RESETS = {
    "earliest": ("--to-earliest",),
    "latest": ("--to-latest",),
    "current": ("--to-current",),
    "offset": ("--to-offset", "3"),
    "offset too high": ("--to-offset", "1000"),
    "forward": ("--shift-by", "2"),
    "back too far": ("--shift-by", "-100"),
    "datetime": (
        "--to-datetime",
        (START + timedelta(seconds=6.5)).strftime("%Y-%m-%dT%H:%M:%S.500"),
    ),
    "duration": ("--by-duration", "PT1S"),
}


@pytest.mark.parametrize("half", [0, 1])
def test_offsets_are_reset_by_every_way(sides, half):
    def play(side: Side) -> dict[str, str]:
        printed = {}
        with GroupScript(side.port, f"tool-reset-{half}") as script:
            commit_all(script)
            group = ("--reset-offsets", "--group", script.group_id, "--topic")
            for name, way in list(RESETS.items())[half::2]:
                printed[name] = side.tool(*group, TOPIC, *way, "--execute")
                printed[f"after {name}"] = str(sorted(script.committed().items()))
                commit_all(script)
            printed["dry"] = side.tool(*group, f"{TOPIC}:1", "--to-latest", "--dry-run")
            printed["after dry"] = str(sorted(script.committed().items()))
        return printed

    on_both(sides, play)


def test_offsets_are_exported_and_reset_from_a_file(sides):
    def play(side: Side) -> dict[str, str]:
        with GroupScript(side.port, "tool-file") as script:
            commit_all(script)
            group = ("--reset-offsets", "--group", "tool-file")
            path = Path(side._folder) / "offsets.csv"
            exported = side.tool(*group, "--topic", TOPIC, "--to-offset", "7", "--export")
            path.write_text("".join(f"{TOPIC},{index},7\n" for index in range(PARTITIONS)))
            reset = side.tool(*group, "--from-file", "FOLDER/offsets.csv", "--execute")
            return {
                "exported": exported,
                "reset": reset,
                "after": str(sorted(script.committed().items())),
                "all topics": side.tool(*group, "--all-topics", "--to-earliest", "--dry-run"),
            }

    on_both(sides, play)


def test_groups_and_offsets_are_deleted(sides):
    def play(side: Side) -> dict[str, str]:
        with GroupScript(side.port, "tool-deleted") as script:
            commit_all(script)
            commit_all(script, OTHER)
            group = ("--group", "tool-deleted")
            printed = {
                "one": side.tool("--delete-offsets", *group, "--topic", f"{TOPIC}:0"),
                "topics": side.tool("--delete-offsets", *group, "--topic", OTHER),
                "unknown": side.tool("--delete-offsets", *group, "--topic", "tool-no-topic"),
            }
            printed["left"] = str(sorted(script.committed().items()))
            printed["group"] = side.tool("--delete", *group)
            printed["again"] = side.tool("--delete", *group)
            printed["described"] = side.tool("--describe", *group)
            return printed

    on_both(sides, play)
