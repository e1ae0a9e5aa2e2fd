"""The group's state machine under random interleavings, and faults that these must find."""

import pytest
from hypothesis import HealthCheck, Phase, settings
from hypothesis.stateful import run_state_machine_as_test

from broker_stub.coordinator.groups.classic_group import ClassicGroup
from broker_stub.coordinator.groups.session_expiration import SessionExpiration
from tests.support.group_machine import GroupMachine

QUICK = settings(
    max_examples=60,
    stateful_step_count=40,
    deadline=None,
    derandomize=True,
    database=None,
    suppress_health_check=list(HealthCheck),
)
HUNT = settings(QUICK, max_examples=200, phases=[Phase.generate], report_multiple_bugs=False)


def test_every_history_keeps_the_promises_of_the_protocol():
    run_state_machine_as_test(GroupMachine, settings=QUICK)


def plant_no_session(monkeypatch):
    """A member that joins gets no session timer."""
    monkeypatch.setattr(SessionExpiration, "renew", lambda *_: None)


def plant_no_sync_timeout(monkeypatch):
    """Nobody waits for members that never sync."""
    schedule = ClassicGroup._schedule

    def without_syncs(self, delay_ms, callback):
        if callback.__name__ != "_expel_unsynced":
            schedule(self, delay_ms, callback)

    monkeypatch.setattr(ClassicGroup, "_schedule", without_syncs)


def plant_forgotten_syncs(monkeypatch):
    """Parked syncs are not answered when a rebalance starts again."""
    monkeypatch.setattr(ClassicGroup, "_refuse_syncs", lambda *_: None)


def plant_stale_generations(monkeypatch):
    """Any generation may sync: a partition gets two owners, or nonsense is accepted."""
    validate = ClassicGroup.validate

    def any_generation(self, member_id, group_instance_id, _generation_id):
        return validate(self, member_id, group_instance_id, self.generation_id)

    monkeypatch.setattr(ClassicGroup, "validate", any_generation)


@pytest.mark.parametrize(
    "plant",
    [plant_no_session, plant_no_sync_timeout, plant_forgotten_syncs, plant_stale_generations],
)
def test_a_planted_fault_is_found(monkeypatch, plant):
    plant(monkeypatch)
    with pytest.raises(AssertionError):
        run_state_machine_as_test(GroupMachine, settings=HUNT)
