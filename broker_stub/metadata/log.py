"""`__cluster_metadata-0`: the changes to the cluster, as records in Kafka's own frames.

A log of Apache Kafka is continued in place: its newest snapshot is read first, then the records
after it. Only the controller appends (serving thread); `sync` may run on any thread.
"""

from collections.abc import Iterable, Iterator, Sequence
from typing import Final, NamedTuple

from broker_stub import diagnostics
from broker_stub.log.internal_batches import build_batch, read_batches
from broker_stub.log.log_config import LogConfig
from broker_stub.log.log_manager import LogManager
from broker_stub.log.partition_log import AppendOrigin
from broker_stub.metadata.frames import decode_frame, encode_frame
from broker_stub.metadata.quorum import voters_in, voters_of_state
from broker_stub.metadata.snapshots import list_snapshots, read_snapshot
from pyclient.clock import Clock
from pyclient.errors import CorruptRecordError, KafkaStorageError
from pyclient.protocol.messages.metadata_records import (
    AbortTransactionRecord,
    BeginTransactionRecord,
    EndTransactionRecord,
)
from pyclient.protocol.schema import Message
from pyclient.records.batch import RecordBatch

CLUSTER_METADATA: Final = "__cluster_metadata"
_TOPIC_ID: Final = bytes(15) + b"\x01"  # reserved by Kafka for this topic
# A quorum of one node has one election: the first, or the last one of Apache Kafka.
_LEADER_EPOCH: Final = 1
_CONFIG: Final = LogConfig.from_values(
    {
        "retention.ms": -1,  # the image is built from the whole log
        "retention.bytes": -1,
        "max.message.bytes": 64 << 20,  # one change is one batch, even of ten thousand partitions
        "cleanup.policy": ["delete"],
    }
)


class LoggedRecord(NamedTuple):
    """A change and its offset in the log."""

    offset: int
    record: Message


class MetadataLog:
    """The log of the cluster's changes."""

    def __init__(self, manager: LogManager, clock: Clock) -> None:
        self._clock = clock
        self._log = manager.create(CLUSTER_METADATA, 0, topic_id=_TOPIC_ID, config=_CONFIG)
        self._log.update_config(_CONFIG)
        self.leader_epoch = max(_LEADER_EPOCH, self._log.leader_epochs.latest_epoch)
        self.voters = frozenset[int]()
        """The controllers that a log of Apache Kafka names, after replay; our own names none."""

    @property
    def is_empty(self) -> bool:
        """Whether nothing was ever written."""
        return self.end_offset == 0

    @property
    def end_offset(self) -> int:
        """The offset that the next record gets."""
        return self._log.log_end_offset

    def append(self, records: Sequence[Message]) -> list[LoggedRecord]:
        """Write one change as one batch: after a crash, all of its records are there or none.

        It must be synced before the next one; see `Controller`.

        Raises:
            KafkaStorageError: the disk refused; nothing was written.
        """
        now_ms = self._clock.now_ms()
        batch = build_batch([(None, encode_frame(record)) for record in records], now_ms)
        info = self._log.append(
            batch, leader_epoch=self.leader_epoch, now_ms=now_ms, origin=AppendOrigin.COORDINATOR
        )
        self._log.advance_high_watermark(self._log.log_end_offset)
        return [
            LoggedRecord(info.first_offset + index, record) for index, record in enumerate(records)
        ]

    def sync(self) -> None:
        """Make the appended records survive a power failure."""
        self._log.flush()

    def replay(self) -> Iterator[LoggedRecord]:
        """All committed records, oldest first.

        A transaction that was not ended is aborted in the log; otherwise later records would
        belong to it.

        Raises:
            CorruptRecordError: a record is damaged.
            KafkaStorageError: a part of the log is missing.
        """
        self.voters = voters_of_state(self._log.folder)
        unknown: set[int] = set()
        end_offset, snapshot = self._newest_snapshot()
        for record in self._records(snapshot, unknown):
            yield LoggedRecord(end_offset - 1, record.record)
        transaction: list[LoggedRecord] | None = None
        for logged in self._records(self._batches_from(end_offset), unknown):
            match logged.record:
                case BeginTransactionRecord():
                    transaction = []
                case AbortTransactionRecord():
                    transaction = None
                case EndTransactionRecord():
                    yield from transaction or ()
                    transaction = None
                case _ if transaction is not None:
                    transaction.append(logged)
                case _:
                    yield logged
        if transaction is not None:
            diagnostics.warn("aborting a metadata transaction that was not ended")
            self.append([AbortTransactionRecord(reason="not ended before a restart")])
            self.sync()

    def _newest_snapshot(self) -> tuple[int, list[RecordBatch]]:
        """The newest intact snapshot and its end offset; without one, offset 0 and no batches."""
        for snapshot in list_snapshots(self._log.folder):
            try:
                return snapshot.end_offset, read_snapshot(snapshot)
            except CorruptRecordError as error:
                diagnostics.warn("%s; using an older snapshot, and the log after it", error)
        return 0, []

    def _batches_from(self, offset: int) -> Iterator[RecordBatch]:
        start, end = self._log.log_start_offset, self._log.log_end_offset
        if not start <= offset <= end:
            raise KafkaStorageError(
                f"{self._log.folder} has metadata from offset {start} to {end}, but not at"
                f" {offset}, where the newest snapshot ends or the log starts: a part is missing"
            )
        return self._whole(read_batches(self._log, offset))

    def _whole(self, batches: Iterable[RecordBatch]) -> Iterator[RecordBatch]:
        """Batches, after checking their checksums and that their offsets are contiguous."""
        next_offset: int | None = None
        for batch in batches:
            try:
                batch.check_crc()
            except CorruptRecordError as error:
                raise CorruptRecordError(f"{self._log.folder} is damaged: {error}") from error
            if next_offset not in (None, batch.base_offset):
                raise CorruptRecordError(
                    f"{self._log.folder} is damaged: offset {batch.base_offset} follows"
                    f" {next_offset}"
                )
            next_offset = batch.last_offset + 1
            yield batch

    def _records(self, batches: Iterable[RecordBatch], unknown: set[int]) -> Iterator[LoggedRecord]:
        for batch in batches:
            if batch.is_control:
                self.voters = voters_in(batch) or self.voters
                continue
            for entry in batch.decode():
                if entry.value is None:
                    raise CorruptRecordError(f"a metadata record without a value at {entry.offset}")
                record = decode_frame(entry.value, unknown)
                if record is not None:
                    yield LoggedRecord(entry.offset, record)
