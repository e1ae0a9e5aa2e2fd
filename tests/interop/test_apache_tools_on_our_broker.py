"""Apache Kafka's command-line tools on our broker and on Apache Kafka print the same."""

import json
import re
from collections.abc import Iterator, Sequence
from pathlib import Path

import pytest

from broker_stub import Broker
from pyclient import KafkaAdminClient
from pyclient.admin import NewTopic
from tests.interop.apache_kafka import run_tool

TOPIC = "tools.two"
FOLDER = r'(?<=\[")/[^"]+'

_TOOLS = "org.apache.kafka.tools."


@pytest.fixture(scope="module")
def servers(apache) -> Iterator[tuple[str, str]]:
    """Where ours listens, and where theirs does; both have a topic of two partitions."""
    with Broker() as broker:
        for server in (broker.bootstrap_servers, apache.bootstrap_servers):
            with KafkaAdminClient(bootstrap_servers=server) as admin:
                admin.create_topics([NewTopic(TOPIC, 2, 1)])
        yield broker.bootstrap_servers, apache.bootstrap_servers


def printed(tool: str, server: str, *arguments: str) -> str:
    return run_tool(_TOOLS + tool, ["--bootstrap-server", server, *arguments])


def both(servers: tuple[str, str], tool: str, *arguments: str) -> tuple[str, str]:
    ours, theirs = (printed(tool, server, *arguments) for server in servers)
    return ours, theirs


def without_numbers(text: str) -> str:
    return re.sub(r"\d+", "N", text)


@pytest.mark.parametrize(
    "arguments",
    [
        ["--election-type", "preferred", "--topic", TOPIC, "--partition", "0"],
        ["--election-type", "unclean", "--topic", TOPIC, "--partition", "1"],
        ["--election-type", "preferred", "--all-topic-partitions"],
    ],
    ids=str,
)
def test_leader_election(servers, arguments: Sequence[str]):
    ours, theirs = both(servers, "LeaderElectionCommand", *arguments)
    assert ours == theirs


def test_metadata_quorum(servers):
    ours, theirs = both(servers, "MetadataQuorumCommand", "describe", "--replication")
    assert without_numbers(ours).split() == without_numbers(theirs).split()
    assert "Leader" in ours
    ours, theirs = both(servers, "MetadataQuorumCommand", "describe", "--status")
    kept = ("LeaderId", "MaxFollowerLag", "CurrentObservers")
    of_interest = [
        [line for line in text.splitlines() if line.startswith(kept)] for text in (ours, theirs)
    ]
    assert of_interest[0] == of_interest[1]
    assert len(of_interest[0]) == 4  # "MaxFollowerLagTimeMs", too


def test_features(servers):
    def levels(text: str) -> str:
        (line,) = (line for line in text.splitlines() if "Feature: metadata.version" in line)
        return line.partition("FinalizedVersionLevel:")[2].split()[0]

    ours, theirs = both(servers, "FeatureCommand", "describe")
    assert levels(ours) == levels(theirs) == "4.3-IV0"
    ours, theirs = both(servers, "FeatureCommand", "upgrade", "--feature", "metadata.version=30")
    assert ours == theirs


def test_reassigning_partitions(servers, tmp_path: Path):
    plan = tmp_path / "plan.json"
    moves = [{"topic": TOPIC, "partition": 0, "replicas": [1], "log_dirs": ["any"]}]
    plan.write_text(json.dumps({"version": 1, "partitions": moves}))
    file = ["--reassignment-json-file", str(plan)]
    tool = "reassign.ReassignPartitionsCommand"
    for arguments in (["--execute", *file], ["--verify", *file], ["--list"], ["--cancel", *file]):
        ours, theirs = both(servers, tool, *arguments)
        assert re.sub(FOLDER, "DIR", ours) == re.sub(FOLDER, "DIR", theirs), arguments
        assert ours
