"""Sessions: when they expire, and what extends them."""

import pytest

from broker_stub.coordinator.groups.session_expiration import NEW_MEMBER_JOIN_TIMEOUT_MS, Session
from broker_stub.purgatory import Timers
from pyclient.clock import ManualClock
from pyclient.errors import RebalanceInProgressError, UnknownMemberIdError
from tests.support.classic_group_world import SESSION_MS, GroupWorld, answer


class Sessions:
    """Sessions of one clock, and how many expired."""

    def __init__(self) -> None:
        self.clock = ManualClock()
        self.timers = Timers(self.clock)
        self.expired = 0

    def start(self, timeout_ms: float) -> Session:
        return Session(self.timers, timeout_ms, self._expire)

    def _expire(self) -> None:
        self.expired += 1

    def advance(self, milliseconds: float) -> None:
        self.clock.advance(milliseconds)
        self.timers.fire()


def test_a_session_expires_once_after_its_timeout():
    sessions = Sessions()
    session = sessions.start(100)
    sessions.advance(99)
    assert (sessions.expired, session.pending) == (0, True)
    sessions.advance(1)
    assert (sessions.expired, session.pending) == (1, False)
    sessions.advance(1000)
    assert sessions.expired == 1


def test_an_extension_counts_from_the_time_it_was_asked_for():
    sessions = Sessions()
    session = sessions.start(100)
    sessions.advance(60)
    session.extend(100)
    sessions.advance(99)
    assert sessions.expired == 0
    sessions.advance(1)
    assert sessions.expired == 1


def test_a_session_can_be_made_shorter():
    sessions = Sessions()
    sessions.start(1000).extend(10)
    sessions.advance(10)
    assert sessions.expired == 1


def test_a_session_that_ended_does_not_expire():
    sessions = Sessions()
    session = sessions.start(10)
    session.extend(20)
    session.end()
    sessions.advance(100)
    assert sessions.expired == 0
    assert sessions.timers.next_deadline_ms() is None


def test_an_expired_session_can_be_started_again():
    sessions = Sessions()
    session = sessions.start(10)
    sessions.advance(10)
    session.extend(10)
    sessions.advance(10)
    assert sessions.expired == 2


def test_extending_a_session_sets_no_further_timers():
    sessions = Sessions()
    session = sessions.start(1000)
    for _ in range(500):
        sessions.advance(1)
        session.extend(1000)
    assert sessions.timers.next_deadline_ms() == 1000  # the first timer; it looks again then


def test_a_new_member_whose_join_is_never_answered_is_removed_after_five_minutes():
    world = GroupWorld()
    leader, follower = world.stable_pair()
    rebalance_ms = 2 * NEW_MEMBER_JOIN_TIMEOUT_MS
    for member in world.group.roster:
        member.rebalance_timeout_ms = rebalance_ms
    newcomer = world.join()
    world.join(leader)
    for _ in range(NEW_MEMBER_JOIN_TIMEOUT_MS // 5_000):
        assert not newcomer.answered
        with pytest.raises(RebalanceInProgressError):
            world.group.heartbeat(follower, None, 2)
        world.advance(5_000)
    assert answer(newcomer).error_code == UnknownMemberIdError.code
    assert [one.member_id for one in world.group.roster] == [leader, follower]


def test_a_member_that_waits_longer_than_its_session_stays():
    world = GroupWorld()
    leader, follower = world.stable_pair()
    rejoining = world.join(leader)
    for _ in range(5):
        world.advance(SESSION_MS - 1)
        with pytest.raises(RebalanceInProgressError):
            world.group.heartbeat(follower, None, 2)
    world.join(follower)
    assert answer(rejoining).generation_id == 3
