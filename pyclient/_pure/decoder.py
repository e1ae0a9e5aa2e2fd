"""Reads the records of a v2 batch.

Every length is checked against the remaining bytes before it is used, and a count never
allocates. Any input results in records or in a CorruptRecordError.
"""

from pyclient._pure.checksums import Buffer
from pyclient._pure.record import ConsumerRecord
from pyclient._pure.wire import decode_varint, read_varint
from pyclient.errors import CorruptRecordError

_INT64_MIN, _INT64_MAX = -(1 << 63), (1 << 63) - 1
_VERIFIED_AT_ONCE = 1024


class RecordDecoder:
    """Turns the records of a batch into `ConsumerRecord`s, as many at a time as asked for."""

    __slots__ = (
        "_append_time",
        "_base_offset",
        "_base_timestamp",
        "_count",
        "_data",
        "_done",
        "_expanded",
        "_from_offset",
        "_leader_epoch",
        "_partition",
        "_position",
        "_reached",
        "_topic",
    )

    def __init__(
        self,
        records: Buffer,
        record_count: int,
        base_offset: int,
        base_timestamp: int,
        log_append_time_ms: int | None = None,
        topic: str = "",
        partition: int = -1,
        leader_epoch: int = -1,
        from_offset: int = 0,
        *,
        position: int = 0,
        expanded: bool = False,
    ) -> None:
        self._data = records if isinstance(records, bytes) else bytes(records)
        self._count = record_count
        self._base_offset = base_offset
        self._base_timestamp = base_timestamp
        self._append_time = log_append_time_ms
        self._topic = topic
        self._partition = partition
        self._leader_epoch = leader_epoch
        self._from_offset = from_offset
        self._position = position
        self._expanded = expanded
        self._done = 0
        self._reached = 0
        if record_count < 0:
            raise self._corrupt(f"it counts {record_count} records")

    @property
    def remaining(self) -> int:
        """Records not read yet."""
        return self._count - self._done

    def read(self, max_records: int = -1) -> list[ConsumerRecord]:
        """The next records from `from_offset` on, at most `max_records` (-1: all).

        Raises:
            CorruptRecordError: the bytes are not the records that the batch announced.
        """
        records: list[ConsumerRecord] = []
        try:
            self._read_into(records, max_records)
        except (ValueError, IndexError) as error:
            reason = str(error) if isinstance(error, ValueError) else "it ends early"
            raise self._corrupt(
                f"record {self._done} of {self._count}, byte {self._reached} of its records: "
                f"{reason}"
            ) from None
        if self._done == self._count and self._reached != len(self._data):
            raise self._corrupt(
                f"{len(self._data) - self._reached} bytes lie behind its last record"
            )
        return records

    def verify_produced(self) -> int:
        """Walk over the records that are left, as a producer writes them, and keep none.

        The latest of their timestamps; -1 where they have none.

        Raises:
            CorruptRecordError: the bytes are not the records that the batch announced, or their
                offsets do not follow each other.
        """
        self._from_offset = _INT64_MIN
        latest = -1
        while True:
            done = self._done
            for number, record in enumerate(self.read(_VERIFIED_AT_ONCE), done):
                if record.offset != self._base_offset + number:
                    raise self._corrupt(f"record {number} of {self._count} has another's offset")
                if record.timestamp > latest:
                    latest = record.timestamp
            if not self.remaining:
                return latest if self._append_time is None else self._append_time

    def _read_into(self, records: list[ConsumerRecord], max_records: int) -> None:
        # One long loop over local names, with varints of one and two bytes spelled out: calls and
        # attributes are what a record costs in Python. A varint that runs over the record's end
        # is found at the end of the record, one that runs over the data is an IndexError.
        data, size = self._data, len(self._data)
        topic, partition, leader_epoch = self._topic, self._partition, self._leader_epoch
        base_offset, from_offset = self._base_offset, self._from_offset
        base_timestamp, append_time = self._base_timestamp, self._append_time
        timestamp_type = 0 if append_time is None else 1
        new_record = tuple.__new__
        headers: list[tuple[str, bytes | None]]
        reached = at = self._reached
        done, count = self._done, self._count
        try:
            while done < count and len(records) != max_records:
                length = data[at]
                at += 1
                if length >= 0x80:
                    length += (data[at] << 7) - 0x80
                    at += 1
                    if length >= 0x4000:
                        length, at = read_varint(data, at - 2, size, 5)
                end = at + (length >> 1)
                if length & 1 or length == 0 or end > size:
                    raise ValueError("its length is wrong")
                at += 1  # attributes: a record has none
                timestamp = data[at]
                at += 1
                if timestamp >= 0x80:
                    timestamp += (data[at] << 7) - 0x80
                    at += 1
                    if timestamp >= 0x4000:
                        timestamp, at = read_varint(data, at - 2, size, 10)
                if append_time is None:
                    timestamp = base_timestamp + ((timestamp >> 1) ^ -(timestamp & 1))
                else:
                    timestamp = append_time
                offset = data[at]
                at += 1
                if offset >= 0x80:
                    offset += (data[at] << 7) - 0x80
                    at += 1
                    if offset >= 0x4000:
                        offset, at = read_varint(data, at - 2, size, 5)
                offset = base_offset + ((offset >> 1) ^ -(offset & 1))
                if not (
                    _INT64_MIN <= timestamp <= _INT64_MAX and _INT64_MIN <= offset <= _INT64_MAX
                ):
                    timestamp, offset = _wrap(timestamp), _wrap(offset)
                key_size = data[at]
                at += 1
                if key_size >= 0x80:
                    key_size += (data[at] << 7) - 0x80
                    at += 1
                    if key_size >= 0x4000:
                        key_size, at = read_varint(data, at - 2, size, 5)
                if key_size & 1:
                    key, key_size = _null(key_size)
                else:
                    key_size >>= 1
                    key = data[at : at + key_size]
                    at += key_size
                value_size = data[at]
                at += 1
                if value_size >= 0x80:
                    value_size += (data[at] << 7) - 0x80
                    at += 1
                    if value_size >= 0x4000:
                        value_size, at = read_varint(data, at - 2, size, 5)
                if value_size & 1:
                    value, value_size = _null(value_size)
                else:
                    value_size >>= 1
                    value = data[at : at + value_size]
                    at += value_size
                if data[at] == 0:
                    headers, header_size = [], -1
                    at += 1
                else:
                    headers, header_size, at = _read_headers(data, at, end)
                if at != end:
                    raise ValueError("its fields do not end where it does")
                if offset >= from_offset:
                    fields = (
                        topic,
                        partition,
                        leader_epoch,
                        offset,
                        timestamp,
                        timestamp_type,
                        key,
                        value,
                        headers,
                        None,
                        key_size,
                        value_size,
                        header_size,
                    )
                    records.append(new_record(ConsumerRecord, fields))
                reached = end
                done += 1
        finally:
            self._reached, self._done = reached, done

    def _corrupt(self, reason: str) -> CorruptRecordError:
        return CorruptRecordError(
            f"the batch at offset {self._base_offset} is corrupt: {reason}",
            base_offset=self._base_offset,
            position=self._position + (0 if self._expanded else self._reached),
        )


