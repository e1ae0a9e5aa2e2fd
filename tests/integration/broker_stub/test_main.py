"""`python -m broker_stub`, as a process of its own."""

import os
import signal
import subprocess
import sys
from importlib import import_module
from pathlib import Path

import pytest

from broker_stub import Broker
from broker_stub.config.keys import BROKER_DEFINITION
from pyclient.protocol.messages.metadata import MetadataRequest, MetadataRequestTopic
from pyclient.version import __version__
from tests.integration.broker_stub.raw_client import RawClient
from tests.support.server_process import ROOT, ServerProcess, serving


def command(*arguments: str | Path) -> list[str]:
    return [sys.executable, "-m", "broker_stub", *map(str, arguments)]


def partitions_of(port: int, topic: str) -> int:
    request = MetadataRequest(topics=[MetadataRequestTopic(name=topic)])
    with RawClient(port) as client:
        return len(client.ask(request, 9).topics[0].partitions)


@pytest.mark.parametrize("stop", [signal.SIGTERM, signal.SIGINT, signal.SIGHUP])
def test_a_signal_stops_it_cleanly(tmp_path, stop):
    with ServerProcess("--data-dir", tmp_path) as server:
        assert partitions_of(server.port, "orders") == 1
        assert server.signal(stop) == 0
    assert (tmp_path / ".kafka_cleanshutdown").exists()


def test_a_broker_that_is_to_outlive_its_terminal_does():
    with ServerProcess(wrapper=["nohup"]) as server:
        os.kill(server.pid, signal.SIGHUP)
        assert partitions_of(server.port, "orders") == 1
        assert server.signal(signal.SIGTERM) == 0


def test_who_can_not_be_told_that_it_serves_is_not_left_waiting(tmp_path):
    with open("/dev/full", "w") as full:
        ended = subprocess.run(
            command("--port=0", "--data-dir", tmp_path),
            cwd=ROOT,
            stdout=full,
            stderr=subprocess.PIPE,
            text=True,
            timeout=60,
            check=False,
        )
    assert ended.returncode == 1
    assert ended.stderr == "broker_stub: cannot say that it serves: No space left on device\n"
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


def test_a_broker_that_ends_by_itself_ends_the_process(monkeypatch, capsys):
    main = import_module("broker_stub.__main__")
    monkeypatch.setattr(main, "_CHECK_SECONDS", 0)
    with Broker() as broker:
        broker.stop()
        assert main._wait(broker, {signal.SIGUSR1}) == 1
    assert "serving thread has died" in capsys.readouterr().err


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


@pytest.mark.parametrize(
    ("arguments", "told"),
    [
        (["--port=70000"], "the port must be 0 to 65535"),
        (["--config", "num.partitions=many"], "an integer of 32 bits, at least 1"),
        (["--config", "nothing.of=kind"], "broker-stub --list-options lists all"),
        (["--config", "listeners=9092"], "NAME://host:port"),
        (
            ["--host=0.0.0.0"],
            "advertise another address, for example advertised.listeners=PLAINTEXT://",
        ),
        (["--host=nowhere.invalid"], "can't listen on port"),
        (
            ["--host=127.0.0.1", "--config", "listeners=PLAINTEXT://:0"],
            "a host and a port, or",
        ),
        (["--data-dir=x", "--config", "log.dirs=y"], "a data folder or log.dirs, but not both"),
        (["--properties=/nowhere"], "can't read /nowhere: No such file or directory\n"),
        (["--data-dir="], "the data folder is an empty string"),
        (["--data-dir=/dev/null"], "cannot use /dev/null: File exists\n"),
    ],
)
def test_what_can_not_be_is_told_in_words(arguments, told):
    assert told in failure(*arguments)


def test_a_folder_in_use_is_told_in_one_line(tmp_path):
    with Broker(tmp_path):
        told = failure("--port=0", "--data-dir", tmp_path)
    assert told.startswith(f"broker_stub: {tmp_path} is in use")
    assert told.count("\n") == 1


def test_a_file_of_apache_kafka_works_and_what_has_no_effect_is_named(tmp_path):
    properties = tmp_path / "server.properties"
    properties.write_text(
        "process.roles=broker,controller\n"
        "node.id=1\n"
        "controller.quorum.bootstrap.servers=localhost:9093\n"
        "listeners=PLAINTEXT://127.0.0.1:0,CONTROLLER://127.0.0.1:0\n"
        "inter.broker.listener.name=PLAINTEXT\n"
        "controller.listener.names=CONTROLLER\n"
        "listener.security.protocol.map=CONTROLLER:PLAINTEXT,PLAINTEXT:PLAINTEXT,SSL:SSL\n"
        "num.network.threads=3\n"
        f"log.dirs={tmp_path / 'kraft-combined-logs'}\n"
        "num.partitions=5\n"
        "offsets.topic.replication.factor=1\n"
        "log.retention.hours=168\n"
    )
    with serving(command("--properties", properties), cwd=ROOT) as (process, address):
        assert partitions_of(int(address.partition(":")[2]), "orders") == 5
        process.terminate()
        _, errors = process.communicate(timeout=30)
    assert process.returncode == 0
    assert errors == (
        "these options have no effect on this broker: controller.quorum.bootstrap.servers, "
        "inter.broker.listener.name, num.network.threads, process.roles\n"
    )


def test_requests_are_not_kept_by_a_server():
    # What a test wants to look at costs every request a little, and nobody looks here.
    main = import_module("broker_stub.__main__")
    broker = main._broker(main._parser().parse_args(["--port", "0"]))
    with broker, RawClient(broker.port) as client:
        client.ask(MetadataRequest(topics=None), 9)
        assert broker.requests.count() == 0


def test_every_option_is_listed_with_its_meaning():
    result = subprocess.run(
        command("--list-options"), cwd=ROOT, capture_output=True, text=True, timeout=60, check=True
    )
    for name, row in BROKER_DEFINITION.keys.items():
        assert f"{name} (" in result.stdout
        assert row.doc in result.stdout


def test_a_list_of_options_that_nobody_reads_to_its_end_is_no_error():
    reader, writer = os.pipe()
    os.close(reader)
    with os.fdopen(writer, "w") as closed:
        result = subprocess.run(
            command("--list-options"), cwd=ROOT, stdout=closed, stderr=subprocess.PIPE, timeout=60
        )
    assert (result.returncode, result.stderr) == (0, b"")


@pytest.mark.parametrize("level", ["debug", "error"])
def test_the_log_level_debug_logs_every_request(level):
    with ServerProcess("--log-level", level) as server:
        assert partitions_of(server.port, "orders") == 1
        assert server.signal(signal.SIGTERM) == 0
        logged = "DEBUG broker_stub.request_trace: MetadataRequest v9 of " in server.errors()
    assert logged == (level == "debug")


def test_its_version_is_the_packages():
    result = subprocess.run(
        command("--version"), cwd=ROOT, capture_output=True, text=True, timeout=60, check=True
    )
    assert result.stdout == f"broker_stub {__version__}\n"


def test_help_is_worth_reading():
    result = subprocess.run(
        command("--help"), cwd=ROOT, capture_output=True, text=True, timeout=60, check=True
    )
    options = ("--port", "--host", "--data-dir", "--config", "--properties", "--list-options")
    for option in options:
        assert option in result.stdout
    assert "broker-stub --data-dir" in result.stdout
