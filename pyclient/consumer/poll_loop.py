"""What happens inside `poll`, and how the consumer's calls wait. The caller's thread only.

Besides returning records, a poll does what only the caller's thread may do: it runs what the I/O
thread has posted (rebalance steps, callbacks, errors) and makes the automatic commits.
"""

from __future__ import annotations

import logging
import math
from collections import deque
from collections.abc import Callable, Iterator
from functools import partial
from typing import TYPE_CHECKING, Final, TypeVar

from pyclient.consumer.core import ConsumerCore
from pyclient.consumer.iteration import RecordIterator
from pyclient.consumer.offsets.commit import AutoCommitTimer
from pyclient.errors import IllegalStateError, KafkaError, KafkaTimeoutError, WakeupError
from pyclient.records.columns import ColumnsBuilder
from pyclient.timers import Deadline

if TYPE_CHECKING:
    import pyarrow as pa

    from pyclient.config.definition import Config
    from pyclient.consumer.fetch.collector import CollectedRecords
    from pyclient.consumer.offsets.commit import Offsets
    from pyclient.consumer.pending import Pending
    from pyclient.consumer.use_guard import UseGuard
    from pyclient.net.environment import Environment
    from pyclient.records.record import ConsumerRecord

log = logging.getLogger(__name__)

Value = TypeVar("Value")

_GRACE_MS: Final = 100
"""How much longer than its deadline a call waits for the core's own word on what went wrong."""
_END_MS: Final = 1_000
"""How long the I/O thread may take to end, once it is told to."""


