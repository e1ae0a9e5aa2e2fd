"""Reads groups and offsets back from `__consumer_offsets` at start.

A record that cannot be read is skipped, logged with its place and counted: one bad record must not
keep the broker from serving everything else.
"""

from collections.abc import Iterator
from typing import Final

from broker_stub import diagnostics
from broker_stub.coordinator.group_log import OFFSETS_TOPIC, committed_offset, read_entry
from broker_stub.coordinator.offsets import CommittedOffsets
from broker_stub.log.internal_batches import read_batches
from broker_stub.log.partition_log import PartitionLog
from pyclient.errors import CorruptRecordError, ProtocolError
from pyclient.protocol.messages.group_records import (
    GroupMetadataKey,
    GroupMetadataValue,
    OffsetCommitValue,
)
from pyclient.records.record import ConsumerRecord
from pyclient.types import TopicPartition

_LOGGED_MAX: Final = 20
"""Further unreadable records are only counted."""


class GroupLoader:
    """Replays the partitions of `__consumer_offsets`, one after another.

    Attributes:
        groups: the last value of each group that was not deleted.
        unreadable: how many records were skipped.
    """

    def __init__(self, offsets: CommittedOffsets) -> None:
        self._offsets = offsets
        self.groups: dict[str, GroupMetadataValue] = {}
        self.unreadable = 0

    def replay(self, log: PartitionLog) -> None:
        """Apply the records of one partition."""
        for record in self._records(log):
            try:
                self._apply(record.key, record.value)
            except (CorruptRecordError, ProtocolError) as error:
                self._skip(log, record.offset, str(error))

    def _records(self, log: PartitionLog) -> Iterator[ConsumerRecord]:
        uncommitted = log.uncommitted()
        try:
            for batch in read_batches(log, log.log_start_offset):
                if batch.is_control or uncommitted.covers(batch):
                    continue
                try:
                    records = list(batch.decode(log.topic, log.partition))
                except CorruptRecordError as error:
                    self._skip(log, batch.base_offset, f"the batch is damaged: {error}")
                    continue
                yield from records
        except CorruptRecordError as error:
            # Where one batch ends is unknown, so the rest of the partition is lost.
            self._skip(log, log.log_start_offset, f"reading stopped: {error}")

    def _apply(self, key: bytes | None, value: bytes | None) -> None:
        entry_key, entry_value = read_entry(key, value)
        if isinstance(entry_key, GroupMetadataKey):
            assert entry_value is None or isinstance(entry_value, GroupMetadataValue)
            if entry_value is None:
                self.groups.pop(entry_key.group, None)
            else:
                self.groups[entry_key.group] = entry_value
            return
        partition = TopicPartition(entry_key.topic, entry_key.partition)
        if entry_value is None:
            self._offsets.remove(entry_key.group, partition)
        else:
            assert isinstance(entry_value, OffsetCommitValue)
            self._offsets.put(entry_key.group, partition, committed_offset(entry_value))

    def _skip(self, log: PartitionLog, offset: int, reason: str) -> None:
        self.unreadable += 1
        if self.unreadable <= _LOGGED_MAX:
            diagnostics.warn(
                "skipping an unreadable record of %s-%d at offset %d: %s",
                OFFSETS_TOPIC, log.partition, offset, reason,
            )  # fmt: skip

    def finish(self) -> None:
        """Log how many records were skipped beyond those that were logged one by one."""
        if self.unreadable > _LOGGED_MAX:
            diagnostics.warn(
                "skipped %d unreadable records of %s in all", self.unreadable, OFFSETS_TOPIC
            )
