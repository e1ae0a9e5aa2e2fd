"""Consumer groups in simulated worlds: nothing is lost, and nobody waits without a deadline."""

import pytest

from broker_stub.coordinator.groups.classic_group import ClassicGroup
from broker_stub.coordinator.groups.session_expiration import SessionExpiration
from broker_stub.testing.simulation import explore
from tests.simulation.explorer import explore_slice
from tests.simulation.groups_history import groups_history

pytestmark = pytest.mark.simulation


@pytest.mark.timeout(300)
def test_groups_read_everything_whatever_happens():
    explore_slice("groups")


def test_the_check_finds_a_session_that_is_never_started(monkeypatch):
    monkeypatch.setattr(SessionExpiration, "renew", lambda *_: None)
    with pytest.raises(AssertionError, match="has no session"):
        explore(groups_history, range(20))


def test_the_check_finds_a_partition_with_two_owners(monkeypatch):
    assign = ClassicGroup._assign

    def give_everything_to_all(self, assignments):
        everything = max(assignments.values(), key=len, default=b"")
        assign(self, dict.fromkeys(assignments, everything))

    monkeypatch.setattr(ClassicGroup, "_assign", give_everything_to_all)
    with pytest.raises(AssertionError, match="two owners"):
        explore(groups_history, range(20))