class PollLoop:
    """The caller's side of one consumer.

    Attributes:
        core: the parts on the engine.
        iterator: what iteration has not handed out yet.
        is_closed: whether `close` was called.
    """

    def __init__(self, config: Config, client_id: str, environment: Environment | None) -> None:
        self.core = ConsumerCore(config, client_id, environment, self._commit_before_revocation)
        self.iterator = RecordIterator(self.core.subscription)
        self._clock = self.core.engine.clock
        self._default_callback: Callable[[Offsets, KafkaError | None], object] | None = config[
            "default.offset.commit.callback"
        ]
        self._max_records: int = config["max.poll.records"]
        self._api_timeout_ms: int = config["default.api.timeout.ms"]
        self._retry_backoff_ms: int = config["retry.backoff.ms"]
        self._auto_commit: AutoCommitTimer | None = None
        if config["enable.auto.commit"]:
            self._auto_commit = AutoCommitTimer(
                config["auto.commit.interval.ms"], self._clock.monotonic_ms()
            )
        # A program that waits in a poll is not late for the next: say so often enough.
        self._attention_ms: float = config["max.poll.interval.ms"] / 3
        self._attention_at_ms = -math.inf
        self._is_woken = False
        self._commits: deque[Pending[None]] = deque()  # that nobody waits for, but for `close`
        self.is_closed = False

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
        self._raise_if_woken()
        now_ms = self._clock.monotonic_ms()
        is_first = not core.poll_timer.is_running
        core.poll_timer.polled(now_ms)
        if is_first:
            core.engine.wake()
        core.inbox.run()
        if core.subscription.start():
            core.engine.wake()
        self._attention_at_ms = now_ms + self._attention_ms
        if self._auto_commit is not None:
            if self._auto_commit.is_due(now_ms):
                self.commit_async(core.subscription.positions(), self._on_auto_commit)
            self._attention_at_ms = min(self._attention_at_ms, self._auto_commit.due_at_ms)

    # --- waiting -----------------------------------------------------------------------------

    def wakeup(self) -> None:
        """End the present wait, or the next one, by WakeupError. Any thread."""
        self._is_woken = True
        self._attention_at_ms = -math.inf  # also between two records of an iteration
        self.core.inbox.ring()

    def _raise_if_woken(self) -> None:
        if self._is_woken:
            self._is_woken = False
            raise WakeupError("wakeup() was called")

    def _wait(self, deadline: Deadline) -> bool:
        """Wait for something to happen; False if the time is up."""
        remaining_ms = deadline.remaining_ms()
        if remaining_ms <= 0:
            return False
        until_attention_ms = max(0.0, self._attention_at_ms - self._clock.monotonic_ms())
        self.core.inbox.wait(min(remaining_ms, until_attention_ms))
        return True

    def wait_until(
        self, condition: Callable[[], bool], deadline: Deadline, interruptible: bool = True
    ) -> bool:
        """Wait for a condition that the I/O thread brings about; False if the time is up."""
        while not condition():
            self.core.engine.check_usable("waiting")
            if interruptible:
                self._raise_if_woken()
            remaining_ms = deadline.remaining_ms()
            if remaining_ms <= 0:
                return False
            self.core.inbox.wait(remaining_ms)
        return True

    def result_of(
        self, pending: Pending[Value], timeout_ms: float, call: str, interruptible: bool = True
    ) -> Value:
        """Wait for a result that the I/O thread brings.

        Raises:
            KafkaTimeoutError: it did not come in time.
            KafkaError: what came instead.
        """
        deadline = Deadline(self._clock, timeout_ms + _GRACE_MS)
        if not self.wait_until(lambda: pending.is_done, deadline, interruptible):
            raise KafkaTimeoutError(f"{call} was not answered within {timeout_ms:.0f} ms")
        return pending.result()

    # --- commits -----------------------------------------------------------------------------

    def commit(self, offsets: Offsets, timeout_ms: float | None) -> None:
        """Commit and wait for it."""
        timeout_ms = self._api_timeout_ms if timeout_ms is None else timeout_ms
        self.result_of(self.core.commit(offsets, timeout_ms, True), timeout_ms, "commit()")

    def commit_async(
        self,
        offsets: Offsets,
        callback: Callable[[Offsets, KafkaError | None], object] | None,
    ) -> Pending[None]:
        """Commit; the callback runs on the caller's thread, in a later poll."""
        callback = callback or self._default_callback
        then = None if callback is None else partial(callback, offsets)
        pending = self.core.commit(offsets, self._api_timeout_ms, False, then)
        self._commits.append(pending)
        while self._commits[0].is_done and len(self._commits) > 1:
            self._commits.popleft()
        return pending

    def _on_auto_commit(self, offsets: Offsets, error: KafkaError | None) -> None:
        if error is not None:
            log.warning("the automatic commit of offsets failed: %s", error)
            if error.retriable and self._auto_commit is not None:
                self._auto_commit.retry_at(self._clock.monotonic_ms() + self._retry_backoff_ms)
        if self._default_callback is not None:
            self._default_callback(offsets, error)

    def auto_commit_now(self) -> None:
        """Partitions are about to be replaced: commit them, without waiting."""
        self.iterator.settle()
        if self._auto_commit is not None:
            self.commit_async(self.core.subscription.positions(), self._on_auto_commit)

    def _commit_before_revocation(self) -> None:
        self.iterator.settle()
        self._auto_commit_and_wait(self._api_timeout_ms)

    def _auto_commit_and_wait(self, timeout_ms: float) -> None:
        if self._auto_commit is None:
            return
        offsets = self.core.subscription.positions()
        try:
            pending = self.core.commit(offsets, timeout_ms, True)
            self.result_of(pending, timeout_ms, "the automatic commit", interruptible=False)
        except KafkaError as error:
            self._on_auto_commit(offsets, error)
        else:
            self._on_auto_commit(offsets, None)

    # --- the end -----------------------------------------------------------------------------

    def unsubscribe(self) -> None:
        """Give up what is read, and leave the group."""
        core = self.core
        if core.subscription.has_auto_assigned_partitions():
            try:
                core.rebalancer.revoke_all()
            finally:
                core.leave("the consumer unsubscribed", self._api_timeout_ms)
        else:
            self.auto_commit_now()
        core.subscription.unsubscribe()
        self.iterator.prune()
        core.assigned()

    def close(self, autocommit: bool, timeout_ms: float) -> None:
        """Commit, leave the group, and end, within the time."""
        core = self.core
        self.is_closed = True
        self._attention_at_ms = -math.inf  # an iteration ends here
        deadline = Deadline(self._clock, timeout_ms)
        if not autocommit:
            self._auto_commit = None
        try:
            core.engine.check_usable("close()")
            self.iterator.settle()
            self._leave(deadline)
        except IllegalStateError as error:  # a forked child, or the I/O thread has failed
            log.info("closing without leaving the group: %s", error)
        finally:
            core.engine.close(max(deadline.remaining_ms(), _END_MS))

    def _leave(self, deadline: Deadline) -> None:
        core = self.core
        is_member = core.subscription.has_auto_assigned_partitions()
        self._auto_commit_and_wait(deadline.remaining_ms())
        self._auto_commit = None
        try:
            if is_member:
                core.rebalancer.revoke_all()
        finally:
            self.wait_until(
                lambda: all(one.is_done for one in self._commits), deadline, interruptible=False
            )
            core.leave("the consumer is closing", max(deadline.remaining_ms(), _END_MS))
            self.wait_until(core.has_left, deadline, interruptible=False)
            core.inbox.run_actions()  # callbacks of commits; what is left of rebalances is void
