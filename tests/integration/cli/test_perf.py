"""`pyclient perf` as a user runs it: in this process, on an embedded or a given broker."""

import re

import pytest

from broker_stub import Broker
from pyclient.cli.main import main


def test_produce_reports_as_kafkas_tool_does(capsys: pytest.CaptureFixture[str]) -> None:
    assert main(["perf", "produce", "--num-records", "2000", "--record-size", "50"]) == 0
    last = capsys.readouterr().out.splitlines()[-1]
    assert re.fullmatch(
        r"2000 records sent, [\d.]+ records/sec \([\d.]+ MB/sec\), [\d.]+ ms avg latency, "
        r"[\d.]+ ms max latency, [\d.]+ ms 50th, [\d.]+ ms 95th, [\d.]+ ms 99th, "
        r"[\d.]+ ms 99\.9th\.",
        last,
    )


def test_consume_reports_as_kafkas_tool_does(
    capsys: pytest.CaptureFixture[str], kafka_broker: Broker
) -> None:
    servers = kafka_broker.bootstrap_servers
    common = ["--bootstrap-server", servers, "--topic", "t"]
    assert main(["perf", "produce", "--num-records", "1000", *common]) == 0
    capsys.readouterr()
    assert main(["perf", "consume", "--messages", "1000", *common]) == 0
    header, figures = capsys.readouterr().out.splitlines()
    values = dict(zip(header.split(", "), figures.split(", "), strict=True))
    assert values["data.consumed.in.nMsg"] == "1000"
    assert float(values["data.consumed.in.MB"]) == pytest.approx(1000 * 100 / 1024 / 1024, abs=1e-4)


def test_too_few_records_end_in_an_error_that_counts_them(
    capsys: pytest.CaptureFixture[str], kafka_broker: Broker
) -> None:
    kafka_broker.create_topic("t")
    arguments = ["--bootstrap-server", kafka_broker.bootstrap_servers, "--topic", "t"]
    assert main(["perf", "consume", "--messages", "5", "--timeout", "200", *arguments]) == 3
    assert "0 of 5 records read from t, then nothing for 200 ms" in capsys.readouterr().err


def test_a_misspelt_property_is_one_line(capsys: pytest.CaptureFixture[str]) -> None:
    arguments = ["--num-records", "1", "--config", "linger.mss=3"]
    assert main(["perf", "produce", *arguments]) == 2
    error = capsys.readouterr().err
    assert "did you mean 'linger.ms'" in error
    assert "Traceback" not in error
