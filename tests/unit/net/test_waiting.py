"""Latches between threads."""

import math
import os
import signal
import threading

import pytest

from pyclient.errors import IllegalStateError
from pyclient.net.waiting import ThreadWaiting, check_may_wait


def test_a_wake_before_the_wait_is_not_lost():
    waiter = ThreadWaiting().waiter()
    waiter.wake()
    assert waiter.wait(0)


def test_a_wait_that_nobody_ends_tells_so():
    assert not ThreadWaiting().waiter().wait(1)


def test_waking_twice_does_no_harm_and_the_latch_stays_open():
    waiter = ThreadWaiting().waiter()
    waiter.wake()
    waiter.wake()
    assert waiter.wait(math.inf)
    assert waiter.wait(math.inf)


def test_one_wake_ends_the_waits_of_all_threads():
    waiter = ThreadWaiting().waiter()
    outcomes: list[bool] = []
    threads = [
        threading.Thread(target=lambda: outcomes.append(waiter.wait(10_000))) for _ in range(8)
    ]
    for thread in threads:
        thread.start()
    waiter.wake()
    for thread in threads:
        thread.join(10)
    assert outcomes == [True] * 8


def test_a_wait_on_the_io_thread_raises_instead_of_waiting_for_itself():
    waiting = ThreadWaiting()
    waiting.claim_io_thread()
    assert waiting.on_io_thread()
    with pytest.raises(IllegalStateError, match="would block the client's I/O thread"):
        waiting.waiter().wait(10_000)
    with pytest.raises(IllegalStateError, match=r"flush\(\) would block"):
        check_may_wait(waiting, "flush()")


def test_a_wait_that_nobody_can_end_raises():
    waiting = ThreadWaiting()
    waiter = waiting.waiter()
    waiting.abandon(IllegalStateError("forked"))
    with pytest.raises(IllegalStateError, match="forked"):
        waiter.wait(math.inf)


def test_ctrl_c_ends_a_wait():
    waiter = ThreadWaiting().waiter()
    pending = threading.Timer(0.05, os.kill, [os.getpid(), signal.SIGINT])
    pending.start()
    with pytest.raises(KeyboardInterrupt):
        waiter.wait(100_000)
    pending.join()
