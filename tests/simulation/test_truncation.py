"""Power losses under consumers: they find out that records are gone, and read what came instead."""

import pytest

from broker_stub.testing.simulation import explore
from pyclient.consumer.offsets.validation import PositionValidator
from pyclient.net.request_manager import NOTHING_TO_DO
from tests.simulation.explorer import explore_slice
from tests.simulation.truncation_history import truncation_history

pytestmark = pytest.mark.simulation


@pytest.mark.timeout(300)
def test_consumers_notice_that_records_are_gone() -> None:
    explore_slice("truncation")


def test_the_check_finds_positions_that_are_not_validated(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(PositionValidator, "poll", lambda *_: NOTHING_TO_DO)
    with pytest.raises(AssertionError, match="instead of"):
        explore(truncation_history, range(200))
