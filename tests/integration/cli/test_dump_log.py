"""`pyclient dump-log` on the files of a stopped broker."""

import json
from pathlib import Path

import pytest

from broker_stub import Broker
from pyclient import KafkaProducer
from pyclient.cli.main import main


@pytest.fixture
def partition(tmp_path: Path) -> Path:
    with Broker(tmp_path) as broker:
        broker.create_topic("orders", partitions=1)
        with KafkaProducer(bootstrap_servers=broker.bootstrap_servers) as producer:
            producer.send("orders", b"one", key=b"k", headers=[("h", b"x")]).get(timeout=30)
    return tmp_path / "orders-0"


def test_a_folder_is_dumped(partition: Path, capfd: pytest.CaptureFixture[str]) -> None:
    assert main(["dump-log", str(partition), "--print-data-log"]) == 0
    out, err = capfd.readouterr()
    assert "Log starting offset: 0\nbaseOffset: 0 lastOffset: 0 count: 1 " in out
    assert "keySize: 1 valueSize: 3 sequence: 0 headerKeys: [h] key: k payload: one\n" in out
    assert f"Dumping {partition / f'{0:020}.timeindex'}" in out
    assert err == ""


def test_damage_is_found(partition: Path, capfd: pytest.CaptureFixture[str]) -> None:
    segment = partition / f"{0:020}.log"
    content = bytearray(segment.read_bytes())
    content[-1] ^= 1
    segment.write_bytes(content + b"xyz")
    assert main(["dump-log", str(segment), "--json"]) == 1
    out, err = capfd.readouterr()
    _, _, batch, rest = map(json.loads, out.splitlines())
    assert (batch["isvalid"], rest) == (False, {"invalidBytes": 3})
    assert err == (
        f"{segment}: the batch at byte 0 fails its checksum\n"
        f"{segment}: 3 bytes behind the last batch are not a batch\n"
    )


def test_the_metadata_log_is_decoded(partition: Path, capfd: pytest.CaptureFixture[str]) -> None:
    folder = partition.parent / "__cluster_metadata-0"
    assert main(["dump-log", str(folder), "--decode", "metadata"]) == 0
    assert '"type":"TOPIC_RECORD","version":0,"data":{"name":"orders"' in capfd.readouterr().out


def test_a_dump_without_a_file_is_refused(capfd: pytest.CaptureFixture[str]) -> None:
    assert main(["dump-log"]) == 2
    assert "Name a file or a folder." in capfd.readouterr().err
