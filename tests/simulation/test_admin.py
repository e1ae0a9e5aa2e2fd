"""Admin clients in simulated worlds: what they report is done, and nothing is half done."""

from collections.abc import Callable
from typing import Any

import pytest

from broker_stub.metadata import config_changes
from broker_stub.metadata.log import MetadataLog
from broker_stub.testing.simulation import explore
from pyclient.admin.sending.requests import AdminRequests
from pyclient.admin.sending.results import Outcome
from pyclient.admin.sending.work import Work
from pyclient.errors import KafkaError
from pyclient.protocol.schema import Message
from tests.simulation.admin_history import admin_history
from tests.simulation.explorer import explore_slice

pytestmark = pytest.mark.simulation


@pytest.mark.timeout(300)
def test_acknowledged_changes_are_there_and_none_is_half_done() -> None:
    explore_slice("admin")


def test_the_check_finds_retries_that_are_taken_for_success(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    take_retries_for_success(monkeypatch.setattr)
    with pytest.raises(AssertionError, match="did not happen"):
        explore(admin_history, range(200))


def test_the_check_finds_changes_that_a_power_loss_takes_back(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    monkeypatch.setattr(MetadataLog, "sync", lambda _log: None)
    with pytest.raises(AssertionError, match=r"nothing was under way|is back from the dead"):
        explore(admin_history, range(200))


def test_the_check_finds_changes_by_halves(monkeypatch: pytest.MonkeyPatch) -> None:
    plan_change = config_changes.plan_change

    def first_half(*arguments: Any) -> list[Message]:
        return plan_change(*arguments)[:1]

    monkeypatch.setattr(config_changes, "plan_change", first_half)
    with pytest.raises(AssertionError, match=r"segment\.ms|flush\.ms"):
        explore(admin_history, range(200))


def take_retries_for_success(patch: Callable[[Any, str, Any], None]) -> None:
    """After an attempt with an unknown outcome, any answer to the next one counts as success."""
    send_once, settle = AdminRequests.send_once, AdminRequests.settle
    unknown: set[AdminRequests] = set()

    def noting(requests: AdminRequests, *arguments: Any) -> Message:
        try:
            return send_once(requests, *arguments)
        except KafkaError:
            unknown.add(requests)
            raise

    def hoping(requests: AdminRequests, work: Work[Any, Any, Any]) -> dict[Any, Outcome[Any]]:
        unknown.discard(requests)
        outcomes = settle(requests, work)
        if requests in unknown and not work.repeatable:
            return {key: Outcome(outcome.result, None) for key, outcome in outcomes.items()}
        return outcomes

    patch(AdminRequests, "send_once", noting)
    patch(AdminRequests, "settle", hoping)
