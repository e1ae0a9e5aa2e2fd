"""Records as Arrow columns, without an object per record.

`ColumnsBuilder` takes batches of any partition and gives one table for all of them: one set of
buffers a fetch response, not one a batch. The columns:

| column | type |
|---|---|
| key, value | binary |
| topic | dictionary of string |
| partition | int32 |
| offset | int64 |
| timestamp | timestamp[ms, UTC] |
| timestamp_type | int32: 0 CreateTime, 1 LogAppendTime, -1 none |
| headers (if asked for) | list of struct of key (string), value (binary) |

pyarrow is imported here alone, and on first use. A builder belongs to one thread.
"""

from typing import TYPE_CHECKING, Any, Final

from pyclient import _twin
from pyclient.records.batch import AnyBatch, RecordBatch, iter_batches
from pyclient.records.compression import MAX_EXPANDED, Buffer
from pyclient.records.header import HEADER_SIZE

if TYPE_CHECKING:
    import pyarrow as pa

_MAX_OFFSET: Final = 0x7FFF_FFFF_FFFF_FFFF


class ColumnsBuilder:
    """Collects the records of many batches into the columns of one Arrow table."""

    __slots__ = ("_buffers", "_headers", "_tables", "_topics")

    def __init__(self, *, headers: bool = False) -> None:
        self._headers = headers
        self._topics: dict[str, int] = {}
        self._tables: list[pa.Table] = []
        self._buffers = _twin.ColumnBuffers(headers=headers)

    @property
    def rows(self) -> int:
        finished: int = sum(table.num_rows for table in self._tables)
        return finished + self._buffers.rows

    def add(
        self,
        batch: AnyBatch,
        topic: str = "",
        partition: int = -1,
        *,
        from_offset: int = 0,
        until_offset: int = _MAX_OFFSET,
        max_expanded: int = MAX_EXPANDED,
    ) -> int:
        """Append the batch's records with `from_offset <= offset < until_offset`.

        The caller skips control batches and aborted transactions, and checks the checksum. Returns
        the number of rows added.

        Raises:
            CorruptRecordError: the records do not match the header; none was added.
            UnsupportedCodecError: the library of the batch's codec is not installed.
        """
        index = self._topics.setdefault(topic, len(self._topics))
        if not isinstance(batch, RecordBatch):
            return self._add_legacy(
                batch, index, partition, from_offset, until_offset, max_expanded
            )
        records = batch.records(max_expanded)
        self._make_room_for(len(records))
        return self._buffers.add(
            records,
            batch.record_count,
            batch.base_offset,
            batch.base_timestamp,
            batch.max_timestamp if batch.timestamp_type else None,
            index,
            partition,
            from_offset,
            until_offset,
            position=batch.position + HEADER_SIZE,
            expanded=batch.codec != 0,
        )

    def finish(self) -> "pa.Table":
        """The table of all added records; the builder is empty afterwards."""
        import pyarrow as pa

        self._tables.append(self._wrap())
        tables, self._tables = self._tables, []
        self._buffers = _twin.ColumnBuffers(headers=self._headers)
        self._topics = {}
        # Chunks of one table share a dictionary that grew from one to the next.
        return pa.concat_tables(tables).unify_dictionaries() if len(tables) > 1 else tables[0]

    def _add_legacy(
        self,
        batch: AnyBatch,
        topic: int,
        partition: int,
        from_offset: int,
        until_offset: int,
        max_expanded: int,
    ) -> int:
        records = [
            record
            for record in batch.decode(from_offset=from_offset, max_expanded=max_expanded)
            if record.offset < until_offset
        ]
        for record in records:
            self._make_room_for(len(record.key or b"") + len(record.value or b""))
            self._buffers.add_record(
                record.offset,
                record.timestamp,
                record.timestamp_type,
                record.key,
                record.value,
                topic,
                partition,
            )
        return len(records)

    def _make_room_for(self, size: int) -> None:
        if self._buffers.rows and not self._buffers.has_room_for(size):
            self._tables.append(self._wrap())
            self._buffers = _twin.ColumnBuffers(headers=self._headers)

    def _wrap(self) -> "pa.Table":
        import pyarrow as pa

        rows = self._buffers.rows
        buffers = self._buffers.finish()

        def numbers(name: str, kind: Any) -> Any:
            return pa.Array.from_buffers(kind, rows, [None, pa.py_buffer(buffers[name])])

        columns = {
            "key": _binary(buffers, "key", rows, pa.binary()),
            "value": _binary(buffers, "value", rows, pa.binary()),
            "topic": pa.DictionaryArray.from_arrays(
                numbers("topic", pa.int32()), pa.array(self._topics, pa.string())
            ),
            "partition": numbers("partition", pa.int32()),
            "offset": numbers("offset", pa.int64()),
            "timestamp": numbers("timestamp", pa.timestamp("ms", "UTC")),
            "timestamp_type": numbers("timestamp_type", pa.int32()),
        }
        if self._headers:
            columns["headers"] = _headers(buffers, rows)
        return pa.table(columns)


def decode_columns(
    buffer: Buffer,
    topic: str = "",
    partition: int = -1,
    *,
    from_offset: int = 0,
    until_offset: int = _MAX_OFFSET,
    headers: bool = False,
    max_expanded: int = MAX_EXPANDED,
) -> "pa.Table":
    """The records of all whole batches in `buffer` as one table, control batches left out.

    Raises:
        CorruptRecordError: a batch is damaged, or expands beyond the limit.
        UnsupportedCodecError: the library of a batch's codec is not installed.
    """
    builder = ColumnsBuilder(headers=headers)
    for batch in iter_batches(buffer):
        batch.check_crc()
        if not batch.is_control:
            builder.add(
                batch,
                topic,
                partition,
                from_offset=from_offset,
                until_offset=until_offset,
                max_expanded=max_expanded,
            )
    return builder.finish()


def _binary(buffers: dict[str, Any], name: str, rows: int, kind: Any) -> Any:
    import pyarrow as pa

    validity, offsets, data = (
        buffers[f"{name}.{part}"] for part in ("validity", "offsets", "data")
    )
    return pa.Array.from_buffers(
        kind,
        rows,
        [
            None if validity is None else pa.py_buffer(validity),
            pa.py_buffer(offsets),
            pa.py_buffer(data),
        ],
    )


def _headers(buffers: dict[str, Any], rows: int) -> Any:
    import pyarrow as pa

    count = len(memoryview(buffers["headers.key.offsets"]).cast("B")) // 4 - 1
    pairs = pa.StructArray.from_arrays(
        [
            _binary(buffers, "headers.key", count, pa.string()),
            _binary(buffers, "headers.value", count, pa.binary()),
        ],
        ["key", "value"],
    )
    offsets = pa.Array.from_buffers(
        pa.int32(), rows + 1, [None, pa.py_buffer(buffers["headers.offsets"])]
    )
    return pa.ListArray.from_arrays(offsets, pairs)
