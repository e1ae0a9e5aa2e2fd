"""Builds a v2 batch in pooled buffers.

The builder takes no lock: threads that share an open batch hold one around `try_append`, `extend`
and `seal` (in the native twin these three are atomic).
"""

import struct
from typing import Any, Final

from pyclient._pure.checksums import Buffer, crc32c_of_parts
from pyclient._pure.layout import Headers, encode_headers, record_size, sized
from pyclient._pure.wire import VARINTS
from pyclient.records.compression import Codec, compress
from pyclient.records.header import (
    CONTROL,
    CRC_AT,
    CRC_FROM,
    HEADER,
    HEADER_SIZE,
    LEADER_EPOCH_AT,
    LOG_APPEND_TIME,
    LOG_OVERHEAD,
    MAGIC,
    TRANSACTIONAL,
)

_MAX_INT32: Final = 0x7FFF_FFFF
_MAX_INT64: Final = 0x7FFF_FFFF_FFFF_FFFF


class _Segment:
    """A buffer of the batch, and the pieces of records that are written to it together.

    Writing each record separately would cost more than the rest of an append in Python.
    """

    __slots__ = ("buffer", "pieces", "room", "view")

    def __init__(self, buffer: bytearray | memoryview, first: bytes = b"") -> None:
        self.view = memoryview(buffer).cast("B")  # the export keeps a bytearray from resizing
        if self.view.readonly:
            raise BufferError("a batch needs a writable buffer")
        self.buffer = buffer
        self.pieces = [first]
        self.room = len(self.view) - len(first)

    def write(self) -> memoryview:
        """Write the records into the buffer; returns the part that they fill.

        Starts over if a previous call was interrupted.
        """
        used = len(self.view) - self.room
        if self.pieces:
            self.view[:used] = b"".join(self.pieces)
            self.pieces.clear()
        return self.view[:used]


