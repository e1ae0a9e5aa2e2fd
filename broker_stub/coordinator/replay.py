"""Reads a coordinator's topic back at start.

A record that cannot be read is skipped, logged with its place and counted: one bad record must not
keep the broker from serving everything else.
"""

from collections.abc import Callable, Iterator
from typing import Final

from broker_stub import diagnostics
from broker_stub.log.internal_batches import read_batches
from broker_stub.log.partition_log import PartitionLog
from pyclient.errors import CorruptRecordError, ProtocolError
from pyclient.records.batch import RecordBatch
from pyclient.records.record import ConsumerRecord

_LOGGED_MAX: Final = 20
"""Further unreadable records are only counted."""


class Replay:
    """Replays the partitions of one topic, one after another.

    Attributes:
        unreadable: how many records were skipped.
    """

    def __init__(self, topic: str) -> None:
        self._topic = topic
        self.unreadable = 0

    def batches(self, log: PartitionLog) -> Iterator[RecordBatch]:
        """Every batch of a partition, in order."""
        try:
            yield from read_batches(log, log.log_start_offset)
        except CorruptRecordError as error:
            # Where one batch ends is unknown, so the rest of the partition is lost.
            self.skip(log, log.log_start_offset, f"reading stopped: {error}")

    def apply(
        self, log: PartitionLog, batch: RecordBatch, apply: Callable[[ConsumerRecord], None]
    ) -> None:
        """Apply every record of a batch; `apply` raises if it cannot read one."""
        try:
            records = list(batch.decode(log.topic, log.partition))
        except CorruptRecordError as error:
            self.skip(log, batch.base_offset, f"the batch is damaged: {error}")
            return
        for record in records:
            try:
                apply(record)
            except (CorruptRecordError, ProtocolError) as error:
                self.skip(log, record.offset, str(error))

    def skip(self, log: PartitionLog, offset: int, reason: str) -> None:
        """Log and count a record that cannot be read."""
        self.unreadable += 1
        if self.unreadable <= _LOGGED_MAX:
            diagnostics.warn(
                "skipping an unreadable record of %s-%d at offset %d: %s",
                self._topic, log.partition, offset, reason,
            )  # fmt: skip

    def finish(self) -> None:
        """Log how many records were skipped beyond those that were logged one by one."""
        if self.unreadable > _LOGGED_MAX:
            diagnostics.warn(
                "skipped %d unreadable records of %s in all", self.unreadable, self._topic
            )
