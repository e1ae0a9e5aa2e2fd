"""Automatic commits: what is committed, and when. The caller's thread only.

What: the positions, which are the offsets behind the records that earlier polls returned. When:

- every `auto.commit.interval.ms`, inside a poll, one at a time;
- before a rebalance takes partitions away, which waits for the result, in one poll or several;
- in `close`, which waits for the result, too;
- before `assign` or `unsubscribe` replaces partitions that the program assigned.

A failed automatic commit is logged and passed to `default.offset.commit.callback`, never raised.
"""

import logging
import math
from collections.abc import Callable, Collection
from typing import Final

from pyclient.clock import Clock
from pyclient.consumer.offsets.commit import Offsets
from pyclient.consumer.offsets.commit_calls import CommitCalls
from pyclient.consumer.pending import Pending
from pyclient.errors import KafkaError, RebalanceInProgressError
from pyclient.types import TopicPartition

log = logging.getLogger(__name__)

_CALL: Final = "the automatic commit"
_UNCHANGED_INTERVAL_MS: Final = 1_000
"""Offsets that have not changed are committed again, so that they do not expire; not as often."""


class AutoCommit:
    """Commits the positions of one consumer, as long as `is_enabled`."""

    def __init__(
        self,
        is_enabled: bool,
        interval_ms: float,
        retry_backoff_ms: float,
        revocation_timeout_ms: float,
        clock: Clock,
        positions: Callable[[], Offsets],
        commits: CommitCalls,
    ) -> None:
        """`positions` tells what to commit; `revocation_timeout_ms` is for a rebalance's."""
        self.is_enabled = is_enabled
        self._interval_ms = interval_ms
        self._retry_backoff_ms = retry_backoff_ms
        self._revocation_timeout_ms = revocation_timeout_ms
        self._clock = clock
        self._positions = positions
        self._commits = commits
        self._due_at_ms = clock.monotonic_ms() + interval_ms
        self._in_flight: Pending[None] | None = None
        self._sent: Offsets = {}  # last, and when
        self._sent_at_ms = -math.inf
        self._revoked: Offsets = {}

    def poll(self, now_ms: float) -> float:
        """Commit if the interval is over. Returns when to call again; infinity if disabled."""
        if not self.is_enabled or self._is_in_flight():
            return math.inf  # the end of the commit wakes the poll
        if now_ms < self._due_at_ms:
            return self._due_at_ms
        offsets = self._positions()
        unchanged_until_ms = self._sent_at_ms + _UNCHANGED_INTERVAL_MS
        if offsets == self._sent and now_ms < unchanged_until_ms:
            return unchanged_until_ms
        self._due_at_ms = now_ms + self._interval_ms
        self._send(offsets)
        return self._due_at_ms

    def commit_now(self) -> None:
        """Commit before partitions are replaced, without waiting for the result."""
        if self.is_enabled:
            self._send(self._positions())

    def before_revocation(self, partitions: Collection[TopicPartition]) -> Pending[None] | None:
        """Commit these partitions, which go to other members; None if there is nothing to do."""
        if not self.is_enabled:
            return None
        revoked = frozenset(partitions)
        offsets = {one: at for one, at in self._positions().items() if one in revoked}
        if not offsets:
            return None
        self._revoked = offsets
        # No other automatic commit until this one is over.
        self._in_flight = self._commits.commit_before_revocation(
            offsets, self._revocation_timeout_ms
        )
        return self._in_flight

    def revocation_done(self, commit: Pending[None]) -> None:
        """The commit before a revocation is over: report how it went."""
        if commit.exception is not None:
            log.warning(
                "the automatic commit before the rebalance failed, so other members may read "
                "some records again: %s",
                commit.exception,
            )
        self._due_at_ms = self._clock.monotonic_ms() + self._interval_ms
        if self._commits.default_callback is not None:
            self._commits.default_callback(self._revoked, commit.exception)

    def commit_and_wait(self, timeout_ms: float | None = None) -> None:
        """Commit when the consumer ends. Not interrupted by `wakeup`; never raises."""
        if not self.is_enabled:
            return
        offsets = self._positions()
        try:
            self._commits.commit(offsets, timeout_ms, _CALL, interruptible=False)
        except KafkaError as error:
            self._on_done(offsets, error)
        else:
            self._on_done(offsets, None)

    def _is_in_flight(self) -> bool:
        return self._in_flight is not None and not self._in_flight.is_done

    def _send(self, offsets: Offsets) -> None:
        self._sent, self._sent_at_ms = offsets, self._clock.monotonic_ms()
        self._in_flight = self._commits.commit_async(offsets, self._on_done)

    def _on_done(self, offsets: Offsets, error: KafkaError | None) -> None:
        if error is not None:
            self._sent = {}
            if isinstance(error, RebalanceInProgressError):
                log.debug("no automatic commit during a rebalance: %s", error)
            else:
                log.warning("the automatic commit of offsets failed: %s", error)
            # Never before: with a shorter interval it would fail again and again.
            retry_at_ms = self._clock.monotonic_ms() + self._retry_backoff_ms
            is_passing = error.retriable or isinstance(error, RebalanceInProgressError)
            self._due_at_ms = retry_at_ms if is_passing else max(self._due_at_ms, retry_at_ms)
        if self._commits.default_callback is not None:
            self._commits.default_callback(offsets, error)
