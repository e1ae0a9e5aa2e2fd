"""Decodes records into Arrow's memory layout: one set of buffers for many batches.

`pyclient.records.columns` wraps the buffers and documents them.
"""

from array import array
from typing import Final

from pyclient._pure.checksums import Buffer
from pyclient._pure.decoder import RecordDecoder

_MAX_COLUMN: Final = 0x7FFF_FFFF  # Arrow's 32-bit offsets
_MAX_OFFSET: Final = 0x7FFF_FFFF_FFFF_FFFF


class _BinaryColumn:
    """A nullable column of byte strings."""

    __slots__ = ("items", "size")

    def __init__(self) -> None:
        self.items: list[bytes | None] = []
        self.size = 0

    def put(self, item: bytes | None) -> None:
        self.items.append(item)
        if item is not None:
            self.size += len(item)

    def finish(self, name: str, buffers: dict[str, Buffer | None]) -> None:
        items = self.items
        offsets = array("i", [0])
        end = 0
        for item in items:
            if item is not None:
                end += len(item)
            offsets.append(end)
        # Arrow's bitmap is the binary number whose lowest bit is the first item.
        bits = "".join(["0" if item is None else "1" for item in reversed(items)])
        validity = int(bits or "0", 2).to_bytes((len(items) + 7) // 8, "little")
        buffers[f"{name}.validity"] = validity if None in items else None
        buffers[f"{name}.offsets"] = memoryview(offsets)
        buffers[f"{name}.data"] = b"".join([item for item in items if item is not None])


class ColumnBuffers:
    """The buffers of Arrow columns, filled batch by batch; `finish` hands them out."""

    __slots__ = (
        "_header_key",
        "_header_value",
        "_headers",
        "_key",
        "_limit",
        "_offset",
        "_partition",
        "_timestamp",
        "_timestamp_type",
        "_topic",
        "_value",
        "_with_headers",
    )

    def __init__(self, *, headers: bool = False, limit: int = _MAX_COLUMN) -> None:
        self._with_headers = headers
        self._limit = limit
        self._key = _BinaryColumn()
        self._value = _BinaryColumn()
        self._topic = array("i")
        self._partition = array("i")
        self._offset = array("q")
        self._timestamp = array("q")
        self._timestamp_type = array("i")
        self._headers = array("i", [0])
        self._header_key = _BinaryColumn()
        self._header_value = _BinaryColumn()

    @property
    def rows(self) -> int:
        return len(self._offset)

    def has_room_for(self, size: int) -> bool:
        """Whether `size` more bytes of records are certain to fit into every column."""
        columns = (self._key, self._value, self._header_key, self._header_value)
        # A header name that is not UTF-8 at most triples: each bad byte becomes U+FFFD.
        return max(column.size for column in columns) + 3 * size <= self._limit

    def add(
        self,
        records: Buffer,
        record_count: int,
        base_offset: int,
        base_timestamp: int,
        log_append_time_ms: int | None = None,
        topic: int = 0,
        partition: int = -1,
        from_offset: int = 0,
        until_offset: int = _MAX_OFFSET,
        *,
        position: int = 0,
        expanded: bool = False,
    ) -> int:
        """Append the records of a batch with `from_offset <= offset < until_offset`.

        Returns the number of rows added. `topic` is an index into the caller's list of topics.

        Raises:
            CorruptRecordError: the bytes are not the announced records; no row was added.
        """
        if not self.has_room_for(len(records)):
            raise ValueError("the columns have no room for the batch: finish them first")
        decoder = RecordDecoder(
            records,
            record_count,
            base_offset,
            base_timestamp,
            log_append_time_ms,
            from_offset=from_offset,
            position=position,
            expanded=expanded,
        )
        before = self.rows
        for record in decoder.read():
            if record.offset >= until_offset:
                continue
            self._put(
                record.offset,
                record.timestamp,
                record.timestamp_type,
                record.key,
                record.value,
                topic,
                partition,
            )
            if self._with_headers and record.headers:
                for name, value in record.headers:
                    self._header_key.put(name.encode())
                    self._header_value.put(value)
                self._headers[-1] = len(self._header_key.items)
        return self.rows - before

    def add_record(
        self,
        offset: int,
        timestamp: int,
        timestamp_type: int,
        key: bytes | None,
        value: bytes | None,
        topic: int = 0,
        partition: int = -1,
    ) -> None:
        """Append one record without headers, as in the legacy formats."""
        if not self.has_room_for(len(key or b"") + len(value or b"")):
            raise ValueError("the columns have no room for the record: finish them first")
        self._put(offset, timestamp, timestamp_type, key, value, topic, partition)

    def _put(
        self,
        offset: int,
        timestamp: int,
        timestamp_type: int,
        key: bytes | None,
        value: bytes | None,
        topic: int,
        partition: int,
    ) -> None:
        self._key.put(key)
        self._value.put(value)
        self._topic.append(topic)
        self._partition.append(partition)
        self._offset.append(offset)
        self._timestamp.append(timestamp)
        self._timestamp_type.append(timestamp_type)
        self._headers.append(self._headers[-1])

    def finish(self) -> dict[str, Buffer | None]:
        """The buffers by column, in Arrow's layout. The object must not be used afterwards."""
        buffers: dict[str, Buffer | None] = {
            "topic": memoryview(self._topic),
            "partition": memoryview(self._partition),
            "offset": memoryview(self._offset),
            "timestamp": memoryview(self._timestamp),
            "timestamp_type": memoryview(self._timestamp_type),
        }
        self._key.finish("key", buffers)
        self._value.finish("value", buffers)
        if self._with_headers:
            buffers["headers.offsets"] = memoryview(self._headers)
            self._header_key.finish("headers.key", buffers)
            self._header_value.finish("headers.value", buffers)
        return buffers
