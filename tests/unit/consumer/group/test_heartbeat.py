"""Heartbeats, on an injected clock."""

from pyclient.consumer.group.heartbeat import Heartbeat


def test_a_heartbeat_is_due_an_interval_after_the_last():
    heartbeat = Heartbeat(100, 1_000)
    heartbeat.start(0)
    assert not heartbeat.is_due(99)
    assert heartbeat.is_due(100)
    heartbeat.sent(100)
    assert not heartbeat.is_due(500)  # one at a time
    heartbeat.received(510)
    assert heartbeat.is_due(510)


def test_a_failed_heartbeat_is_repeated_soon():
    heartbeat = Heartbeat(100, 1_000)
    heartbeat.start(0)
    heartbeat.sent(100)
    heartbeat.failed(110, 20)
    assert not heartbeat.is_due(129)
    assert heartbeat.is_due(130)


def test_a_session_is_over_without_answers_and_renewed_by_each():
    heartbeat = Heartbeat(100, 1_000)
    heartbeat.start(0)
    assert not heartbeat.session_is_over(999)
    assert heartbeat.session_is_over(1_000)
    heartbeat.sent(100)
    heartbeat.received(200)
    assert not heartbeat.session_is_over(1_199)
    assert heartbeat.session_is_over(1_200)


def test_the_next_time_is_the_next_heartbeat_or_the_end_of_the_session():
    heartbeat = Heartbeat(100, 1_000)
    heartbeat.start(0)
    assert heartbeat.next_ms(can_send=True) == 100
    assert heartbeat.next_ms(can_send=False) == 1_000
    heartbeat.sent(100)
    assert heartbeat.next_ms(can_send=True) == 1_000
