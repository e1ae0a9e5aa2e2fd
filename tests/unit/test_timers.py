"""Deadlines and back-off on a clock that only moves when told."""

import math

import pytest
from hypothesis import given
from hypothesis import strategies as st

from pyclient.clock import ManualClock
from pyclient.entropy import Entropy
from pyclient.timers import Deadline, ExponentialBackoff


def test_a_deadline_runs_down_to_zero_and_stays_there() -> None:
    clock = ManualClock()
    deadline = Deadline(clock, 100)
    clock.advance(99)
    assert (deadline.remaining_ms(), deadline.expired) == (1, False)
    clock.advance(1)
    assert (deadline.remaining_ms(), deadline.expired) == (0, True)
    clock.advance(50)
    assert (deadline.remaining_ms(), deadline.expired) == (0, True)


def test_a_deadline_of_zero_has_expired_from_the_start() -> None:
    assert Deadline(ManualClock(), 0).expired


def test_a_deadline_of_none_never_expires() -> None:
    clock = ManualClock()
    deadline = Deadline(clock, None)
    clock.advance(1e12)
    assert (deadline.remaining_ms(), deadline.expired) == (math.inf, False)


def test_a_negative_timeout_is_refused() -> None:
    with pytest.raises(ValueError, match="cannot be negative"):
        Deadline(ManualClock(), -1)


def test_without_jitter_the_pause_doubles_up_to_the_maximum() -> None:
    backoff = ExponentialBackoff(Entropy(1), 100, 1_000, jitter=0)
    pauses = [backoff.backoff_ms(attempts) for attempts in range(6)]
    assert pauses == pytest.approx([100, 200, 400, 800, 1_000, 1_000])


@given(st.integers(), st.integers(0, 10_000), st.integers(0, 100_000), st.integers(0, 1_000_000))
def test_a_pause_stays_within_the_jitter_and_below_the_maximum(
    seed: int, initial_ms: int, max_ms: int, attempts: int
) -> None:
    pause = ExponentialBackoff(Entropy(seed), initial_ms, max_ms).backoff_ms(attempts)
    assert 0.8 * min(initial_ms, max_ms) <= pause <= max_ms


def test_an_initial_pause_above_the_maximum_gives_the_maximum_always() -> None:
    backoff = ExponentialBackoff(Entropy(1), 500, 200)
    assert [backoff.backoff_ms(attempts) for attempts in (0, 1, 9)] == [200, 200, 200]


def test_clients_that_failed_together_come_back_apart() -> None:
    pauses = {ExponentialBackoff(Entropy(seed), 100, 1_000).backoff_ms(0) for seed in range(50)}
    assert len(pauses) == 50
    assert min(pauses) >= 80
    assert max(pauses) <= 120
