"""The fixture `shell`: types commands at a broker."""

import pytest

from broker_stub import Broker
from tests.support.command_line import Shell


@pytest.fixture
def shell(
    kafka_broker: Broker, capfd: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch
) -> Shell:
    return Shell(kafka_broker, capfd, monkeypatch)
