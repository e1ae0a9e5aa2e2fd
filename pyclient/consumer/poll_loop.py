"""What happens inside `poll`. The caller's thread only, but for `wakeup`.

Besides returning records, a poll does what only the caller's thread may do: it runs what the I/O
thread has posted (rebalance steps, callbacks, errors) and makes the automatic commits.
"""

from __future__ import annotations

import logging
import math
from collections.abc import Iterator
from typing import TYPE_CHECKING

from pyclient.consumer.core import END_MS, ConsumerCore
from pyclient.errors import IllegalStateError, KafkaError
from pyclient.records.columns import ColumnsBuilder
from pyclient.timers import Deadline

if TYPE_CHECKING:
    import pyarrow as pa

    from pyclient.consumer.fetch.collector import CollectedRecords
    from pyclient.consumer.use_guard import UseGuard
    from pyclient.records.record import ConsumerRecord

log = logging.getLogger(__name__)


class PollLoop:
    """The caller's side of one consumer.

    Attributes:
        core: the parts on the engine.
        iterator: what iteration has not handed out yet.
        is_closed: whether `close` was called.
    """

    def __init__(self, core: ConsumerCore) -> None:
        config = core.config
        self.core = core
        self.iterator = core.iterator
        self.is_closed = False
        self._clock = core.engine.clock
        self._max_records: int = config["max.poll.records"]
        self._api_timeout_ms: int = config["default.api.timeout.ms"]
        # A program that waits inside a poll is not late for the next one: restart the timer of
        # max.poll.interval.ms often enough.
        self._attention_ms: float = config["max.poll.interval.ms"] / 3
        self._attention_at_ms = -math.inf

    # --- records -----------------------------------------------------------------------------

    def poll(self, timeout_ms: float, max_records: int) -> list[CollectedRecords]:
        """Records, as soon as there are some; their positions are moved."""
        deadline = Deadline(self._clock, timeout_ms)
        self.iterator.rewind()
        self.core.metrics.polled(self._clock.monotonic_ms())
        while True:
            self._attend()
            collected = self.core.collector.collect(max_records)
            if collected:
                break
            if not self._wait(deadline):
                return []
        for at, records, next_offset, leader_epoch in collected:
            self.core.metrics.returned(len(records))
            self.core.subscription.consumed(at, next_offset, leader_epoch)
        return collected

    def poll_arrow(self, timeout_ms: float, max_bytes: int, headers: bool) -> pa.Table:
        """Records as Arrow columns, as soon as there are some; their positions are moved."""
        deadline = Deadline(self._clock, timeout_ms)
        self.iterator.rewind()
        self.core.metrics.polled(self._clock.monotonic_ms())
        builder = ColumnsBuilder(headers=headers)
        while True:
            self._attend()
            rows = self.core.collector.collect_columns(builder, max_bytes)
            if rows or not self._wait(deadline):
                self.core.metrics.returned(rows)
                return builder.finish()

    def next_record(self, timeout_ms: float) -> ConsumerRecord | None:
        """The next record of an iteration; None if none comes in time."""
        if self.is_closed:
            return None
        deadline = Deadline(self._clock, timeout_ms)
        self.core.metrics.polled(self._clock.monotonic_ms())
        while True:
            # Between any two records: a rebalance need not wait for the rest of a batch.
            self.iterator.settle()
            self._attend()
            self.iterator.prune()
            record = self.iterator.take()
            if record is not None:
                return record
            collected = self.core.collector.collect(self._max_records)
            if collected:
                self.core.metrics.returned(sum(len(one.records) for one in collected))
                self.iterator.feed(collected)
            elif not self._wait(deadline):
                return None

    def iterate(self, in_use: UseGuard, timeout_ms: float) -> Iterator[ConsumerRecord]:
        """All records, one by one, until none comes in time."""
        inbox, take, now_ms = self.core.inbox, self.iterator.take, self._clock.monotonic_ms
        while True:
            with in_use:
                record = self.next_record(timeout_ms)
            if record is None:
                return
            yield record
            # Then the rest of its batch, with a look at what is due in between, and no more.
            while inbox.is_empty and now_ms() < self._attention_at_ms:
                record = take()
                if record is None:
                    break
                yield record

    def _attend(self) -> None:
        """Do what is due besides records."""
        core = self.core
        core.engine.check_usable("poll()")
        if core.wait.is_woken:
            core.wait.raise_if_woken()
        now_ms = self._clock.monotonic_ms()
        is_first = not core.poll_timer.is_running
        core.poll_timer.polled(now_ms)
        if is_first:
            core.engine.wake()
        core.inbox.run()
        if core.subscription.start():
            core.engine.wake()
        self._attention_at_ms = now_ms + self._attention_ms
        if core.auto_commit.is_enabled:
            self._attention_at_ms = min(self._attention_at_ms, core.auto_commit.poll(now_ms))

    # --- waiting -----------------------------------------------------------------------------

    def wakeup(self) -> None:
        """End the current wait, or the next one, with WakeupError. Any thread."""
        self.core.wait.wakeup()
        self._attention_at_ms = -math.inf  # also between two records of an iteration

    def _wait(self, deadline: Deadline) -> bool:
        """Wait until something happens or is due; False if time runs out."""
        remaining_ms = deadline.remaining_ms()
        if remaining_ms <= 0:
            return False
        until_attention_ms = max(0.0, self._attention_at_ms - self._clock.monotonic_ms())
        self.core.inbox.wait(min(remaining_ms, until_attention_ms))
        return True

    # --- the end -----------------------------------------------------------------------------

    def unsubscribe(self) -> None:
        """Give up all partitions, and leave the group."""
        core = self.core
        if core.subscription.has_auto_assigned_partitions():
            self.iterator.settle()
            core.auto_commit.commit_and_wait()
            try:
                core.rebalancer.give_up_all(self._has_lost_membership())
            finally:
                core.requests.leave("the consumer unsubscribed", self._api_timeout_ms)
        else:
            self.iterator.settle()
            core.auto_commit.commit_now()
        core.subscription.unsubscribe()
        self.iterator.prune()
        core.requests.assignment_changed()

    def close(self, autocommit: bool, timeout_ms: float) -> None:
        """Commit, leave the group, and end, within the time."""
        core = self.core
        self.is_closed = True
        self._attention_at_ms = -math.inf  # ends an iteration
        deadline = Deadline(self._clock, timeout_ms)
        if not autocommit:
            core.auto_commit.is_enabled = False
        try:
            core.engine.check_usable("close()")
            self._leave(deadline)
        except IllegalStateError as error:  # a forked child, or the I/O thread has failed
            log.info("closing without leaving the group: %s", error)
        finally:
            core.close(deadline.remaining_ms())

    def _leave(self, deadline: Deadline) -> None:
        core = self.core
        core.wait.limit = deadline
        is_member = core.subscription.has_auto_assigned_partitions()
        self.iterator.settle()
        core.auto_commit.commit_and_wait(deadline.remaining_ms())
        core.auto_commit.is_enabled = False
        try:
            if is_member:
                core.rebalancer.give_up_all(self._has_lost_membership())
        finally:
            core.wait.until(core.commits.are_done, deadline, interruptible=False)
            core.requests.leave("the consumer is closing", max(deadline.remaining_ms(), END_MS))
            core.wait.until(core.membership.has_left, deadline, interruptible=False)
            # Callbacks of commits; rebalance steps that are left are cancelled.
            core.inbox.run_actions()

    def _has_lost_membership(self) -> bool:
        """Whether others may own the partitions already, so that no commit is possible."""
        return isinstance(self.core.membership.committer(), KafkaError)
