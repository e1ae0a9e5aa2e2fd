"""`perf verify` on a broker that restarts, dies, doubles and loses records."""

from collections.abc import Callable
from typing import Any

import pytest

from broker_stub import Broker
from broker_stub.testing import Always
from pyclient.cli.main import main
from pyclient.errors import KafkaTimeoutError, RequestTimedOutError
from pyclient.perf.ledger import Ledger
from pyclient.perf.verify import verify_delivery
from pyclient.protocol.messages.fetch import FetchRequest
from pyclient.protocol.messages.produce import ProduceRequest


def verified(broker: Broker, at_300: Callable[[], object] = lambda: None, **options: Any) -> Ledger:
    broker.create_topic("t", partitions=2)
    address = {"bootstrap_servers": broker.bootstrap_servers}

    def on_progress(_ledger: Ledger, number: int) -> None:
        if number == 300:
            at_300()

    return verify_delivery({**address, **options}, address, "t", 1000, on_progress=on_progress)


def killed(broker: Broker) -> None:
    broker.kill()
    broker.start()


@pytest.mark.parametrize("mishap", [lambda broker: None, Broker.restart, killed])
def test_nothing_is_lost_through_a_restart(kafka_broker: Broker, mishap) -> None:
    ledger = verified(kafka_broker, lambda: mishap(kafka_broker))
    assert ledger.verdict() == (
        "1000 acknowledged, 0 failed, 1000 read: nothing lost, nothing twice, order kept"
    )


def test_records_written_twice_are_found(kafka_broker: Broker) -> None:
    kafka_broker.faults.fail_next(ProduceRequest, RequestTimedOutError, after=True)
    ledger = verified(kafka_broker, enable_idempotence=False)
    assert ledger.faults["twice"] > 0
    assert ledger.faults["lost"] == 0


def test_lost_records_are_found(kafka_broker: Broker) -> None:
    kafka_broker.faults.drop(ProduceRequest)
    ledger = verified(kafka_broker, acks=0, enable_idempotence=False)
    assert ledger.faults["lost"] > 0
    assert ledger.faults["twice"] == 0


def test_sending_gives_up_when_nothing_can_be_read(
    kafka_broker: Broker, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr("pyclient.perf.verify.UNREAD_MAX", 10)
    kafka_broker.create_topic("t")
    kafka_broker.faults.delay(FetchRequest, 60_000, Always())
    address = {"bootstrap_servers": kafka_broker.bootstrap_servers}
    with pytest.raises(KafkaTimeoutError, match="nothing came for 200 ms: is a broker down"):
        verify_delivery({**address, "linger_ms": 0}, address, "t", 100_000, timeout_ms=200)


def test_the_command_prints_its_verdict(capsys: pytest.CaptureFixture[str]) -> None:
    assert main(["perf", "verify", "--num-records", "300"]) == 0
    assert "nothing lost, nothing twice, order kept" in capsys.readouterr().out


def test_the_command_fails_on_a_fault(
    capsys: pytest.CaptureFixture[str], kafka_broker: Broker
) -> None:
    kafka_broker.create_topic("verify-test")
    kafka_broker.faults.drop(ProduceRequest)
    servers = ["--bootstrap-server", kafka_broker.bootstrap_servers, "--num-records", "500"]
    weak = ["--config", "acks=0", "--config", "enable.idempotence=false"]
    assert main(["perf", "verify", *servers, *weak]) == 1
    captured = capsys.readouterr()
    assert "lost: partition 0: sequence 0" in captured.out
    assert "faults were found" in captured.err
