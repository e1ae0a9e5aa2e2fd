"""The ledger finds each kind of planted fault, and nothing else."""

import pytest

from pyclient.perf.ledger import Ledger

RUN = b"run-0001"


@pytest.fixture
def ledger() -> Ledger:
    return Ledger(RUN)


def sent(ledger: Ledger, count: int, *, acked: bool = True) -> list[bytes]:
    values = []
    for offset in range(count):
        sequence, value = ledger.next_value(0)
        if acked:
            ledger.on_acked(0, sequence, offset)
        values.append(value)
    return values


def read(ledger: Ledger, *values: bytes | None, offset: int = 0) -> None:
    for number, value in enumerate(values):
        ledger.on_read(0, offset + number, value)


def test_all_read_in_order_is_well(ledger: Ledger) -> None:
    read(ledger, *sent(ledger, 3))
    ledger.finish()
    assert not ledger.faults
    assert ledger.verdict() == (
        "3 acknowledged, 0 failed, 3 read: nothing lost, nothing twice, order kept"
    )


def test_an_acknowledged_record_that_is_not_read_is_lost(ledger: Ledger) -> None:
    first, _, third = sent(ledger, 3)
    ledger.on_read(0, 0, first)
    ledger.on_read(0, 2, third)
    assert ledger.unread == 1
    ledger.finish()
    assert ledger.shown == ["lost: partition 0: sequence 1, acknowledged at 1"]


def test_a_failed_record_may_be_there_or_not(ledger: Ledger) -> None:
    first, second, third = sent(ledger, 3, acked=False)
    for _ in range(3):
        ledger.on_failed()
    read(ledger, first, third)
    ledger.finish()
    assert second
    assert not ledger.faults


def test_a_record_in_two_places_is_twice(ledger: Ledger) -> None:
    first, second = sent(ledger, 2)
    read(ledger, first, second, first)
    assert ledger.shown == ["twice: partition 0, offset 2: sequence 0 again"]


def test_a_later_sequence_before_an_earlier_one_is_out_of_order(ledger: Ledger) -> None:
    first, second = sent(ledger, 2, acked=False)
    read(ledger, second, first)
    assert ledger.shown == ["out of order: partition 0, offset 1: sequence 0 after 1"]


def test_an_offset_that_comes_again_is_the_readers_fault(ledger: Ledger) -> None:
    (first,) = sent(ledger, 1)
    ledger.on_read(0, 0, first)
    ledger.on_read(0, 0, first)
    assert dict(ledger.faults) == {"read again": 1}


def test_an_acknowledged_offset_must_be_the_one(ledger: Ledger) -> None:
    (first,) = sent(ledger, 1)
    ledger.on_read(0, 5, first)
    assert dict(ledger.faults) == {"moved": 1}


@pytest.mark.parametrize("change", [lambda v: v[:-1], lambda v: v[:-1] + bytes([v[-1] ^ 1])])
def test_changed_bytes_are_damaged(ledger: Ledger, change) -> None:
    (first,) = sent(ledger, 1)
    read(ledger, change(first))
    assert dict(ledger.faults) == {"damaged": 1}


def test_a_sequence_from_the_future_was_never_sent(ledger: Ledger) -> None:
    other = Ledger(RUN)
    later = sent(other, 5)[4]
    sent(ledger, 1, acked=False)
    read(ledger, later)
    assert dict(ledger.faults) == {"never sent": 1}


def test_records_of_other_runs_are_no_fault(ledger: Ledger) -> None:
    read(ledger, None, b"other", *sent(Ledger(b"run-0002"), 1))
    assert ledger.foreign == 3
    assert not ledger.faults


def test_an_acknowledgement_may_come_after_the_read(ledger: Ledger) -> None:
    sequence, value = ledger.next_value(0)
    ledger.on_read(0, 0, value)
    ledger.on_acked(0, sequence, 0)
    ledger.finish()
    assert not ledger.faults
