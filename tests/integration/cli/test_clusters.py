"""How commands find their cluster: profiles, Java's and kcat's files, options in any place."""

import re
from pathlib import Path

import pytest

from broker_stub import Broker
from pyclient.cli import exit_codes
from pyclient.cli.root import COMMANDS
from tests.support.command_line import Shell


@pytest.fixture
def unnamed(shell: Shell, monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> Shell:
    """A shell whose environment names no cluster; profiles are in `tmp_path`."""
    monkeypatch.delenv("PYCLIENT_BOOTSTRAP_SERVERS")
    monkeypatch.delenv("PYCLIENT_CONFIG")
    monkeypatch.setenv("XDG_CONFIG_HOME", str(tmp_path))
    return shell


def test_a_profile_names_a_cluster(unnamed: Shell, kafka_broker: Broker, tmp_path: Path) -> None:
    servers = kafka_broker.bootstrap_servers
    (tmp_path / "pyclient.toml").write_text(
        f'default = "dev"\n[profiles.dev]\nbootstrap.servers = "{servers}"\n'
        '[profiles.files]\nconfig-file = "client.properties"\n'
    )
    (tmp_path / "client.properties").write_text(f"bootstrap.servers={servers}\n")
    assert unnamed("topics", "list").code == 0
    assert unnamed("topics", "list", "--profile", "files").code == 0
    assert unnamed("--profile", "files", "topics", "list").code == 0
    absent = unnamed("topics", "list", "--profile", "prod")
    assert absent.code == 2
    assert "no profile 'prod'" in absent.err
    assert "it has dev, files" in absent.err


@pytest.mark.parametrize(
    "text",
    [
        "bootstrap.servers = {servers}\nlinger.ms = 5\nauto.offset.reset = earliest\n"
        "key.serializer = org.apache.kafka.common.serialization.StringSerializer\n",
        "metadata.broker.list={servers}\n# kcat's\nsocket.timeout.ms=9000\n"
        "queue.buffering.max.ms=5\ntopic.auto.offset.reset=earliest\nlog.connection.close=false\n",
    ],
    ids=["java", "kcat"],
)
def test_a_file_of_another_client_is_read_as_it_is(
    unnamed: Shell, kafka_broker: Broker, tmp_path: Path, text: str
) -> None:
    file = tmp_path / "client.conf"
    file.write_text(text.format(servers=kafka_broker.bootstrap_servers))
    assert unnamed("topics", "create", "orders", "-F", str(file)).code == 0
    assert unnamed("produce", "orders", "-F", str(file), stdin=b"a\n").code == 0
    assert unnamed("consume", "orders", "-F", str(file), "-B", "-e").out == "a\n"
    file.write_text(file.read_text() + "lingr.ms=5\n")
    wrong = unnamed("topics", "list", "-F", str(file))
    assert wrong.code == 2
    assert "no client has an option 'lingr.ms'; did you mean 'linger.ms'?" in wrong.err


def test_hints_name_commands_that_exist() -> None:
    hints = " ".join(hint for _, hint in exit_codes._HINTS)
    assert set(re.findall(r"`pyclient (\S+)", hints)) <= set(COMMANDS)
