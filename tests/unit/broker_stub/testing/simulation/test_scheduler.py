"""Events: the earliest first, equal ones in the order they were asked for."""

import math

import pytest

from broker_stub.testing.simulation import scheduler as scheduling
from broker_stub.testing.simulation.clock import SimulatedClock
from broker_stub.testing.simulation.scheduler import Scheduler, WorldStuckError


@pytest.fixture
def clock():
    return SimulatedClock()


@pytest.fixture
def scheduler(clock):
    return Scheduler(clock)


def test_events_happen_in_the_order_of_their_time(scheduler, clock):
    happened = []
    for delay_ms in (3, 1, 2, 1):
        scheduler.after(delay_ms, lambda delay_ms=delay_ms: happened.append(clock.monotonic_ms()))
    assert scheduler.run_until(lambda: len(happened) == 4, 10)
    assert happened == [1, 1, 2, 3]


def test_equal_moments_go_by_who_asked_first(scheduler):
    happened = []
    for number in range(5):
        scheduler.after(1, lambda number=number: happened.append(number))
    scheduler.run_until(lambda: False, 1)
    assert happened == [0, 1, 2, 3, 4]


def test_nothing_happens_at_the_very_moment_it_is_asked_for(scheduler, clock):
    scheduler.after(0, lambda: None)
    scheduler.run_until(lambda: clock.now_us > 0, 1)
    assert clock.now_us == 1


def test_a_cancelled_event_does_not_happen(scheduler):
    happened = []
    scheduler.after(1, lambda: happened.append(1)).cancel()
    scheduler.run_until(lambda: False, 5)
    assert happened == []


def test_when_the_time_is_up_the_rest_waits(scheduler, clock):
    happened = []
    scheduler.after(5, lambda: happened.append(1))
    assert not scheduler.run_until(lambda: bool(happened), 4)
    assert (happened, clock.monotonic_ms()) == ([], 4)
    assert scheduler.run_until(lambda: bool(happened), 4)


def test_time_passes_without_events_too(scheduler, clock):
    assert not scheduler.run_until(lambda: False, 1_000)
    assert clock.monotonic_ms() == 1_000


def test_waiting_for_ever_for_nothing_is_an_error(scheduler):
    with pytest.raises(WorldStuckError, match="nothing happens any more"):
        scheduler.run_until(lambda: False, math.inf)


def test_going_round_and_round_is_an_error(scheduler, monkeypatch):
    monkeypatch.setattr(scheduling, "_EVENTS_MAX", 1_000)

    def again():
        scheduler.after(0, again)

    again()
    with pytest.raises(WorldStuckError, match="round and round"):
        scheduler.run_until(lambda: False, math.inf)


def test_both_clocks_of_a_world_tell_the_same_time(clock):
    before_ms = clock.now_ms()
    clock.now_us = 2_500_400
    assert clock.now_ms() - before_ms == 2_500
    assert clock.monotonic_ms() == 2_500.4
