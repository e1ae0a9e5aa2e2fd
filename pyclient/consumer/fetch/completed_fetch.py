"""One partition's share of a fetch response: raw bytes, and the way from them to records.

The I/O thread makes it and looks at batch headers only. From then on it belongs to the caller's
thread, which checks, decompresses and decodes as many records at a time as a poll returns.
"""

import struct
from collections.abc import Iterator
from typing import Final

from pyclient._twin import RecordDecoder
from pyclient.consumer.fetch.aborted import AbortedTransactions
from pyclient.consumer.partition_state import NO_LEADER_EPOCH, PartitionEpoch
from pyclient.errors import CorruptRecordError, KafkaError
from pyclient.records.batch import AnyBatch, iter_batches
from pyclient.records.columns import ColumnsBuilder
from pyclient.records.header import LOG_OVERHEAD
from pyclient.records.legacy import LegacyDecoder
from pyclient.records.record import ConsumerRecord

_PREFIX = struct.Struct(">qiibIhi")  # base offset to last offset delta
_NO_BYTES = memoryview(b"")
UNLIMITED: Final = 0x7FFF_FFFF_FFFF_FFFF


def next_fetch_offset(records: memoryview, fetch_offset: int) -> int:
    """The offset of the next fetch: behind the last whole batch, by a walk over the headers.

    It stops at what is cut off or makes no sense, which is for the caller's thread to find.
    """
    at, size = 0, len(records)
    next_offset = fetch_offset
    while size - at >= _PREFIX.size:
        base_offset, length, _, magic, _, _, last_delta = _PREFIX.unpack_from(records, at)
        if not 0 < length <= size - at - LOG_OVERHEAD:
            break
        next_offset = max(next_offset, base_offset + 1 + (last_delta if magic == 2 else 0))
        at += LOG_OVERHEAD + length
    return next_offset


class ResponseMemory:
    """The bytes of one response, in memory as long as one of its fetches is."""

    __slots__ = ("size",)

    def __init__(self, size: int) -> None:
        self.size = size


