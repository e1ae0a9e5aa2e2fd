"""Handing out collected records one at a time, for `for record in consumer`.

The caller's thread only, but for `interrupt`. The position moves with each record that the program
has got, not with the batch it came in: so `commit` inside the loop commits what the loop has seen.
It is computed on demand (`settle`), because a lock per record would cost more than the record.
"""

import math
from collections import deque
from collections.abc import Callable, Collection, Iterable

from pyclient import _twin
from pyclient.consumer.fetch.collector import CollectedRecords
from pyclient.consumer.partition_state import PositionMove
from pyclient.consumer.subscription_state import SubscriptionState
from pyclient.errors import KafkaError
from pyclient.net.request_manager import NOTHING_TO_DO, PollResult
from pyclient.types import TopicPartition


class RecordIterator:
    """The records of the last poll that the program has not got yet.

    Attributes:
        cursor: hands them out; an iterator.
    """

    def __init__(self, subscription: SubscriptionState) -> None:
        self._subscription = subscription
        self._waiting: deque[CollectedRecords] = deque()
        self._collected: CollectedRecords | None = None
        self._refill: Callable[[], None] = _nothing
        self.cursor = _twin.RecordCursor(self._call_refill)

    def on_empty(self, refill: Callable[[], None]) -> None:
        """Call `refill` when a record is wanted and none is ready, or after `interrupt`.

        It makes records ready by `open_next`, or raises StopIteration.
        """
        self._refill = refill

    def _call_refill(self) -> None:
        self._refill()

    def interrupt(self) -> None:
        """Something is due: `refill` before the next record. Any thread."""
        self.cursor.interrupted = True

    # --- refilling ---------------------------------------------------------------------------

    def begin_refill(self) -> None:
        """Hand out nothing until `open_next`; the position is that of the program."""
        self.cursor.close()
        self.cursor.interrupted = False
        self.settle()

    def feed(self, collected: Iterable[CollectedRecords]) -> None:
        """Hand these out, behind what is left."""
        self._waiting.extend(collected)

    def open_next(self) -> bool:
        """Hand out what is there; False if there is nothing."""
        while self._collected is None or self.cursor.index >= len(self._collected.records):
            self.settle()
            if not self._waiting:
                return False
            self.cursor.load(self._waiting[0].records)
            self._collected = self._waiting.popleft()
        self.cursor.open()
        return True

    # --- positions ---------------------------------------------------------------------------

    def settle(self) -> None:
        """Move the position behind the last record that the program has got."""
        collected, index = self._collected, self.cursor.index
        if collected is None:
            return
        at, records, next_offset, leader_epoch = collected
        if index < len(records):
            if index == 0:
                return
            last = records[index - 1]
            next_offset, leader_epoch = last.offset + 1, last.leader_epoch
        self._subscription.advance([PositionMove(at, next_offset, leader_epoch)])
        if index >= len(records):
            self._collected = None

    def prune(self) -> None:
        """Drop records of partitions that were lost, sought or reset meanwhile."""
        self._drop(lambda collected: not self._subscription.is_current(collected.at))

    def rewind(self, partitions: Collection[TopicPartition] | None = None) -> None:
        """Drop records that the program has not got, of these partitions or of all.

        They come again: the position is before the first of them.
        """
        self.settle()
        dropped = self._drop(
            lambda collected: partitions is None or collected.at.partition in partitions
        )
        self._subscription.refetch({collected.at for collected in dropped})

    def _drop(self, is_dropped: Callable[[CollectedRecords], bool]) -> list[CollectedRecords]:
        """What was dropped."""
        dropped = []
        present = self._collected
        if present is not None and is_dropped(present):
            self.cursor.close()
            self._collected = None
            dropped.append(present)
        dropped += [collected for collected in self._waiting if is_dropped(collected)]
        if dropped:
            kept = [collected for collected in self._waiting if not is_dropped(collected)]
            self._waiting = deque(kept)
        return dropped


def _nothing() -> None:
    pass


class AttentionAlarm:
    """Interrupts an iteration when something is due. Set by the caller, polled by the I/O thread.

    So the iteration need not read the clock for each record.
    """

    def __init__(self, interrupt: Callable[[], None]) -> None:
        self._interrupt = interrupt
        self._at_ms = math.inf
        self._planned_ms = math.inf  # the I/O thread wakes up for this

    def set(self, at_ms: float) -> bool:
        """Interrupt at that time; True if the I/O thread has to be woken to know. The caller."""
        self._at_ms = at_ms
        return at_ms < self._planned_ms

    def poll(self, now_ms: float) -> PollResult:
        """Interrupt if it is time."""
        if now_ms >= self._at_ms:
            self._at_ms = self._planned_ms = math.inf
            self._interrupt()
            return NOTHING_TO_DO
        # Again if the caller has set it meanwhile, without seeing the new plan.
        while self._planned_ms != (at_ms := self._at_ms):
            self._planned_ms = at_ms
        return PollResult((), self._planned_ms)

    def close(self, error: KafkaError) -> None:
        """The loop has ended; nothing waits here."""
