"""Transactions under random interleavings, and faults that these must find."""

import pytest
from hypothesis import HealthCheck, Phase, settings
from hypothesis.stateful import run_state_machine_as_test

from broker_stub.coordinator.groups.pending_offsets import PendingOffsets
from broker_stub.coordinator.transactions import markers
from broker_stub.coordinator.transactions.transaction import Transaction
from broker_stub.log.producers import sequence_check
from tests.support.transaction_machine import TransactionMachine

QUICK = settings(
    max_examples=25,
    stateful_step_count=30,
    deadline=None,
    derandomize=True,
    database=None,
    suppress_health_check=list(HealthCheck),
)
HUNT = settings(QUICK, max_examples=200, phases=[Phase.generate], report_multiple_bugs=False)


def test_every_history_keeps_the_promises_of_transactions():
    run_state_machine_as_test(TransactionMachine, settings=QUICK)


def plant_no_epoch_bump(monkeypatch):
    """A transaction ends with the epoch it had."""
    ended = Transaction._ended

    def without_bump(self, *arguments, **options):
        image = ended(self, *arguments, **options)
        return image._replace(producer_epoch=self.image.producer_epoch)

    monkeypatch.setattr(Transaction, "_ended", without_bump)


def plant_late_produce(monkeypatch):
    """Nobody asks whether a batch is in its producer's transaction."""
    monkeypatch.setattr(sequence_check, "_check_transaction", lambda *_, **__: None)
    monkeypatch.setattr(Transaction, "verify_partitions", lambda *_: {})


def plant_visible_offsets(monkeypatch):
    """Offsets are visible whatever becomes of their transaction."""
    end = PendingOffsets.end
    monkeypatch.setattr(
        PendingOffsets,
        "end",
        lambda self, index, producer_id, committed: end(self, index, producer_id, committed=True),
    )


def plant_lost_markers(monkeypatch):
    """Only the first partition gets its marker."""
    write_markers = markers.write_markers

    def first_only(node, marker, partitions, done):
        write_markers(node, marker, frozenset(sorted(partitions)[:1]), done)

    monkeypatch.setattr(
        "broker_stub.coordinator.transactions.transaction_coordinator.write_markers", first_only
    )


@pytest.mark.parametrize(
    "plant", [plant_no_epoch_bump, plant_late_produce, plant_visible_offsets, plant_lost_markers]
)
def test_a_planted_fault_is_found(monkeypatch, plant):
    plant(monkeypatch)
    with pytest.raises(AssertionError):
        run_state_machine_as_test(TransactionMachine, settings=HUNT)
