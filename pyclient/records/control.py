"""Control records, which brokers write into a log for each other and for consumers.

A control batch holds one record. Its key has the type; the value of a transaction marker has the
coordinator's epoch. Consumers do not return control records, but learn from them which transactions
were aborted.
"""

import struct
from enum import IntEnum
from typing import Final, NamedTuple

from pyclient import _twin
from pyclient.errors import CorruptRecordError
from pyclient.records.batch import RecordBatch

_KEY: Final = struct.Struct(">hh")  # version, type
_END_TRANSACTION: Final = struct.Struct(">hi")  # version, coordinator epoch


class ControlRecordType(IntEnum):
    """The type of a control record. The last five are written by controllers."""

    UNKNOWN = -1
    ABORT = 0
    COMMIT = 1
    LEADER_CHANGE = 2
    SNAPSHOT_HEADER = 3
    SNAPSHOT_FOOTER = 4
    KRAFT_VERSION = 5
    KRAFT_VOTERS = 6


class EndTransactionMarker(NamedTuple):
    """The end of a producer's transaction in one partition."""

    committed: bool
    coordinator_epoch: int


def control_record_type(batch: RecordBatch) -> ControlRecordType:
    """The type of a control batch; UNKNOWN if it is newer than this library.

    Raises:
        CorruptRecordError: the batch has no control record.
    """
    return _read(batch)[0]


def end_transaction_marker(batch: RecordBatch) -> EndTransactionMarker:
    """The transaction marker in an ABORT or COMMIT control batch.

    Raises:
        CorruptRecordError: the batch is not one of these, or its value is cut off.
    """
    kind, value = _read(batch)
    if kind not in (ControlRecordType.ABORT, ControlRecordType.COMMIT):
        raise _corrupt(batch, f"its control record is {kind.name}, not the end of a transaction")
    if value is None or len(value) < _END_TRANSACTION.size:
        raise _corrupt(batch, "its control record's value is cut off")
    _version, coordinator_epoch = _END_TRANSACTION.unpack_from(value)
    return EndTransactionMarker(kind is ControlRecordType.COMMIT, coordinator_epoch)


def build_end_transaction_marker(
    marker: EndTransactionMarker,
    *,
    producer_id: int,
    producer_epoch: int,
    timestamp_ms: int,
    base_offset: int = 0,
    leader_epoch: int = -1,
) -> bytes:
    """The control batch that ends a transaction."""
    kind = ControlRecordType.COMMIT if marker.committed else ControlRecordType.ABORT
    key = _KEY.pack(0, kind)
    value = _END_TRANSACTION.pack(0, marker.coordinator_epoch)
    builder = _twin.BatchBuilder(
        bytearray(_twin.batch_size_of(key, value)),
        transactional=True,
        control=True,
        producer_id=producer_id,
        producer_epoch=producer_epoch,
        base_offset=base_offset,
        leader_epoch=leader_epoch,
    )
    builder.try_append(timestamp_ms, key, value)
    return b"".join(builder.close())


def _read(batch: RecordBatch) -> tuple[ControlRecordType, bytes | None]:
    records = batch.decode()
    if not batch.is_control or len(records) != 1:
        raise _corrupt(batch, "it is not a control batch of one record")
    key = records[0].key
    if key is None or len(key) < _KEY.size:
        raise _corrupt(batch, "its control record's key is cut off")
    version, number = _KEY.unpack_from(key)
    if version < 0:
        raise _corrupt(batch, f"its control record's key has version {version}")
    try:
        kind = ControlRecordType(number)
    except ValueError:
        kind = ControlRecordType.UNKNOWN
    return kind, records[0].value


def _corrupt(batch: RecordBatch, reason: str) -> CorruptRecordError:
    return CorruptRecordError(
        f"the batch at offset {batch.base_offset} is corrupt: {reason}",
        base_offset=batch.base_offset,
        position=batch.position,
    )
