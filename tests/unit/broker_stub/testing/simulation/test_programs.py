"""Programs and their baton: one runs at a time, a wait lets the others run."""

import math
import threading

import pytest

from broker_stub.testing.simulation import CALM, Simulation, WorldStuckError, programs
from pyclient.errors import IllegalStateError


@pytest.fixture
def world():
    with Simulation(1, CALM) as world:
        yield world


def waiter(world):
    return world.client()["environment"].waiter()


def test_programs_take_turns_whenever_one_waits(world):
    happened = []

    def count(name):
        for number in range(3):
            happened.append((name, number))
            world.sleep(10)

    world.program(count, "a", name="a")
    world.program(count, "b", name="b")
    world.run()
    for number in range(3):
        assert sorted(happened[2 * number : 2 * number + 2]) == [("a", number), ("b", number)]


def test_only_one_of_them_runs_at_a_time(world):
    inside = []

    def enter_and_leave():
        for _ in range(20):
            inside.append(1)
            assert len(inside) == 1
            inside.pop()
            world.sleep(0.01)

    for number in range(5):
        world.program(enter_and_leave, name=f"program-{number}")
    world.run()


def test_sleeping_takes_no_real_time_but_the_worlds(world):
    def sleep():
        before_ms = world.clock.monotonic_ms()
        world.sleep(3_600_000)
        return world.clock.monotonic_ms() - before_ms

    program = world.program(sleep)
    world.run(timeout_ms=math.inf)
    assert 3_600_000 <= program.result < 3_600_001


def test_a_waiter_that_is_woken_ends_the_wait(world):
    latch = waiter(world)

    def wait():
        return latch.wait(60_000), world.clock.monotonic_ms() < 1_000

    def wake():
        world.sleep(10)
        latch.wake()

    waiting = world.program(wait)
    world.program(wake)
    world.run()
    assert waiting.result == (True, True)


def test_a_wait_ends_when_its_time_is_up(world):
    latch = waiter(world)
    program = world.program(lambda: latch.wait(50), name="waits")
    world.run()
    assert program.result is False


def test_a_wake_before_the_wait_is_not_lost(world):
    latch = waiter(world)
    latch.wake()
    program = world.program(lambda: latch.wait(math.inf), name="waits")
    world.run()
    assert program.result is True


def test_what_a_program_raises_comes_out_of_the_run(world):
    def fail():
        world.sleep(1)
        raise RuntimeError("out of books")

    world.program(fail)
    world.program(world.sleep, 100_000, name="goes on")
    with pytest.raises(RuntimeError, match="out of books"):
        world.run()


def test_programs_that_wait_for_ever_are_named(world):
    world.program(waiter(world).wait, math.inf, name="hopeful")
    with pytest.raises(WorldStuckError, match="hopeful"):
        world.run(timeout_ms=10_000)


def test_only_programs_can_wait(world):
    with pytest.raises(IllegalStateError, match=r"world\.program"):
        world.sleep(1)
    with pytest.raises(IllegalStateError, match=r"world\.program"):
        waiter(world).wait(1)


def test_a_thread_that_is_no_program_cannot_wait_in_the_name_of_one(world):
    errors = []

    def wait_on_another_thread():
        def wait():
            try:
                world.sleep(1)
            except IllegalStateError as error:
                errors.append(error)

        stranger = threading.Thread(target=wait)
        stranger.start()
        stranger.join()

    world.program(wait_on_another_thread)
    world.run()
    assert len(errors) == 1


def test_a_program_that_blocks_in_the_real_world_is_named_with_its_stack(monkeypatch):
    monkeypatch.setattr(programs, "_PATIENCE_SECONDS", 0.05)
    real = threading.Event()

    def wait_for_the_real_world():
        real.wait()

    def history():
        with Simulation(1, CALM) as world:
            world.program(wait_for_the_real_world)
            world.run()

    with pytest.raises(WorldStuckError, match=r"(?s)wait_for_the_real_world.*real\.wait\(\)"):
        history()  # and the world can be closed all the same
    real.set()


def test_closing_a_world_unwinds_programs_that_wait():
    unwound = []

    def wait(world):
        try:
            world.sleep(math.inf)
        finally:
            unwound.append(threading.current_thread())

    with Simulation(1, CALM) as world:
        world.program(wait, world)
        world.run_for(1)
    assert len(unwound) == 1
    assert not unwound[0].is_alive()


def test_a_program_that_never_began_is_not_begun_at_the_end():
    begun = []
    with Simulation(1, CALM) as world:
        world.program(begun.append, 1, name="late")
    assert begun == []


def test_two_programs_cannot_share_a_name(world):
    world.program(world.sleep, 1, name="twin")
    with pytest.raises(ValueError, match="twin"):
        world.program(world.sleep, 1, name="twin")


def test_a_program_may_start_others(world):
    results = []
    world.program(lambda: world.program(results.append, 7, name="child"), name="parent")
    world.run()
    assert results == [7]


def test_an_interrupt_ends_the_present_wait(world):
    def sleep():
        with pytest.raises(KeyboardInterrupt):
            world.sleep(1_000)
        ended_ms = world.clock.monotonic_ms()
        world.sleep(10)  # only once
        return ended_ms

    sleeper = world.program(sleep, name="sleeper")

    def interrupt():
        world.sleep(100)
        sleeper.interrupt()

    world.program(interrupt)
    world.run()
    assert 100 <= sleeper.result < 101


def test_a_program_that_computes_is_interrupted_in_its_next_wait(world):
    def interrupt_itself():
        programs.running.interrupt()
        with pytest.raises(KeyboardInterrupt):
            waiter(world).wait(10)

    programs = world.programs
    world.program(interrupt_itself)
    world.run()


def test_a_program_that_has_ended_cannot_be_interrupted(world):
    program = world.program(lambda: "done", name="short")
    world.run()
    program.interrupt()
    world.run_for(10)
    assert program.result == "done"
