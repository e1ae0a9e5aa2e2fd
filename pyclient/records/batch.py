"""Reading record batches: a cheap view of the 61-byte header, and the records behind it.

Nothing is copied or decoded before it is used: `RecordBatch` is a view of the caller's buffer. It
has no state; any thread may use it. `CorruptRecordError` names the base offset and the byte of the
input that is wrong.
"""

import struct
from collections.abc import Iterator
from typing import TYPE_CHECKING, Final, TypeAlias

from pyclient import _twin
from pyclient.errors import CorruptRecordError
from pyclient.records.compression import MAX_EXPANDED, Buffer, decompress
from pyclient.records.header import (
    CODEC_MASK,
    CONTROL,
    CRC_FROM,
    DELETE_HORIZON,
    HEADER_SIZE,
    LOG_APPEND_TIME,
    LOG_OVERHEAD,
    MAGIC,
    MAGIC_AT,
    TRANSACTIONAL,
    unpack_header,
)
from pyclient.records.record import ConsumerRecord

if TYPE_CHECKING:
    from pyclient.records.legacy import LegacyBatch

_SMALLEST_LEGACY: Final = 14
_PREFIX: Final = struct.Struct(">qiib")


class RecordBatch:
    """A v2 batch at `position` of `buffer`: header fields as attributes, records on demand.

    Raises:
        CorruptRecordError: the header is cut off, or its length cannot be right.
    """

    __slots__ = (
        "attributes",
        "base_offset",
        "base_sequence",
        "base_timestamp",
        "batch_length",
        "crc",
        "data",
        "last_offset_delta",
        "leader_epoch",
        "magic",
        "max_timestamp",
        "position",
        "producer_epoch",
        "producer_id",
        "record_count",
    )

    def __init__(self, buffer: Buffer, position: int = 0) -> None:
        view = memoryview(buffer)
        if len(view) - position < HEADER_SIZE:
            raise CorruptRecordError(
                f"{len(view) - position} bytes are left, fewer than a batch's header",
                position=position,
            )
        (
            self.base_offset,
            self.batch_length,
            self.leader_epoch,
            self.magic,
            self.crc,
            self.attributes,
            self.last_offset_delta,
            self.base_timestamp,
            self.max_timestamp,
            self.producer_id,
            self.producer_epoch,
            self.base_sequence,
            self.record_count,
        ) = unpack_header(view, position)
        self.position = position
        size = self.batch_length + LOG_OVERHEAD
        if self.magic != MAGIC or not HEADER_SIZE <= size <= len(view) - position:
            raise CorruptRecordError(
                f"a batch of {size} bytes and magic {self.magic} where {len(view) - position} "
                "bytes are left",
                base_offset=self.base_offset,
                position=position,
            )
        self.data = view[position : position + size]

    @property
    def size_in_bytes(self) -> int:
        """The whole batch, its header included."""
        return self.batch_length + LOG_OVERHEAD

    @property
    def codec(self) -> int:
        """The compression codec, as in `compression.Codec`."""
        return self.attributes & CODEC_MASK

    @property
    def timestamp_type(self) -> int:
        """0: CreateTime, 1: LogAppendTime."""
        return 1 if self.attributes & LOG_APPEND_TIME else 0

    @property
    def is_transactional(self) -> bool:
        """Whether the batch is part of a transaction."""
        return bool(self.attributes & TRANSACTIONAL)

    @property
    def is_control(self) -> bool:
        """Whether the batch holds a control record: no consumer gets to see it."""
        return bool(self.attributes & CONTROL)

    @property
    def has_delete_horizon(self) -> bool:
        """Whether `base_timestamp` is the time from which compaction may drop tombstones."""
        return bool(self.attributes & DELETE_HORIZON)

    @property
    def has_producer_id(self) -> bool:
        """Whether an idempotent producer wrote the batch."""
        return self.producer_id >= 0

    @property
    def last_offset(self) -> int:
        """The last offset that the batch covers, even if compaction removed its record."""
        return self.base_offset + self.last_offset_delta

    @property
    def next_offset(self) -> int:
        """The offset after the batch, where a reader continues."""
        return self.base_offset + self.last_offset_delta + 1

    @property
    def last_sequence(self) -> int:
        """The sequence of the last record, -1 without sequences; it wraps at 2^31 to 0."""
        if self.base_sequence < 0:
            return -1
        return (self.base_sequence + self.last_offset_delta) & 0x7FFF_FFFF

    def crc_is_valid(self) -> bool:
        """Whether the checksum matches the bytes."""
        return _twin.crc32c(self.data[CRC_FROM:]) == self.crc

    def check_crc(self) -> None:
        """Refuse a damaged batch.

        Raises:
            CorruptRecordError: the checksum does not match.
        """
        if not self.crc_is_valid():
            raise CorruptRecordError(
                f"the batch at offset {self.base_offset} fails its checksum",
                base_offset=self.base_offset,
                position=self.position,
            )

    def records(self, max_expanded: int = MAX_EXPANDED) -> Buffer:
        """The bytes of the records, expanded if they are compressed.

        Raises:
            CorruptRecordError: the compressed bytes are damaged, or expand beyond the limit.
            UnsupportedCodecError: the library of the batch's codec is not installed.
        """
        packed = self.data[HEADER_SIZE:]
        if not self.codec:
            return packed
        try:
            return decompress(self.codec, packed, max_expanded)
        except CorruptRecordError as error:
            raise CorruptRecordError(
                f"the batch at offset {self.base_offset} cannot be expanded: {error}",
                base_offset=self.base_offset,
                position=self.position + HEADER_SIZE,
            ) from error

    def decoder(
        self,
        topic: str = "",
        partition: int = -1,
        *,
        from_offset: int = 0,
        max_expanded: int = MAX_EXPANDED,
    ) -> "_twin.RecordDecoder":
        """Expand the records and read them piece by piece: `decoder(...).read(max_records)`."""
        return _twin.RecordDecoder(
            self.records(max_expanded),
            self.record_count,
            self.base_offset,
            self.base_timestamp,
            self.max_timestamp if self.timestamp_type else None,
            topic,
            partition,
            self.leader_epoch,
            from_offset,
            position=self.position + HEADER_SIZE,
            expanded=self.codec != 0,
        )

    def decode(
        self,
        topic: str = "",
        partition: int = -1,
        *,
        from_offset: int = 0,
        max_expanded: int = MAX_EXPANDED,
    ) -> list[ConsumerRecord]:
        """All records from `from_offset` on.

        Raises:
            CorruptRecordError: the records do not match the header.
            UnsupportedCodecError: the library of the batch's codec is not installed.
        """
        return self.decoder(
            topic, partition, from_offset=from_offset, max_expanded=max_expanded
        ).read()

    def __repr__(self) -> str:
        return (
            f"RecordBatch(base_offset={self.base_offset}, last_offset={self.last_offset}, "
            f"record_count={self.record_count}, size_in_bytes={self.size_in_bytes}, "
            f"attributes={self.attributes:#04x}, producer_id={self.producer_id}, "
            f"producer_epoch={self.producer_epoch}, base_sequence={self.base_sequence})"
        )


AnyBatch: TypeAlias = "RecordBatch | LegacyBatch"


def iter_batches(buffer: Buffer, position: int = 0) -> Iterator[AnyBatch]:
    """The batches in `buffer`, of any format; a last one that is cut off is left out.

    A broker cuts a fetch response at its size limit, so it may end inside a batch.

    Raises:
        CorruptRecordError: a batch has an invalid length or format.
    """
    view = memoryview(buffer)
    size = len(view)
    while size - position > MAGIC_AT:
        base_offset, length, _, magic = _PREFIX.unpack_from(view, position)
        if length < _SMALLEST_LEGACY or not 0 <= magic <= MAGIC:
            raise CorruptRecordError(
                f"there is no batch of length {length} and magic {magic}",
                base_offset=base_offset,
                position=position,
            )
        if length > size - position - LOG_OVERHEAD:
            return
        yield RecordBatch(view, position) if magic == MAGIC else _legacy_batch(view, position)
        position += LOG_OVERHEAD + length


def _legacy_batch(view: memoryview, position: int) -> "LegacyBatch":
    from pyclient.records.legacy import LegacyBatch  # brokers have written none since 2017

    return LegacyBatch(view, position)
