"""The loop: commands, managers, and its end."""

import math

import pytest

from pyclient.errors import Cancelled, IllegalStateError, KafkaTimeoutError
from pyclient.net.request_manager import NOTHING_TO_DO, PollResult, UnsentRequest
from pyclient.protocol.messages.heartbeat import HeartbeatRequest, HeartbeatResponse


class RecordingManager:
    """Sends what it is told to, and notes what happens to it."""

    def __init__(self):
        self.to_send = []
        self.polled_at_ms = []
        self.next_poll_ms = math.inf
        self.outcomes = []
        self.closed_with = []

    def poll(self, now_ms):
        self.polled_at_ms.append(now_ms)
        requests, self.to_send = self.to_send, []
        if self.next_poll_ms <= now_ms:
            self.next_poll_ms = math.inf
        return PollResult(requests, self.next_poll_ms)

    def request(self, node=1):
        self.to_send.append(
            UnsentRequest(HeartbeatRequest(), node, lambda out, now: self.outcomes.append(out))
        )

    def close(self, error):
        self.closed_with.append(error)


@pytest.fixture
def manager():
    return RecordingManager()


@pytest.fixture
def engine(network, new_engine, manager):
    network.add_broker(1)
    engine = new_engine(metadata_max_age_ms=10_000_000)
    engine.add_manager(manager)
    engine.start()
    engine.bootstrap(timeout_ms=1_000)
    network.run_for(1_000)
    return engine


def test_a_manager_is_polled_when_woken_and_its_requests_are_sent(network, engine, manager):
    network.brokers[1].on(HeartbeatRequest, HeartbeatResponse())
    manager.request()
    network.run_for(10)
    assert not manager.outcomes
    engine.wake()
    network.run_for(10)
    assert manager.outcomes == [HeartbeatResponse()]


def test_a_manager_is_polled_at_the_time_it_names(network, engine, manager):
    now_ms = network.clock.monotonic_ms()
    manager.next_poll_ms = now_ms + 250
    engine.wake()
    network.run_for(249)
    polls = len(manager.polled_at_ms)
    network.run_for(2)
    assert len(manager.polled_at_ms) > polls
    assert now_ms + 250 <= manager.polled_at_ms[polls] < now_ms + 251


def test_a_call_returns_its_result(engine):
    assert engine.call(lambda: 42, timeout_ms=1_000) == 42


def test_a_call_raises_what_the_function_raised(engine):
    def fail():
        raise ZeroDivisionError("of the caller")

    with pytest.raises(ZeroDivisionError, match="of the caller"):
        engine.call(fail, timeout_ms=1_000)


def test_a_call_inside_a_callback_is_refused(network, engine):
    errors = []

    def command():
        with pytest.raises(IllegalStateError, match="would block") as caught:
            engine.call(lambda: None, timeout_ms=1_000)
        errors.append(caught.value)

    engine.submit(command)
    network.run_for(1)
    assert len(errors) == 1


def test_a_command_that_fails_is_logged_and_the_loop_goes_on(network, engine, caplog):
    engine.submit(lambda: 1 // 0)
    assert engine.call(lambda: 42, timeout_ms=1_000) == 42
    assert "ZeroDivisionError" in caplog.text


def test_closing_fails_what_is_in_flight_and_then_tells_the_managers(network, engine, manager):
    network.brokers[1].on(HeartbeatRequest, None)
    manager.request()
    engine.wake()
    network.run_for(10)
    engine.close(timeout_ms=1_000)
    assert [type(one) for one in manager.outcomes] == [Cancelled]
    assert [type(one) for one in manager.closed_with] == [Cancelled]
    assert all(one.is_closed for one in network.brokers[1].connections)


def test_a_call_after_the_end_is_refused(engine):
    engine.close(timeout_ms=1_000)
    with pytest.raises(Cancelled, match="closed"):
        engine.call(lambda: 42, timeout_ms=1_000)


def test_a_request_that_the_loop_never_gets_to_is_cancelled(network, engine):
    engine._io_thread.stop()  # as if another thread closed it between the check and the request
    with pytest.raises(Cancelled, match="closed"):
        engine.request(HeartbeatRequest(), 1, timeout_ms=1_000)


def test_a_manager_that_fails_ends_the_client_loudly(new_real_engine, caplog):
    class Broken(RecordingManager):
        def poll(self, now_ms):
            if self.to_send:
                raise ValueError("a bug in a core")
            return NOTHING_TO_DO

    engine, broken, other = new_real_engine(), Broken(), RecordingManager()
    engine.add_manager(other)
    engine.add_manager(broken)
    broken.request()
    engine.start()
    assert engine._io_thread.ended.wait(10_000)
    assert "a bug in a core" in caplog.text
    assert isinstance(other.closed_with[0], IllegalStateError)
    with pytest.raises(IllegalStateError, match="I/O thread has failed") as caught:
        engine.check_usable("send()")
    assert isinstance(caught.value.__cause__, ValueError)


def test_a_call_that_the_loop_does_not_get_to_times_out(new_engine, network):
    engine = new_engine()  # never started
    with pytest.raises(KafkaTimeoutError, match="did not answer within 50 ms"):
        engine.call(lambda: 42, timeout_ms=50)
