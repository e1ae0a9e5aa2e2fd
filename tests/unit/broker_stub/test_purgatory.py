"""Timers and delayed operations, on a clock that stands still."""

from broker_stub.purgatory import DelayedOperation, Purgatory, Timers
from pyclient.clock import ManualClock


class Operation(DelayedOperation):
    def __init__(self) -> None:
        self.ready = False
        self.outcome = ""

    def try_complete(self, key: object) -> bool:
        if self.ready:
            self.outcome = "completed"
        return self.ready

    def expire(self) -> None:
        self.outcome = "expired"


def test_timers_fire_in_the_order_of_their_deadlines():
    clock = ManualClock()
    timers = Timers(clock)
    fired = []
    timers.after(20, lambda: fired.append("late"))
    timers.after(10, lambda: fired.append("early"))
    timers.after(10, lambda: fired.append("early too"))
    clock.advance(10)
    timers.fire()
    assert fired == ["early", "early too"]
    clock.advance(10)
    timers.fire()
    assert fired == ["early", "early too", "late"]


def test_the_next_deadline_is_that_of_the_earliest_timer_still_pending():
    clock = ManualClock()
    timers = Timers(clock)
    first = timers.after(10, lambda: None)
    timers.after(30, lambda: None)
    assert timers.next_deadline_ms() == 10
    first.cancel()
    assert timers.next_deadline_ms() == 30


def test_a_cancelled_timer_never_fires():
    clock = ManualClock()
    timers = Timers(clock)
    timer = timers.after(10, lambda: pytest_fail())
    timer.cancel()
    timer.cancel()
    clock.advance(100)
    timers.fire()
    assert not timer.pending
    assert timers.next_deadline_ms() is None


def pytest_fail() -> None:
    raise AssertionError("a cancelled timer fired")


def test_cancelled_timers_are_swept_out_before_they_are_due():
    timers = Timers(ManualClock())
    kept = timers.after(1_000_000, lambda: None)
    for _ in range(10_000):
        timers.after(1_000_000, lambda: None).cancel()
    assert len(timers._heap) < 2 * Timers.SWEEP_AT_LEAST
    assert kept.pending
    assert timers.next_deadline_ms() == 1_000_000


def test_a_timer_may_set_another_one_while_it_fires():
    clock = ManualClock()
    timers = Timers(clock)
    fired = []
    timers.after(10, lambda: timers.after(0, lambda: fired.append("second")))
    clock.advance(10)
    timers.fire()
    assert fired == ["second"]


def purgatory() -> tuple[ManualClock, Timers, Purgatory]:
    clock = ManualClock()
    timers = Timers(clock)
    return clock, timers, Purgatory(timers)


def test_an_operation_completes_when_a_key_it_watches_is_checked():
    clock, timers, waiting = purgatory()
    operation = Operation()
    waiting.watch(operation, ["a", "b"], 100)
    waiting.check_and_complete("b")
    assert operation.outcome == ""
    operation.ready = True
    waiting.check_and_complete("other")
    assert operation.outcome == ""
    waiting.check_and_complete("b")
    assert operation.outcome == "completed"
    assert len(waiting) == 0
    clock.advance(1000)
    timers.fire()
    assert operation.outcome == "completed"


def test_an_operation_expires_once_its_time_is_out():
    clock, timers, waiting = purgatory()
    operation = Operation()
    waiting.watch(operation, ["a"], 100)
    clock.advance(99)
    timers.fire()
    assert operation.outcome == ""
    clock.advance(1)
    timers.fire()
    assert operation.outcome == "expired"
    operation.ready = True
    waiting.check_and_complete("a")
    assert operation.outcome == "expired"


def test_a_forgotten_operation_neither_completes_nor_expires():
    clock, timers, waiting = purgatory()
    operation = Operation()
    waiting.watch(operation, ["a"], 100)
    waiting.forget(operation)
    operation.ready = True
    waiting.check_and_complete("a")
    clock.advance(1000)
    timers.fire()
    assert operation.outcome == ""
    assert len(waiting) == 0
