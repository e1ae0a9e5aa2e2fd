"""`pyclient perf --client`: the same load with ours and its peers, and one table."""

import pytest

from broker_stub import Broker
from pyclient.cli.main import main
from pyclient.perf.clients import NAMES
from tests.interop.apache_kafka import jars


def test_every_client_sends_the_load_and_reads_it(
    kafka_jars: None, capsys: pytest.CaptureFixture[str], kafka_broker: Broker
) -> None:
    kafka_broker.create_topic("t", partitions=2)
    clients = [argument for name in NAMES for argument in ("--client", name)]
    servers = ["--bootstrap-server", kafka_broker.bootstrap_servers, "--topic", "t"]
    arguments = ["--num-records", "300", "--throughput", "3000", "--warmup-records", "10"]
    home = ["--kafka-home", str(jars())]
    assert main(["perf", "produce", *servers, *arguments, *clients, *home]) == 0
    table = capsys.readouterr().out.split("\n\n")[1].splitlines()
    assert [line.split()[:2] for line in table[1:]] == [[name, "300"] for name in NAMES]
    assert len(kafka_broker.records("t")) == 5 * 310
    reading = ["--messages", "1550"]
    assert main(["perf", "consume", *servers, *reading, *clients, *home]) == 0
    header, *lines = capsys.readouterr().out.splitlines()
    place = header.split(", ").index("data.consumed.in.nMsg")
    figures = [line.split(", ") for line in lines]
    assert [(each[place], each[-1]) for each in figures] == [("1550", name) for name in NAMES]