class CompletedFetch:
    """What a broker sent of one partition, and how much of it is read.

    Attributes:
        at: the partition, and the epoch it was fetched in.
        fetch_offset: where it starts.
        leader_epoch: of the batch that was read last.
        size: the bytes of its records.
        response: the response that it keeps in memory.
        error: why there are no records.
    """

    __slots__ = (
        "_aborted",
        "_batch",
        "_batches",
        "_check_crcs",
        "_decoder",
        "_failure",
        "_is_read",
        "_reached",
        "_unread",
        "at",
        "error",
        "fetch_offset",
        "leader_epoch",
        "response",
        "size",
    )

    def __init__(
        self,
        at: PartitionEpoch,
        fetch_offset: int,
        records: memoryview = _NO_BYTES,
        *,
        check_crcs: bool = True,
        aborted: AbortedTransactions | None = None,
        error: KafkaError | None = None,
        response: ResponseMemory | None = None,
    ) -> None:
        self.at = at
        self.fetch_offset = fetch_offset
        self.leader_epoch = NO_LEADER_EPOCH
        self.size = len(records)
        self.response = response or ResponseMemory(self.size)
        self.error = error
        self._check_crcs = check_crcs
        self._aborted = aborted
        self._batches = self._readable(records)
        self._batch: AnyBatch | None = None
        self._decoder: RecordDecoder | LegacyDecoder | None = None
        self._is_read = False
        self._reached = fetch_offset
        self._unread: list[ConsumerRecord] = []
        self._failure: KafkaError | None = None

    @property
    def next_offset(self) -> int:
        """The position after the records that were read so far."""
        return self._unread[0].offset if self._unread else self._reached

    @property
    def is_drained(self) -> bool:
        """Whether all records were read."""
        return self._is_read and not self._unread

    @property
    def has_unread(self) -> bool:
        """Whether records were taken back: `read_columns` cannot give those."""
        return bool(self._unread)

    def read(self, max_records: int) -> list[ConsumerRecord]:
        """The next records, at most `max_records`: fewer at the end, and before a damaged batch.

        A damaged batch stops the partition here: this and every later call raises, until the
        program seeks elsewhere.

        Raises:
            CorruptRecordError: the next batch is damaged.
            UnsupportedCodecError: the library of its codec is not installed.
        """
        records, self._unread = self._unread[:max_records], self._unread[max_records:]
        if self._failure is None:
            try:
                while len(records) < max_records and not self._is_read:
                    records += self._read_batch(max_records - len(records))
            except KafkaError as error:
                self._failure = error
        if self._failure is not None and not records:
            raise self._failure
        return records

    def read_columns(
        self, builder: ColumnsBuilder, max_rows: int = UNLIMITED, end_offset: int = UNLIMITED
    ) -> int:
        """Add the records before `end_offset` to Arrow columns; the number of rows added.

        At most `max_rows`: fewer at the end, before a damaged batch, and where offsets have gaps.

        Raises:
            CorruptRecordError, UnsupportedCodecError: as `read`.
        """
        rows = 0
        self._decoder = None
        if self._failure is None:
            try:
                while rows < max_rows and self._reached < end_offset and not self._is_read:
                    rows += self._read_batch_columns(builder, max_rows - rows, end_offset)
            except KafkaError as error:
                self._failure = error
        if self._failure is not None and not rows:
            raise self._failure
        return rows

    def _read_batch_columns(self, builder: ColumnsBuilder, max_rows: int, end_offset: int) -> int:
        batch = self._batch = self._batch or next(self._batches, None)
        if batch is None:
            self._is_read = True
            return 0
        from_offset = max(self._reached, batch.base_offset)
        until_offset = min(from_offset + max_rows, end_offset)
        if until_offset <= from_offset:  # the next record is behind the end
            self._reached = end_offset
            return 0
        topic, partition = self.at.partition
        rows = builder.add(
            batch, topic, partition, from_offset=from_offset, until_offset=until_offset
        )
        self.leader_epoch = batch.leader_epoch
        self._reached = min(until_offset, batch.next_offset)
        if self._reached == batch.next_offset:
            self._batch = None
        return rows

    def unread(self, records: list[ConsumerRecord]) -> None:
        """Take back the last of the records that `read` gave; it gives them again."""
        self._unread = records + self._unread

    def _read_batch(self, max_records: int) -> list[ConsumerRecord]:
        if self._decoder is None:
            self._batch = self._batch or next(self._batches, None)
            if self._batch is None:
                self._is_read = True
                return []
            topic, partition = self.at.partition
            self._decoder = self._batch.decoder(topic, partition, from_offset=self._reached)
            self.leader_epoch = self._batch.leader_epoch
        records = self._decoder.read(max_records)
        if self._decoder.remaining:
            self._reached = records[-1].offset + 1
        else:
            assert self._batch is not None  # a decoder is one of a batch
            self._reached = self._batch.next_offset
            self._batch = self._decoder = None
        return records

    def _readable(self, records: memoryview) -> Iterator[AnyBatch]:
        """The batches that have records for the program, checked."""
        found = False
        for batch in iter_batches(records):
            if batch.next_offset <= self.fetch_offset:
                continue  # a broker may start a little before what was asked for
            found = True
            if self._check_crcs:
                batch.check_crc()
            aborted = self._aborted is not None and self._aborted.covers(batch)
            if aborted or batch.is_control:
                self._reached, self.leader_epoch = batch.next_offset, batch.leader_epoch
            else:
                yield batch
        if records and not found:
            topic, partition = self.at.partition
            raise CorruptRecordError(
                f"the broker sent {len(records)} bytes of {topic}-{partition} for offset "
                f"{self.fetch_offset}, but not one complete batch",
                base_offset=self.fetch_offset,
            )
