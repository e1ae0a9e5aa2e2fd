"""Reads groups and offsets back from `__consumer_offsets` at start."""

from functools import partial

from broker_stub.coordinator.groups.group_log import OFFSETS_TOPIC, committed_offset, read_entry
from broker_stub.coordinator.groups.offsets import CommittedOffsets
from broker_stub.coordinator.groups.pending_offsets import PendingOffsets
from broker_stub.coordinator.replay import Replay
from broker_stub.log.partition_log import PartitionLog
from broker_stub.log.producers.transactions import read_marker
from pyclient.errors import CorruptRecordError
from pyclient.protocol.messages.group_records import (
    GroupMetadataKey,
    GroupMetadataValue,
    OffsetCommitValue,
)
from pyclient.records.batch import RecordBatch
from pyclient.records.record import ConsumerRecord
from pyclient.types import TopicPartition


class GroupLoader:
    """Replays the partitions of `__consumer_offsets`, one after another.

    Attributes:
        groups: the last value of each group that was not deleted.
    """

    def __init__(self, offsets: CommittedOffsets, pending: PendingOffsets) -> None:
        self._offsets = offsets
        self._pending = pending
        self._replay = Replay(OFFSETS_TOPIC)
        self.groups: dict[str, GroupMetadataValue] = {}

    @property
    def unreadable(self) -> int:
        """How many records were skipped."""
        return self._replay.unreadable

    def replay(self, log: PartitionLog) -> None:
        """Apply the records of one partition."""
        for batch in self._replay.batches(log):
            if batch.is_control:
                self._end_transaction(log, batch)
            else:
                producer_id = batch.producer_id if batch.is_transactional else None
                apply = partial(self._apply, log.partition, producer_id)
                self._replay.apply(log, batch, apply)

    def _end_transaction(self, log: PartitionLog, batch: RecordBatch) -> None:
        try:
            marker = read_marker(batch, batch.data)
        except CorruptRecordError as error:
            self._replay.skip(log, batch.base_offset, f"the control batch is damaged: {error}")
            return
        if marker is None:
            return
        ended = self._pending.end(log.partition, batch.producer_id, committed=marker.committed)
        for group_id, offsets in ended:
            for partition, offset in offsets.items():
                self._offsets.put(group_id, partition, offset)

    def _apply(self, index: int, producer_id: int | None, record: ConsumerRecord) -> None:
        key, value = read_entry(record.key, record.value)
        if isinstance(key, GroupMetadataKey):
            assert value is None or isinstance(value, GroupMetadataValue)
            if value is None:
                self.groups.pop(key.group, None)
            else:
                self.groups[key.group] = value
            return
        partition = TopicPartition(key.topic, key.partition)
        if value is None:
            self._offsets.remove(key.group, partition)
            self._pending.remove(key.group, partition)
            return
        assert isinstance(value, OffsetCommitValue)
        offset = committed_offset(value)
        if producer_id is None:
            self._offsets.put(key.group, partition, offset)
            self._pending.supersede(key.group, partition)
        else:
            self._pending.put(index, producer_id, key.group, partition, offset)

    def finish(self) -> None:
        """Log how many records were skipped beyond those that were logged one by one."""
        self._replay.finish()
