"""`python -m broker_stub`, as a process of its own."""

from __future__ import annotations

import signal
import subprocess
import sys
from pathlib import Path

import pytest

from broker_stub import Broker
from pyclient.protocol.messages.metadata import MetadataRequest, MetadataRequestTopic
from tests.integration.broker_stub.raw_client import RawClient
from tests.support.server_process import ROOT, ServerProcess


def command(*arguments: str | Path) -> list[str]:
    return [sys.executable, "-m", "broker_stub", *map(str, arguments)]


def partitions_of(port: int, topic: str) -> int:
    request = MetadataRequest(topics=[MetadataRequestTopic(name=topic)])
    with RawClient(port) as client:
        return len(client.ask(request, 9).topics[0].partitions)


@pytest.mark.parametrize("stop", [signal.SIGTERM, signal.SIGINT])
def test_a_signal_stops_it_cleanly(tmp_path, stop):
    with ServerProcess("--data-dir", tmp_path) as server:
        assert partitions_of(server.port, "orders") == 1
        assert server.signal(stop) == 0
    assert (tmp_path / ".kafka_cleanshutdown").exists()


def test_what_was_kept_is_there_again_after_kill_9(tmp_path):
    with ServerProcess("--data-dir", tmp_path, "--config", "num.partitions=3") as server:
        partitions_of(server.port, "orders")
        server.kill()
    with ServerProcess("--data-dir", tmp_path) as server:
        assert partitions_of(server.port, "orders") == 3


def test_options_come_from_a_file_and_the_command_line_goes_before_it(tmp_path):
    properties = tmp_path / "server.properties"
    properties.write_text("# a comment\nnum.partitions = 2\n\nnode.id=7\n")
    with ServerProcess("--properties", properties, "--config", "num.partitions=4") as server:
        assert partitions_of(server.port, "orders") == 4
        with RawClient(server.port) as client:
            assert client.ask(MetadataRequest(topics=None), 9).brokers[0].node_id == 7


def failure(*arguments: str | Path) -> str:
    result = subprocess.run(
        command(*arguments), cwd=ROOT, capture_output=True, text=True, timeout=60, check=False
    )
    assert result.returncode != 0
    assert "Traceback" not in result.stderr
    return result.stderr


def test_a_port_in_use_is_told_in_one_line():
    with Broker() as broker:
        told = failure("--port", str(broker.port))
    assert told == f"broker_stub: port {broker.port} on 127.0.0.1 is in use by another process\n"


def test_a_misspelt_option_is_told_with_the_nearest_name():
    assert "did you mean 'num.partitions'?" in failure("--port=0", "--config", "num.partition=3")


def test_an_option_without_a_value_is_told(tmp_path):
    assert "key=value" in failure("--port=0", "--config", "num.partitions")
    properties = tmp_path / "server.properties"
    properties.write_text("num.partitions=1\nnonsense\n")
    assert "line 2" in failure("--port=0", "--properties", properties)


def test_help_is_worth_reading():
    result = subprocess.run(
        command("--help"), cwd=ROOT, capture_output=True, text=True, timeout=60, check=True
    )
    for option in ("--port", "--host", "--data-dir", "--config", "--properties"):
        assert option in result.stdout
