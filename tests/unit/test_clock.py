"""The clocks: the machine's, and the one that tests move."""

import math

import pytest

from pyclient.clock import ManualClock, SystemClock

YEAR_2024_MS = 1_704_067_200_000


def test_the_system_clock_reads_whole_milliseconds_of_the_unix_epoch() -> None:
    now_ms = SystemClock().now_ms()
    assert isinstance(now_ms, int)
    assert now_ms > YEAR_2024_MS


def test_the_monotonic_reading_never_goes_back() -> None:
    clock = SystemClock()
    readings = [clock.monotonic_ms() for _ in range(100)]
    assert readings == sorted(readings)


def test_a_manual_clock_moves_both_readings_and_only_when_told() -> None:
    clock = ManualClock(now_ms=1_000)
    assert (clock.now_ms(), clock.monotonic_ms()) == (1_000, 0)
    clock.advance(2.5)
    assert (clock.now_ms(), clock.monotonic_ms()) == (1_002, 2.5)


def test_a_manual_clock_starts_at_the_machines_time_unless_it_is_given_another() -> None:
    before_ms = SystemClock().now_ms()
    clock = ManualClock()
    assert before_ms <= clock.now_ms() <= SystemClock().now_ms()
    assert ManualClock(0).now_ms() == 0


def test_a_manual_clock_refuses_to_go_back() -> None:
    with pytest.raises(ValueError, match="does not go back"):
        ManualClock().advance(-1)


@pytest.mark.parametrize(
    ("milliseconds", "error", "words"),
    [
        (math.nan, ValueError, "can't move by nan ms"),
        (math.inf, ValueError, "can't move by inf ms"),
        ("5", TypeError, "a number of milliseconds, not by '5'"),
        (None, TypeError, "a number of milliseconds, not by None"),
    ],
)
def test_a_manual_clock_moves_by_real_time_only(milliseconds, error, words) -> None:
    clock = ManualClock(1_000)
    told = []
    clock.on_advance(lambda: told.append("moved"))
    with pytest.raises(error, match=words):
        clock.advance(milliseconds)
    assert (clock.now_ms(), clock.monotonic_ms(), told) == (1_000, 0, [])
