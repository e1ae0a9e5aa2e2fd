"""The message formats before Kafka 0.11, magic 0 and 1: read only.

A message is a batch of its own; a compressed one wraps a whole set of messages, whose offsets are
absolute in the first format and relative to the wrapper's in the second. The wrapper's offset is
that of its last message.
"""

import struct
import zlib
from collections.abc import Iterator
from typing import Final, NamedTuple

from pyclient import _twin
from pyclient.errors import CorruptRecordError
from pyclient.records.compression import MAX_EXPANDED, Buffer, Codec, decompress
from pyclient.records.header import LOG_OVERHEAD
from pyclient.records.record import ConsumerRecord

_CRC_FROM: Final = 16
_PREFIX: Final = struct.Struct(">qiIbb")  # offset, size, crc, magic, attributes
_TIMESTAMP: Final = struct.Struct(">q")
_LENGTH: Final = struct.Struct(">i")
_MAX_OFFSET: Final = 2**63 - 1


class _Message(NamedTuple):
    offset: int
    timestamp: int
    attributes: int
    crc: int
    key: memoryview | None
    value: memoryview | None


class LegacyBatch:
    """One message of magic 0 or 1 at `position` of `buffer`, or the set that it wraps.

    Has the attributes of `RecordBatch`; those that these formats lack have Kafka's value for none.

    Attributes:
        size_in_bytes: of the whole message, its offset and length included.
        attributes: codec and timestamp type.
        codec: the compression codec, as in `compression.Codec`.
        timestamp_type: 0: CreateTime, 1: LogAppendTime, -1: the format has no timestamps.
        max_timestamp: the wrapper's, which is the largest of its messages'; -1 for magic 0.
        last_offset: the offset of the last message.
        next_offset: the offset after the batch, where a reader continues.

    Raises:
        CorruptRecordError: the message is cut off, or its lengths contradict each other.
    """

    __slots__ = (
        "_message",
        "attributes",
        "codec",
        "crc",
        "data",
        "last_offset",
        "magic",
        "max_timestamp",
        "next_offset",
        "position",
        "size_in_bytes",
        "timestamp_type",
    )

    leader_epoch: Final = -1
    producer_id: Final = -1
    producer_epoch: Final = -1
    base_sequence: Final = -1
    last_sequence: Final = -1
    has_producer_id: Final = False
    is_transactional: Final = False
    is_control: Final = False
    has_delete_horizon: Final = False

    def __init__(self, buffer: Buffer, position: int = 0) -> None:
        view = memoryview(buffer)
        self.position = position
        self.magic, self._message, end = _read_message(view, position, position)
        self.data = view[position:end]
        self.size_in_bytes = end - position
        self.last_offset, self.max_timestamp, self.attributes, self.crc, *_ = self._message
        self.next_offset = self.last_offset + 1
        self.codec = self.attributes & 0x07
        self.timestamp_type = -1 if self.magic == 0 else self.attributes >> 3 & 1

    @property
    def base_offset(self) -> int:
        """The offset of the first message: for a wrapper, known only by expanding it."""
        if not self.codec:
            return self.last_offset
        return next(iter(self._messages(MAX_EXPANDED))).offset

    def crc_is_valid(self) -> bool:
        """Whether the checksum matches the bytes."""
        return zlib.crc32(self.data[_CRC_FROM:]) == self.crc

    def check_crc(self) -> None:
        """Refuse a damaged message.

        Raises:
            CorruptRecordError: the checksum does not match.
        """
        if not self.crc_is_valid():
            raise self._corrupt("it fails its checksum")

    def decoder(
        self,
        topic: str = "",
        partition: int = -1,
        *,
        from_offset: int = 0,
        max_expanded: int = MAX_EXPANDED,
    ) -> "LegacyDecoder":
        """Expand the messages and read them piece by piece: `decoder(...).read(max_records)`."""
        return LegacyDecoder(
            self.decode(topic, partition, from_offset=from_offset, max_expanded=max_expanded)
        )

    def decode(
        self,
        topic: str = "",
        partition: int = -1,
        *,
        from_offset: int = 0,
        max_expanded: int = MAX_EXPANDED,
    ) -> list[ConsumerRecord]:
        """All messages from `from_offset` on.

        Raises:
            CorruptRecordError: the bytes are not messages, or expand beyond the limit.
            UnsupportedCodecError: the library of the codec is not installed.
        """
        timestamp_type = self.timestamp_type
        # With LogAppendTime, the broker stamped only the wrapper.
        append_time = self.max_timestamp if timestamp_type == 1 else None
        return [
            _twin.ConsumerRecord(
                topic,
                partition,
                -1,
                message.offset,
                message.timestamp if append_time is None else append_time,
                timestamp_type,
                None if message.key is None else bytes(message.key),
                None if message.value is None else bytes(message.value),
                [],
                message.crc,
                -1 if message.key is None else len(message.key),
                -1 if message.value is None else len(message.value),
                -1,
            )
            for message in self._messages(max_expanded)
            if message.offset >= from_offset
        ]

    def _corrupt(self, reason: str) -> CorruptRecordError:
        return CorruptRecordError(
            f"the message at offset {self.last_offset} is corrupt: {reason}",
            base_offset=self.last_offset,
            position=self.position,
        )

    def _messages(self, max_expanded: int) -> list[_Message]:
        if not self.codec:
            return [self._message]
        if self.codec == Codec.ZSTD:
            raise self._corrupt("zstd came after its format")
        if self._message.value is None:
            raise self._corrupt("a compressed message without a value")
        try:
            expanded = decompress(self.codec, self._message.value, max_expanded, magic=self.magic)
        except CorruptRecordError as error:
            raise self._corrupt(str(error)) from error
        messages = list(self._inner_messages(memoryview(expanded)))
        if not messages:
            raise self._corrupt("a compressed message without messages")
        if self.magic == 0:
            return messages
        # Relative offsets count from the wrapper's, which is the last message's own; a producer
        # leaves it at 0 for the broker to set.
        base = self.last_offset and self.last_offset - messages[-1].offset
        if base < 0:
            raise self._corrupt("its messages start before offset 0")
        if base + max(message.offset for message in messages) > _MAX_OFFSET:
            raise self._corrupt("its messages go beyond the last offset there can be")
        return [message._replace(offset=base + message.offset) for message in messages]

    def _inner_messages(self, expanded: memoryview) -> Iterator[_Message]:
        at = 0
        while at < len(expanded):
            magic, message, at = _read_message(expanded, at, self.position)
            if magic != self.magic or message.attributes & 0x07:
                raise self._corrupt("a wrapped message of another format, or itself compressed")
            if message.offset < 0:
                raise self._corrupt(f"a wrapped message at offset {message.offset}")
            yield message


