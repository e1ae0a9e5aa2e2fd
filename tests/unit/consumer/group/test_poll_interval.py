"""When a program has not polled for too long."""

import math

from pyclient.consumer.group.poll_interval import PollTimer


def test_a_program_is_late_an_interval_after_its_last_poll():
    timer = PollTimer(300)
    assert not timer.is_running
    assert timer.deadline_ms() == math.inf
    assert not timer.is_late(10**9)
    timer.polled(50)
    assert timer.is_running
    assert not timer.is_late(349)
    assert timer.is_late(350)
