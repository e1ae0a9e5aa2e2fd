"""What happens inside `poll`. The caller's thread only, but for `wakeup`.

Besides returning records, a poll does what only the caller's thread may do: it runs what the I/O
thread has posted (rebalance steps, callbacks, errors) and makes the automatic commits.
"""

from __future__ import annotations

import logging
import math
from collections.abc import Mapping
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
    from pyclient.types import TopicPartition

log = logging.getLogger(__name__)


class PollLoop:
    """The caller's side of one consumer.

    Attributes:
        core: the parts on the engine.
        iterator: what iteration has not handed out yet.
        is_closed: whether `close` was called.
    """

    def __init__(self, core: ConsumerCore, in_use: UseGuard) -> None:
        config = core.config
        self.core = core
        self.iterator = core.iterator
        self.is_closed = False
        self._in_use = in_use
        self._clock = core.engine.clock
        self._max_records: int = config["max.poll.records"]
        self._api_timeout_ms: int = config["default.api.timeout.ms"]
        self._iteration_timeout_ms: float = config["consumer.timeout.ms"]
        # A program that waits inside a poll is not late for the next one: restart the timer of
        # max.poll.interval.ms often enough.
        self._attention_ms: float = config["max.poll.interval.ms"] / 3
        self._attention_at_ms = -math.inf
        self.iterator.on_empty(self._refill)

    # --- records -----------------------------------------------------------------------------

    def poll(
        self, timeout_ms: float, max_records: int, update_offsets: bool = True
    ) -> list[CollectedRecords]:
        """Records, as soon as there are some; their positions are moved.

        The caller has to call `returned` when it is done with them, or `recover` if it cannot
        return them.
        """
        collector = self.core.collector
        deadline = self._begin(timeout_ms)
        while True:
            self._attend()
            collected = collector.collect(max_records)
            if collected:
                break
            collector.close()
            if not self._wait(deadline):
                return []
        if update_offsets:
            collector.advance(collected)
        else:
            self.core.subscription.refetch([one.at for one in collected])
        self.core.metrics.returned(sum(len(one.records) for one in collected))
        return collected

    def poll_arrow(
        self,
        timeout_ms: float,
        max_bytes: int,
        max_records: int,
        end_offsets: Mapping[TopicPartition, int] | None,
        headers: bool,
    ) -> pa.Table:
        """Records as Arrow columns, as soon as there are some; otherwise as `poll`."""
        collector = self.core.collector
        deadline = self._begin(timeout_ms)
        builder = ColumnsBuilder(headers=headers)
        while True:
            self._attend()
            rows = collector.collect_columns(builder, max_bytes, max_records, end_offsets)
            if rows:
                break
            collector.close()
            if self._are_reached(end_offsets) or not self._wait(deadline):
                break
        self.core.metrics.returned(rows)
        return builder.finish()

    def _begin(self, timeout_ms: float) -> Deadline:
        deadline = Deadline(self._clock, timeout_ms)
        self.recover()
        self.iterator.rewind()
        self.core.metrics.polled(self._clock.monotonic_ms())
        return deadline

    def _are_reached(self, end_offsets: Mapping[TopicPartition, int] | None) -> bool:
        """Whether every assigned partition is at its end offset: no record will come."""
        if not end_offsets:
            return False
        positions = self.core.subscription.positions()
        assigned = self.core.subscription.assigned()
        return all(
            partition in positions
            and positions[partition].offset >= end_offsets.get(partition, math.inf)
            for partition in assigned
        )

    def returned(self) -> None:
        """The program gets what `poll` returned."""
        self.core.collector.close()

    def recover(self, is_cut_off: bool = False) -> None:
        """If a call was cut off before the program had the records, go back to where it was."""
        self.core.collector.recover(is_cut_off)

    def settle(self) -> None:
        """Make the positions those of the program: behind the last record that it got."""
        self.recover()
        self.iterator.settle()

    def next_record(self, timeout_ms: float) -> ConsumerRecord | None:
        """The next record of an iteration; None if none comes in time."""
        self._iteration_timeout_ms = timeout_ms
        return next(self.iterator.cursor, None)

    def _refill(self) -> None:
        """Make the next records of an iteration ready; StopIteration if none comes in time."""
        with self._in_use:
            if self.is_closed or not self._has_next(self._iteration_timeout_ms):
                raise StopIteration

    def _has_next(self, timeout_ms: float) -> bool:
        deadline = Deadline(self._clock, timeout_ms)
        collector, iterator = self.core.collector, self.iterator
        self.core.metrics.polled(self._clock.monotonic_ms())
        while True:
            # Between any two records: a rebalance need not wait for the rest of a batch.
            iterator.begin_refill()
            self.recover()
            self._attend()
            iterator.prune()
            if iterator.open_next():
                return True
            collected = collector.collect(self._max_records)
            iterator.feed(collected)
            collector.close()
            if collected:
                self.core.metrics.returned(sum(len(one.records) for one in collected))
                iterator.open_next()
                return True
            if not self._wait(deadline):
                return False

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
        if core.alarm.set(self._attention_at_ms):
            core.engine.wake()

    # --- waiting -----------------------------------------------------------------------------

    def wakeup(self) -> None:
        """End the current wait, or the next one, with WakeupError. Any thread."""
        self.core.wait.wakeup()
        self.iterator.interrupt()  # also between two records of an iteration

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
            self.settle()
            core.auto_commit.commit_and_wait()
            try:
                core.rebalancer.give_up_all(self._has_lost_membership())
            finally:
                try:
                    core.requests.leave("the consumer unsubscribed", self._api_timeout_ms)
                finally:  # interrupted: else a subscription without a membership would be left
                    self._drop_subscription()
        else:
            self.settle()
            core.auto_commit.commit_now()
            self._drop_subscription()

    def _drop_subscription(self) -> None:
        self.core.subscription.unsubscribe()
        self.iterator.prune()
        self.core.requests.assignment_changed()

    def close(self, autocommit: bool, timeout_ms: float) -> None:
        """Commit, leave the group, and end, within the time."""
        core = self.core
        self.is_closed = True
        self.iterator.interrupt()  # ends an iteration
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
        self.settle()
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
