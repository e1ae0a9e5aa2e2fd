"""macOS and Windows, as far as Linux can show them: without what those systems lack."""

import os
import signal
import subprocess
import sys
from contextlib import AbstractContextManager
from pathlib import Path

import pytest

from broker_stub import Broker
from broker_stub.testing.tls import TlsCertificates
from pyclient import KafkaConsumer, KafkaProducer
from tests.support.other_systems import MACOS, WINDOWS
from tests.support.server_process import serving

ROOT = Path(__file__).parents[2]

ROUND_TRIP = """
from pyclient import KafkaAdminClient, KafkaConsumer, KafkaProducer
options = {options!r}
large = bytes(300_000)  # more than one packet, and more than what is joined
with KafkaProducer(**options) as producer:
    for value in (b"small", large):
        producer.send("orders", value, key=b"k").get(timeout=30)
with KafkaConsumer("orders", **options, auto_offset_reset="earliest", group_id="g") as consumer:
    values = []
    while len(values) < 2:
        values += [r.value for rs in consumer.poll(timeout_ms=1000).values() for r in rs]
assert values == [b"small", large]
with KafkaAdminClient(**options) as admin:
    print(*admin.list_topics())
"""


def run(program: str, **environment: str) -> subprocess.CompletedProcess[str]:
    return subprocess.run(
        [sys.executable, "-c", program],
        cwd=ROOT,
        env={**os.environ, **environment},
        capture_output=True,
        text=True,
        timeout=100,
        check=False,
    )


@pytest.mark.parametrize("implementation", ["native", "python"])
@pytest.mark.parametrize("system", [MACOS, WINDOWS], ids=["macos", "windows"])
def test_a_client_publishes_and_consumes(
    kafka_broker: Broker, system: str, implementation: str
) -> None:
    options = {"bootstrap_servers": kafka_broker.bootstrap_servers}
    done = run(system + ROUND_TRIP.format(options=options), PYCLIENT_IMPL=implementation)
    assert "orders" in done.stdout, done.stderr
    assert done.returncode == 0


@pytest.mark.parametrize("system", [MACOS, WINDOWS], ids=["macos", "windows"])
def test_tls_files_are_loaded_and_none_is_left_behind(
    kafka_tls_certificates: TlsCertificates, system: str, tmp_path: Path
) -> None:
    config = {**kafka_tls_certificates.broker_config, "ssl.client.auth": "required"}
    with Broker(config=config) as broker:
        options = {
            "bootstrap_servers": broker.bootstrap_servers,
            **kafka_tls_certificates.client_options_with_certificate,
        }
        done = run(system + ROUND_TRIP.format(options=options), TMPDIR=str(tmp_path))
    assert "orders" in done.stdout, done.stderr
    assert list(tmp_path.iterdir()) == []


def broker_on_macos(
    data_dir: Path,
) -> AbstractContextManager[tuple[subprocess.Popen[str], str]]:
    program = (
        f"{MACOS}\nfrom broker_stub.__main__ import main\n"
        f"sys.exit(main(['--port', '0', '--data-dir', {str(data_dir)!r}]))"
    )
    return serving([sys.executable, "-c", program], cwd=ROOT)


@pytest.mark.parametrize("number", [signal.SIGTERM, signal.SIGINT, signal.SIGHUP])
def test_a_broker_on_macos_serves_until_it_is_told_to_stop(
    tmp_path: Path, number: signal.Signals
) -> None:
    with broker_on_macos(tmp_path) as (process, address):
        with KafkaProducer(bootstrap_servers=address) as producer:
            producer.send("orders", b"v").get(timeout=30)
        process.send_signal(number)
        assert process.communicate(timeout=30) == ("", "")
        assert process.returncode == 0
    with (
        broker_on_macos(tmp_path) as (_, address),
        KafkaConsumer(
            "orders", bootstrap_servers=address, auto_offset_reset="earliest"
        ) as consumer,
    ):
        assert next(consumer).value == b"v"


def test_a_data_folder_on_macos_is_kept_from_a_second_broker(tmp_path: Path) -> None:
    with broker_on_macos(tmp_path):
        second = run(
            f"{MACOS}\nfrom broker_stub.__main__ import main\n"
            f"sys.exit(main(['--port', '0', '--data-dir', {str(tmp_path)!r}]))"
        )
    assert second.returncode == 1
    assert second.stderr == f"broker_stub: {tmp_path} is in use: another broker has locked it\n"


def test_the_broker_on_windows_says_where_it_runs() -> None:
    imported = run(f"{WINDOWS}\nfrom broker_stub import Broker")
    assert imported.stderr.splitlines()[-1] == (
        "ImportError: the broker runs on Linux and macOS only; on Windows, start it in WSL or in"
        " a container and connect to that"
    )
    started = run(f"{WINDOWS}\nfrom broker_stub.__main__ import main\nsys.exit(main([]))")
    assert started.returncode == 1
    assert started.stderr.startswith("broker_stub: the broker runs on Linux and macOS only")
    assert "Traceback" not in started.stderr


def test_the_fixtures_can_be_loaded_on_windows() -> None:
    # pytest loads them into every run where the package is installed.
    done = run(f"{WINDOWS}\nimport broker_stub.testing.pytest_plugin; print('loaded')")
    assert done.stdout == "loaded\n", done.stderr


def test_a_missing_call_of_the_system_is_named_when_a_client_is_imported() -> None:
    done = run("import atexit, logging; del atexit.register; from pyclient import KafkaProducer")
    assert done.stderr.splitlines()[-1] == (
        "ImportError: cannot import pyclient.producer.producer: module 'atexit' has no attribute"
        " 'register'"
    )