class LegacyDecoder:
    """Hands out decoded messages as `RecordDecoder` does."""

    __slots__ = ("_done", "_records")

    def __init__(self, records: list[ConsumerRecord]) -> None:
        self._records = records
        self._done = 0

    @property
    def remaining(self) -> int:
        """Records not read yet."""
        return len(self._records) - self._done

    def read(self, max_records: int = -1) -> list[ConsumerRecord]:
        """The next records, at most `max_records` (-1: all)."""
        end = len(self._records) if max_records < 0 else self._done + max_records
        records = self._records[self._done : end]
        self._done += len(records)
        return records


def _read_message(view: memoryview, at: int, position: int) -> tuple[int, _Message, int]:
    """The message at `at`: its magic, itself, and where it ends; `position` is for errors."""
    offset = None
    try:
        offset, size, crc, magic, attributes = _PREFIX.unpack_from(view, at)
        end = at + LOG_OVERHEAD + size
        if magic not in (0, 1) or not at + _PREFIX.size <= end <= len(view):
            raise ValueError(f"a message of {size} bytes and magic {magic}")
        at += _PREFIX.size
        timestamp = -1
        if magic == 1:
            (timestamp,) = _TIMESTAMP.unpack_from(view, at)
            at += _TIMESTAMP.size
        key, at = _read_bytes(view, at, end)
        value, at = _read_bytes(view, at, end)
        if at != end:
            raise ValueError(f"{end - at} bytes lie behind its value")
    except (ValueError, struct.error) as error:
        raise CorruptRecordError(
            f"the message at offset {offset} is corrupt: {error}",
            base_offset=offset,
            position=position,
        ) from error
    return magic, _Message(offset, timestamp, attributes, crc, key, value), end


def _read_bytes(view: memoryview, at: int, end: int) -> tuple[memoryview | None, int]:
    (size,) = _LENGTH.unpack_from(view, at)
    at += _LENGTH.size
    if size == -1:
        return None, at
    if not 0 <= size <= end - at:
        raise ValueError(f"a key or value of {size} bytes where {end - at} are left")
    return view[at : at + size], at + size