class BatchBuilder:
    """A v2 record batch that grows in the buffers it is given.

    The header takes the first 61 bytes of the first buffer.
    """

    __slots__ = (
        "_append_time",
        "_attributes",
        "_base_offset",
        "_base_sequence",
        "_base_timestamp",
        "_codec",
        "_count",
        "_header",
        "_leader_epoch",
        "_level",
        "_limit",
        "_max_timestamp",
        "_open",
        "_parts",
        "_producer_epoch",
        "_producer_id",
        "_raw",
        "_segments",
        "_size",
        "_tail",
        "_tail_number",
    )

    def __init__(
        self,
        buffer: bytearray | memoryview,
        *,
        codec: int = 0,
        level: int | None = None,
        log_append_time_ms: int | None = None,
        transactional: bool = False,
        control: bool = False,
        producer_id: int = -1,
        producer_epoch: int = -1,
        base_sequence: int = -1,
        base_offset: int = 0,
        leader_epoch: int = -1,
        limit: int = _MAX_INT32,
    ) -> None:
        segment = _Segment(buffer, first=bytes(HEADER_SIZE))
        if segment.room < 0:
            raise ValueError(
                f"a batch needs a buffer of at least 61 bytes, not {len(segment.view)}"
            )
        if not 0 <= codec <= max(Codec):
            raise ValueError(f"there is no compression codec {codec}")
        if not HEADER_SIZE <= limit <= _MAX_INT32:
            raise ValueError(f"a batch's limit is between 61 bytes and 2 GiB, not {limit}")
        self._segments = [segment]
        self._tail = segment
        self._tail_number = 0
        self._raw = HEADER_SIZE
        self._limit = limit
        self._codec = codec
        self._level = level
        self._append_time = log_append_time_ms
        self._attributes = (
            codec
            | (LOG_APPEND_TIME if log_append_time_ms is not None else 0)
            | (TRANSACTIONAL if transactional else 0)
            | (CONTROL if control else 0)
        )
        self._producer_id = producer_id
        self._producer_epoch = producer_epoch
        self._base_sequence = base_sequence
        self._base_offset = base_offset
        self._leader_epoch = leader_epoch
        self._base_timestamp = self._max_timestamp = -1
        self._count = 0
        self._size = 0
        self._header: bytearray | None = None
        self._parts: list[memoryview] | None = None
        self._open = True

    @property
    def record_count(self) -> int:
        """Records appended so far."""
        return self._count

    @property
    def raw_size(self) -> int:
        """Bytes of header and records before compression."""
        return self._raw

    @property
    def size_in_bytes(self) -> int:
        """Bytes on the wire, once closed."""
        self._require_closed()
        return self._size

    @property
    def compression_ratio(self) -> float:
        """Bytes on the wire divided by bytes before compression, once closed."""
        self._require_closed()
        return self._size / self._raw

    @property
    def base_timestamp(self) -> int:
        """The first record's timestamp, -1 without records."""
        return self._base_timestamp

    @property
    def max_timestamp(self) -> int:
        """The largest timestamp, or the append time where the batch has one."""
        return self._max_timestamp if self._append_time is None else self._append_time

    @property
    def producer_id(self) -> int:
        """The idempotent producer's id, -1 without one."""
        return self._producer_id

    @property
    def producer_epoch(self) -> int:
        """The idempotent producer's epoch."""
        return self._producer_epoch

    @property
    def base_sequence(self) -> int:
        """The sequence number of the first record."""
        return self._base_sequence

    @property
    def is_sealed(self) -> bool:
        """Whether the batch takes no more records."""
        return not self._open

    @property
    def is_closed(self) -> bool:
        """Whether `close` has made the batch's bytes."""
        return self._parts is not None

    def has_room_for(
        self, timestamp_ms: int, key: Buffer | None, value: Buffer | None, headers: Headers = ()
    ) -> bool:
        """Whether `try_append` of this record would succeed now."""
        size = self.size_of(timestamp_ms, key, value, headers)
        return (
            self._open
            and size <= self._limit - self._raw
            and (size <= self._tail.room or self._next_has_room(size))
        )

    def size_of(
        self, timestamp_ms: int, key: Buffer | None, value: Buffer | None, headers: Headers = ()
    ) -> int:
        """The exact size of this record as the next one of the batch."""
        if type(timestamp_ms) is not int or not -1 <= timestamp_ms <= _MAX_INT64:
            raise _bad_timestamp(timestamp_ms)
        delta = timestamp_ms - self._base_timestamp if self._count else 0
        return record_size(delta, self._count, key, value, headers)

    def try_append(
        self,
        timestamp_ms: int,
        key: Buffer | None,
        value: Buffer | None,
        headers: Headers = (),
        /,
    ) -> int:
        """Append a record.

        Returns its index in the batch, or -1 when it does not fit into the newest buffer or the
        batch's limit, or when the batch is sealed.
        """
        if type(timestamp_ms) is not int or not -1 <= timestamp_ms <= _MAX_INT64:
            raise _bad_timestamp(timestamp_ms)
        # Encoded inline, with the size summed up by hand: calling functions for either would double
        # the cost of an append in Python.
        index = self._count
        timestamp = VARINTS[timestamp_ms - self._base_timestamp if index else 0]
        offset = VARINTS[index]
        if type(key) is not bytes:
            key_size, key = sized(key)
        else:
            key_size = VARINTS[len(key)]
        if type(value) is not bytes:
            value_size, value = sized(value)
        else:
            value_size = VARINTS[len(value)]
        tail = encode_headers(headers) if headers else b"\0"
        size = 1 + len(timestamp) + len(offset) + len(key_size) + len(key) + len(value_size)
        size += len(value) + len(tail)
        length = VARINTS[size]
        size += len(length)
        if size > self._limit - self._raw or not self._open:
            return -1
        segment = self._tail
        if size > segment.room:
            if not self._next_has_room(size):
                return -1
            self._tail_number += 1
            segment = self._tail = self._segments[self._tail_number]
        segment.pieces += (length, b"\0", timestamp, offset, key_size, key, value_size, value, tail)
        segment.room -= size
        if timestamp_ms > self._max_timestamp:
            self._max_timestamp = timestamp_ms
        if index == 0:
            self._base_timestamp = timestamp_ms
        self._raw += size
        self._count = index + 1
        return index

    def extend(self, buffers: list[bytearray]) -> bool:
        """Add buffers, which are taken out of the list and used once the earlier ones are full.

        Returns False when sealed; the caller then keeps the buffers.
        """
        if not self._open:
            return False
        segments = [_Segment(buffer) for buffer in reversed(buffers)]
        # One step, so that an interrupt leaves each buffer in one place.
        self._segments[len(self._segments) :], buffers[:] = segments, ()
        return True

    def release_unused(self) -> list[bytearray | memoryview]:
        """Give back the buffers without records, once sealed."""
        if self._open:
            return []
        unused = self._segments[self._tail_number + 1 :]
        del self._segments[self._tail_number + 1 :]
        for segment in unused:
            segment.view.release()
        return [segment.buffer for segment in unused]

    def _next_has_room(self, size: int) -> bool:
        number = self._tail_number + 1
        return number < len(self._segments) and size <= self._segments[number].room

    def seal(self) -> bool:
        """Accept no more records; returns whether this call sealed the batch."""
        if not self._open:
            return False
        self._open = False
        return True

    def close(self, *, detach: bool = False) -> list[memoryview]:
        """Seal, compress, write header and checksum: the batch as a list of memoryviews.

        Closing again returns the same parts. The parts of an uncompressed batch are views of the
        buffers. Those of a compressed batch, or with `detach`, are copies: `release` may follow
        at once.

        Raises:
            ValueError: the batch has no records, or was released before it was closed.
        """
        if self._parts is not None:
            return self._parts
        if self._count == 0 or not self._segments:
            raise ValueError("a batch without records cannot be closed")
        self._open = False
        parts = [part for segment in self._segments if (part := segment.write())]
        if self._codec or detach:
            parts[0] = parts[0][HEADER_SIZE:]
            body = compress(self._codec, parts, self._level) if self._codec else b"".join(parts)
            self._header = bytearray(HEADER_SIZE)
            parts = [memoryview(self._header), memoryview(body)]
        size = sum(map(len, parts))
        if size - LOG_OVERHEAD > _MAX_INT32:
            raise ValueError(f"the batch has become {size} bytes large, beyond 2 GiB")
        self._size = size
        self._parts = parts
        self._write_header(parts)
        return parts

    def set_producer_state(self, producer_id: int, producer_epoch: int, base_sequence: int) -> None:
        """Number the batch; after `close` this updates the checksum."""
        self._producer_id = producer_id
        self._producer_epoch = producer_epoch
        self._base_sequence = base_sequence
        if self._parts is not None:
            self._write_header(self._parts)

    def set_base_offset(self, base_offset: int) -> None:
        """Set the first record's offset; it is outside the checksum."""
        self._base_offset = base_offset
        if self._parts is not None:
            struct.pack_into(">q", self._parts[0], 0, base_offset)

    def set_leader_epoch(self, leader_epoch: int) -> None:
        """Set the leader's epoch; it is outside the checksum."""
        self._leader_epoch = leader_epoch
        if self._parts is not None:
            struct.pack_into(">i", self._parts[0], LEADER_EPOCH_AT, leader_epoch)

    def release(self) -> list[bytearray | memoryview]:
        """Give the buffers back, each once.

        The bytes of an uncompressed batch go with them; a detached batch keeps its parts. An open
        batch is sealed.
        """
        self._open = False
        segments, self._segments = self._segments, []
        for segment in segments:
            segment.view.release()
        if self._header is None:
            self._parts = None
        return [segment.buffer for segment in segments]

    def release_to(self, buffers: list[Any]) -> None:
        """`release` into a list, in one step that an interrupt cannot split."""
        buffers += self.release()

    @property
    def is_detached(self) -> bool:
        """Whether the closed batch does not need its buffers: it is compressed, or was copied."""
        return self._header is not None

    def _require_closed(self) -> None:
        if not self._size:
            raise ValueError("the batch is not closed yet")

    def _write_header(self, parts: list[memoryview]) -> None:
        first = parts[0]
        HEADER.pack_into(
            first,
            0,
            self._base_offset,
            self._size - LOG_OVERHEAD,
            self._leader_epoch,
            MAGIC,
            0,
            self._attributes,
            self._count - 1,
            self._base_timestamp,
            self.max_timestamp,
            self._producer_id,
            self._producer_epoch,
            self._base_sequence,
            self._count,
        )
        crc = crc32c_of_parts((first[CRC_FROM:], *parts[1:]))
        struct.pack_into(">I", first, CRC_AT, crc)


def check_timestamp(timestamp_ms: int) -> int:
    """A timestamp that a record can have.

    Raises:
        TypeError, ValueError, OverflowError: it cannot.
    """
    if type(timestamp_ms) is not int or not -1 <= timestamp_ms <= _MAX_INT64:
        raise _bad_timestamp(timestamp_ms)
    return timestamp_ms


def _bad_timestamp(timestamp_ms: object) -> Exception:
    if not isinstance(timestamp_ms, int):
        return TypeError(f"a timestamp is an int, not {type(timestamp_ms).__name__}")
    if timestamp_ms > _MAX_INT64:
        return OverflowError(f"a timestamp has 64 bits: {timestamp_ms}")
    return ValueError(f"a timestamp is not negative: {timestamp_ms}")
