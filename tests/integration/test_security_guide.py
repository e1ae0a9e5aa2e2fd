"""The examples of docs/security.md run as they stand."""

import re
import shutil
from pathlib import Path
from typing import Any

import pytest

from broker_stub import Broker
from broker_stub.testing.tls import TlsCertificates
from pyclient.config.properties import read_properties

GUIDE = (Path(__file__).parents[2] / "docs" / "security.md").read_text()
APPLICATION, TEST, SCRIPT = re.findall(r"```python\n(.*?)```", GUIDE, re.DOTALL)
(PROPERTIES,) = re.findall(r"```properties\n(.*?)```", GUIDE, re.DOTALL)


@pytest.fixture
def folder(
    tmp_path: Path, kafka_tls_certificates: TlsCertificates, monkeypatch: pytest.MonkeyPatch
) -> Path:
    """The folder that the examples run in, with the files they name."""
    shutil.copy(kafka_tls_certificates.ca_file, tmp_path / "ca.pem")
    shutil.copy(kafka_tls_certificates.client_file, tmp_path / "client.pem")
    shutil.copy(kafka_tls_certificates.broker_file, tmp_path / "broker.pem")
    (tmp_path / "certificates").mkdir()
    monkeypatch.chdir(tmp_path)
    return tmp_path


def test_the_application_runs_on_a_broker_of_the_properties(folder: Path) -> None:
    text = PROPERTIES.replace("/etc/kafka", str(folder))
    text = text.replace("://:9092", "://127.0.0.1:0").replace("://:9093", "://127.0.0.1:0")
    (folder / "server.properties").write_text(text)
    with Broker(config=read_properties(folder / "server.properties")) as broker:
        exec(APPLICATION.replace("localhost:9093", broker.listeners["SSL"]), {})


def test_the_test_passes(kafka_tls_broker: Broker, kafka_tls_certificates: TlsCertificates) -> None:
    namespace: dict[str, Any] = {}
    exec(TEST, namespace)
    namespace["test_an_order_is_published"](kafka_tls_broker, kafka_tls_certificates)


def test_the_script_runs(folder: Path) -> None:
    exec(SCRIPT, {})
