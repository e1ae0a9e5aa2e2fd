"""`pyclient perf` as a user runs it: in this process, on an embedded or a given broker."""

import json
import re
import signal
import subprocess
import sys
from pathlib import Path

import pytest

from broker_stub import Broker
from broker_stub.testing import Nth
from pyclient.cli.main import main
from pyclient.perf import FixedRate
from pyclient.perf.produce import ProduceLoad, run_produce
from pyclient.protocol.messages.produce import ProduceRequest


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


def test_a_run_is_written_as_json_and_as_pages(tmp_path: Path, kafka_broker: Broker) -> None:
    results = [tmp_path / "first.json", tmp_path / "second.json"]
    for result in results:
        arguments = ["--num-records", "500", "--throughput", "5000", "--arrival", "poisson"]
        arguments += ["--key-distribution", "zipf", "--compressibility", "0.5"]
        arguments += ["--warmup-records", "10", "--result", str(result)]
        arguments += ["--report", str(tmp_path / "run.html"), "--topic", "t"]
        servers = ["--bootstrap-server", kafka_broker.bootstrap_servers]
        assert main(["perf", "produce", *servers, *arguments]) == 0
    document = json.loads(results[0].read_text())
    assert (document["records"], document["bytes"], document["failed"]) == (500, 50_000, 0)
    assert document["latency_ms"]["p99.9"] <= document["latency_ms"]["max"] * 1.001
    records = kafka_broker.records("t")
    assert len(records) == 2 * 510
    assert len({one.key for one in records}) > 10
    page = tmp_path / "both.html"
    assert main(["perf", "report", *map(str, results), "-o", str(page)]) == 0
    text = page.read_text()
    assert "first" in text
    assert "second" in text
    assert text.count("<svg") == 9


def test_ctrl_c_prints_what_was_done(kafka_broker: Broker) -> None:
    command = [sys.executable, "-m", "pyclient", "perf", "produce", "--num-records", "10000000"]
    command += ["--throughput", "200", "--bootstrap-server", kafka_broker.bootstrap_servers]
    root = Path(__file__).parents[3]
    with subprocess.Popen(command, stdout=subprocess.PIPE, text=True, cwd=root) as process:
        try:
            assert process.stdout is not None
            assert "records sent" in process.stdout.readline()
            process.send_signal(signal.SIGINT)
            rest, _ = process.communicate(timeout=60)
        finally:
            process.kill()
    assert re.search(r"^\d+ records sent, .* ms 99\.9th\.$", rest, re.MULTILINE)
    assert process.returncode == 130


def test_a_stalled_broker_shows_in_the_percentiles_of_a_fixed_rate(kafka_broker: Broker) -> None:
    kafka_broker.create_topic("t")
    options = {"bootstrap_servers": kafka_broker.bootstrap_servers, "linger_ms": 0}
    load = ProduceLoad("t", 2000, [b"v"], schedule=FixedRate(1000), warm_up=1)
    kafka_broker.faults.delay(ProduceRequest, 1000, Nth(100))
    result = run_produce(options, load)
    # Half of the run's records were due during that second, and waited for the rest of it.
    assert result.max_ms >= 1000
    assert result.percentile_ms(75) >= 300
    assert result.records == 2000


def test_several_processes_send_one_load(tmp_path: Path, kafka_broker: Broker) -> None:
    arguments = ["--num-records", "501", "--throughput", "2000", "--processes", "2"]
    arguments += ["--warmup-records", "3", "--result", str(tmp_path / "run.json"), "--topic", "t"]
    servers = ["--bootstrap-server", kafka_broker.bootstrap_servers]
    assert main(["perf", "produce", *servers, *arguments]) == 0
    document = json.loads((tmp_path / "run.json").read_text())
    assert document["records"] == 501
    assert len(kafka_broker.records("t")) == 504
    assert document["elapsed_ms"] >= 240  # 250 records of each, at half of the rate


def test_a_client_that_cannot_run_is_one_line(capsys: pytest.CaptureFixture[str]) -> None:
    arguments = ["--num-records", "1", "--client", "java", "--kafka-home", "/nowhere"]
    assert main(["perf", "produce", *arguments]) == 2
    error = capsys.readouterr().err
    assert error.count("\n") == 1
    assert "has no kafka-tools jar" in error or "needs `java` on the PATH" in error
