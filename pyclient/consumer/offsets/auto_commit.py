"""Automatic commits: what is committed, and when. The caller's thread only.

What: the positions, which are the offsets behind the records that earlier polls returned. When:

- every `auto.commit.interval.ms`, inside a poll;
- before a rebalance takes partitions away, and in `close`: these two wait for the result;
- before `assign` or `unsubscribe` replaces partitions that the program assigned.

A failed automatic commit is logged and passed to `default.offset.commit.callback`, never raised.
"""

import logging
import math
from collections.abc import Callable
from typing import Final

from pyclient.clock import Clock
from pyclient.consumer.offsets.commit import Offsets
from pyclient.consumer.offsets.commit_calls import CommitCalls
from pyclient.errors import KafkaError

log = logging.getLogger(__name__)

_CALL: Final = "the automatic commit"


class AutoCommit:
    """Commits the positions of one consumer, as long as `is_enabled`."""

    def __init__(
        self,
        is_enabled: bool,
        interval_ms: float,
        retry_backoff_ms: float,
        clock: Clock,
        positions: Callable[[], Offsets],
        commits: CommitCalls,
    ) -> None:
        """`positions` tells what to commit."""
        self.is_enabled = is_enabled
        self._timer = AutoCommitTimer(interval_ms, clock.monotonic_ms())
        self._retry_backoff_ms = retry_backoff_ms
        self._clock = clock
        self._positions = positions
        self._commits = commits

    def poll(self, now_ms: float) -> float:
        """Commit if the interval is over. Returns when to call again; infinity if disabled."""
        if not self.is_enabled:
            return math.inf
        if self._timer.take_due(now_ms):
            self.commit_now()
        return self._timer.due_at_ms

    def commit_now(self) -> None:
        """Commit before partitions are replaced, without waiting for the result."""
        if self.is_enabled:
            self._commits.commit_async(self._positions(), self._on_done)

    def commit_and_wait(self, timeout_ms: float | None = None) -> None:
        """Commit before partitions are given up. Not interrupted by `wakeup`; never raises."""
        if not self.is_enabled:
            return
        offsets = self._positions()
        try:
            self._commits.commit(offsets, timeout_ms, _CALL, interruptible=False)
        except KafkaError as error:
            self._on_done(offsets, error)
        else:
            self._on_done(offsets, None)

    def _on_done(self, offsets: Offsets, error: KafkaError | None) -> None:
        if error is not None:
            log.warning("the automatic commit of offsets failed: %s", error)
            if error.retriable:
                self._timer.retry_at(self._clock.monotonic_ms() + self._retry_backoff_ms)
        if self._commits.default_callback is not None:
            self._commits.default_callback(offsets, error)


class AutoCommitTimer:
    """When the next automatic commit is due."""

    def __init__(self, interval_ms: float, now_ms: float) -> None:
        self._interval_ms = interval_ms
        self.due_at_ms = now_ms + interval_ms

    def take_due(self, now_ms: float) -> bool:
        """True once per interval; then the next commit is due an interval from now."""
        if now_ms < self.due_at_ms:
            return False
        self.due_at_ms = now_ms + self._interval_ms
        return True

    def retry_at(self, at_ms: float) -> None:
        """The last commit failed with a retriable error: do not wait for the whole interval."""
        self.due_at_ms = min(self.due_at_ms, at_ms)
