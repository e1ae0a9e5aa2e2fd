"""One thread at a time."""

import threading

import pytest

from pyclient.consumer.use_guard import UseGuard
from pyclient.errors import IllegalStateError


def test_a_thread_may_enter_again_from_inside():
    guard = UseGuard()
    with guard, guard:
        pass
    with guard:
        pass


def test_a_second_thread_is_refused_while_the_first_is_inside():
    guard = UseGuard()
    inside, leave = threading.Event(), threading.Event()

    def first():
        with guard:
            inside.set()
            leave.wait(10)

    thread = threading.Thread(target=first)
    thread.start()
    assert inside.wait(10)
    with pytest.raises(IllegalStateError, match="one thread at a time"), guard:
        pass
    leave.set()
    thread.join()
    with guard:
        pass


def test_an_error_inside_lets_the_next_one_in():
    guard = UseGuard()
    with pytest.raises(ValueError, match="mine"), guard:
        raise ValueError("mine")
    with guard:
        pass
