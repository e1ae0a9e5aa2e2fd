"""Automatic commits: when they are due, and what becomes of failures."""

import math

import pytest

from pyclient.clock import ManualClock
from pyclient.consumer.offsets.auto_commit import AutoCommit
from pyclient.consumer.pending import Pending
from pyclient.errors import (
    CommitFailedError,
    CoordinatorLoadInProgressError,
    RebalanceInProgressError,
)
from pyclient.types import OffsetAndMetadata, TopicPartition

P0, P1 = TopicPartition("orders", 0), TopicPartition("orders", 1)
POSITIONS = {P0: OffsetAndMetadata(5)}
RETRY_BACKOFF_MS = 20


class FakeCommits:
    """Records the commits, each as (how, offsets), and fails those that wait with `error`."""

    def __init__(self):
        self.made = []
        self.reported = []
        self.on_done = None
        self.error = None

    def default_callback(self, offsets, error):
        self.reported.append((offsets, error))

    def commit_async(self, offsets, callback):
        self.made.append(("async", offsets))
        self.pending = Pending(lambda: None)

        def on_done(offsets, error):
            self.pending.complete(error)
            callback(offsets, error)

        self.on_done = on_done
        return self.pending

    def commit_before_revocation(self, offsets, timeout_ms):
        self.made.append((timeout_ms, offsets))
        return Pending(lambda: None)

    def commit(self, offsets, timeout_ms, call, interruptible):
        assert not interruptible
        self.made.append(("waits", offsets))
        if self.error is not None:
            raise self.error


def new_auto_commit(*, is_enabled=True, interval_ms=100):
    commits = FakeCommits()
    clock = ManualClock(0)
    positions = dict(POSITIONS)
    auto_commit = AutoCommit(
        is_enabled, interval_ms, RETRY_BACKOFF_MS, 5_000, clock, lambda: dict(positions), commits
    )
    auto_commit.clock, auto_commit.positions = clock, positions
    return auto_commit, commits


def test_a_poll_commits_the_positions_when_the_interval_is_over():
    auto_commit, commits = new_auto_commit()
    assert auto_commit.poll(99) == 100
    assert commits.made == []
    assert auto_commit.poll(100) == 200
    assert commits.made == [("async", POSITIONS)]


def test_a_commit_that_failed_for_a_passing_reason_is_due_again_after_the_backoff():
    auto_commit, commits = new_auto_commit()
    auto_commit.poll(100)
    error = CoordinatorLoadInProgressError()
    commits.on_done(POSITIONS, error)
    assert auto_commit.poll(0) == RETRY_BACKOFF_MS
    assert commits.reported == [(POSITIONS, error)]


def test_a_rebalance_puts_the_commit_off_without_a_warning(caplog):
    auto_commit, commits = new_auto_commit()
    auto_commit.poll(100)
    commits.on_done(POSITIONS, RebalanceInProgressError())
    assert auto_commit.poll(0) == RETRY_BACKOFF_MS
    assert caplog.text == ""


def test_one_automatic_commit_is_in_flight_at_a_time_though_the_interval_is_zero():
    auto_commit, commits = new_auto_commit(interval_ms=0)
    for now_ms in range(10):
        auto_commit.positions[P0] = OffsetAndMetadata(now_ms)
        assert auto_commit.poll(now_ms) in (0, math.inf)
    assert [offsets[P0].offset for _, offsets in commits.made] == [0]
    commits.on_done({}, None)
    auto_commit.poll(10)
    assert [offsets[P0].offset for _, offsets in commits.made] == [0, 9]


@pytest.mark.parametrize("error", [RebalanceInProgressError, CommitFailedError])
def test_a_commit_that_failed_waits_for_the_backoff_though_the_interval_is_zero(error):
    auto_commit, commits = new_auto_commit(interval_ms=0)
    auto_commit.poll(0)
    commits.on_done(POSITIONS, error())
    assert auto_commit.poll(0) == RETRY_BACKOFF_MS
    assert len(commits.made) == 1


def test_a_waiting_poll_does_not_commit_the_same_offsets_again_and_again():
    auto_commit, commits = new_auto_commit(interval_ms=0)
    auto_commit.poll(0)
    commits.on_done({}, None)
    assert auto_commit.poll(1) == 1_000
    assert len(commits.made) == 1
    auto_commit.positions[P0] = OffsetAndMetadata(6)
    auto_commit.poll(2)
    assert len(commits.made) == 2
    commits.on_done({}, None)
    auto_commit.poll(1_000)
    assert len(commits.made) == 3  # now and then, so that they do not expire


def test_before_a_revocation_only_what_goes_is_committed_and_in_bounded_time():
    auto_commit, commits = new_auto_commit()
    auto_commit.positions[P1] = OffsetAndMetadata(7)
    pending = auto_commit.before_revocation({P1, TopicPartition("orders", 9)})
    assert commits.made == [(5_000, {P1: OffsetAndMetadata(7)})]
    pending.complete(CommitFailedError("too late"))
    auto_commit.revocation_done(pending)
    assert commits.reported == [({P1: OffsetAndMetadata(7)}, pending.exception)]


def test_there_is_nothing_to_wait_for_without_a_position_or_without_automatic_commits():
    auto_commit, commits = new_auto_commit()
    assert auto_commit.before_revocation({P1}) is None
    auto_commit.is_enabled = False
    assert auto_commit.before_revocation({P0}) is None
    assert commits.made == []


def test_a_failed_commit_at_the_end_is_reported_and_not_raised(caplog):
    auto_commit, commits = new_auto_commit()
    commits.error = CommitFailedError("too late")
    auto_commit.commit_and_wait()
    assert commits.made == [("waits", POSITIONS)]
    assert commits.reported == [(POSITIONS, commits.error)]
    assert "automatic commit of offsets failed: " in caplog.text


def test_nothing_is_committed_while_it_is_disabled():
    auto_commit, commits = new_auto_commit(is_enabled=False)
    assert auto_commit.poll(1000) == math.inf
    auto_commit.commit_now()
    auto_commit.commit_and_wait()
    assert commits.made == []
