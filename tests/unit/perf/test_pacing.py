"""Pacing on a clock of the test's own: nothing is early, and a stall does not move what is due."""

from itertools import islice, pairwise

import pytest

from pyclient.clock import ManualClock
from pyclient.perf import FixedRate, Pacer, Poisson, Recorder


class AdvancingWaiting:
    """Waits by moving the clock."""

    def __init__(self, clock: ManualClock) -> None:
        self._clock = clock

    def waiter(self) -> "AdvancingWaiting":
        return self

    def wait(self, timeout_ms: float) -> bool:
        self._clock.advance(timeout_ms)
        return False


def paced(clock: ManualClock, schedule: FixedRate | Poisson | None) -> Pacer:
    return Pacer(schedule, clock=clock, waiting=AdvancingWaiting(clock))


def test_a_fixed_rate_is_evenly_spaced() -> None:
    clock = ManualClock(0)
    pacer = paced(clock, FixedRate(100))
    assert [pacer.wait() for _ in range(4)] == [0, 10, 20, 30]
    assert clock.monotonic_ms() == 30


def test_poisson_arrivals_have_the_rate_and_repeat_by_their_seed() -> None:
    due = list(islice(Poisson(1000, seed=3), 10_000))
    assert due == sorted(due)
    assert due[-1] == pytest.approx(10_000, rel=0.05)
    assert due == list(islice(Poisson(1000, seed=3), 10_000))
    gaps = [after - before for before, after in pairwise(due)]
    # Of an exponential distribution, 1/e is longer than the mean.
    assert sum(gap > 1 for gap in gaps) / len(gaps) == pytest.approx(0.368, abs=0.03)


def test_a_stall_leaves_due_times_where_they_were() -> None:
    clock = ManualClock(0)
    pacer = paced(clock, FixedRate(100))
    recorder = Recorder(clock)
    for number in range(100):
        due_ms = pacer.wait()
        clock.advance(500 if number == 10 else 1)  # the broker stalls once
        recorder.record_since(due_ms)
    histogram = recorder.end()
    # Counted from the send, one record of 100 would be slow.
    assert histogram.get_value_at_percentile(60) > 100_000
    assert recorder.max_ms == 500


def test_without_a_schedule_a_record_is_due_now() -> None:
    clock = ManualClock(0)
    pacer = paced(clock, None)
    clock.advance(7)
    assert pacer.wait() == 7


@pytest.mark.parametrize("rate", [0, -1, float("inf"), float("nan")])
def test_a_rate_is_a_positive_number(rate: float) -> None:
    with pytest.raises(ValueError, match="positive number of records a second"):
        FixedRate(rate)