def _null(size: int) -> tuple[None, int]:
    if size != 1:
        raise ValueError("its key's or value's length is negative")
    return None, -1


def _read_headers(
    data: bytes, at: int, end: int
) -> tuple[list[tuple[str, bytes | None]], int, int]:
    """The headers, their bytes, and where they end."""
    count, at = decode_varint(data, at, end, 5)
    if count < 0 or 2 * count > end - at:
        raise ValueError("its header count is wrong")
    headers: list[tuple[str, bytes | None]] = []
    total = 0
    for _ in range(count):
        size, at = decode_varint(data, at, end, 5)
        if not 0 <= size <= end - at:
            raise ValueError("a header's name is longer than the record")
        # Java replaces what is not UTF-8, and a partition must not stop at such a name.
        name = data[at : at + size].decode("utf-8", "replace")
        at += size
        total += size
        size, at = decode_varint(data, at, end, 5)
        if not -1 <= size <= end - at:
            raise ValueError("a header's value is longer than the record")
        if size == -1:
            headers.append((name, None))
        else:
            headers.append((name, data[at : at + size]))
            at += size
            total += size
    return headers, total if count else -1, at


def _wrap(value: int) -> int:
    """Wrap to 64 bits, as Java's addition does: a delta from the wire may have any value."""
    return (value - _INT64_MIN) % (1 << 64) + _INT64_MIN
