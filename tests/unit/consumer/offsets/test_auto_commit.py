"""Automatic commits: when they are due, and what becomes of failures."""

import math

from pyclient.clock import ManualClock
from pyclient.consumer.offsets.auto_commit import AutoCommit, AutoCommitTimer
from pyclient.errors import CommitFailedError, CoordinatorLoadInProgressError
from pyclient.types import OffsetAndMetadata, TopicPartition

POSITIONS = {TopicPartition("orders", 0): OffsetAndMetadata(5)}
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
        self.on_done = callback

    def commit(self, offsets, timeout_ms, call, interruptible):
        assert not interruptible
        self.made.append(("waits", offsets))
        if self.error is not None:
            raise self.error


def new_auto_commit(*, is_enabled=True):
    commits = FakeCommits()
    clock = ManualClock(0)
    auto_commit = AutoCommit(is_enabled, 100, RETRY_BACKOFF_MS, clock, lambda: POSITIONS, commits)
    return auto_commit, commits


def test_automatic_commits_come_in_intervals_and_sooner_after_a_failure():
    timer = AutoCommitTimer(100, 0)
    assert not timer.take_due(99)
    assert timer.take_due(100)
    assert not timer.take_due(150)
    timer.retry_at(160)
    assert timer.due_at_ms == 160
    assert timer.take_due(160)
    assert timer.due_at_ms == 260


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


def test_a_failed_commit_before_a_revocation_is_reported_and_not_raised(caplog):
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
