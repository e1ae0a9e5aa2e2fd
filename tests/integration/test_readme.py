"""The README's examples run as they stand."""

import os
import re
import subprocess
import sys
from pathlib import Path
from typing import Any

import pytest

from broker_stub import Broker
from tests.support.readme import README, example


def test_the_application_runs(kafka_broker: Broker, capsys: pytest.CaptureFixture[str]) -> None:
    exec(example("In an application", kafka_broker.bootstrap_servers), {})
    assert capsys.readouterr().out == "b'table 7' b'one espresso'\n"


def test_the_test_passes(kafka_broker: Broker) -> None:
    namespace: dict[str, Any] = {}
    exec(example("In a test", kafka_broker.bootstrap_servers), namespace)
    namespace["test_an_order_is_published"](kafka_broker)


def test_the_commands_for_a_terminal_print_the_record(kafka_broker: Broker) -> None:
    section = README.read_text().split("## In a terminal\n", 1)[1]
    lines = section.split("```sh\n", 1)[1].split("```", 1)[0].splitlines()
    install, start, *commands = lines
    assert (install, start) == ("pip install '.[cli]'", "pyclient broker &")  # both are done
    environment = {
        **os.environ,
        "PATH": f"{Path(sys.executable).parent}:{os.environ['PATH']}",
        "PYCLIENT_BOOTSTRAP_SERVERS": kafka_broker.bootstrap_servers,
    }
    done = subprocess.run(
        ["bash", "-ec", "\n".join(commands)],
        env=environment, capture_output=True, text=True, check=True,
    )  # fmt: skip
    assert done.stdout.endswith("\none espresso\n")


def test_every_file_it_links_to_is_there() -> None:
    for target in re.findall(r"\]\(([^)#]+)\)", README.read_text()):
        assert (README.parent / target).exists(), target
