"""`.snapshot` files: the state of a partition's producers at an offset, in Kafka's format.

Written at every roll and at a clean shutdown, so that recovery need not read the log from its
start. A snapshot has each producer's last batch; the four before it are read from the log's tail
when a retry needs them. No state; any thread.
"""

import os
import struct
from collections.abc import Iterable
from typing import Final

from broker_stub.log.producers.producer_state import (
    NO_OFFSET,
    NO_SEQUENCE,
    ProducerEntry,
    RememberedBatch,
)
from pyclient import _twin
from pyclient.errors import KafkaError

_VERSION: Final = 1
_HEAD: Final = struct.Struct(">hIi")
_CHECKED_FROM: Final = 6
_ENTRY: Final = struct.Struct(">qhiqiqiq")


class CorruptSnapshotError(KafkaError):
    """A snapshot file is damaged, or of an unknown version."""


def encode_snapshot(entries: Iterable[ProducerEntry]) -> bytes:
    """The bytes of a snapshot."""
    body = [_encode_entry(entry) for entry in entries]
    content = struct.pack(">i", len(body)) + b"".join(body)
    return struct.pack(">hI", _VERSION, _twin.crc32c(content)) + content


def _encode_entry(entry: ProducerEntry) -> bytes:
    if entry.batches:
        last_sequence, last_offset, offset_delta, _ = entry.batches[-1]
    else:
        last_sequence, last_offset, offset_delta = NO_SEQUENCE, NO_OFFSET, 0
    return _ENTRY.pack(
        entry.producer_id,
        entry.epoch,
        last_sequence,
        last_offset,
        offset_delta,
        entry.last_timestamp,
        entry.coordinator_epoch,
        entry.current_txn_first_offset,
    )


def decode_snapshot(data: bytes) -> list[ProducerEntry]:
    """The producers of a snapshot.

    Raises:
        CorruptSnapshotError: the bytes are not a snapshot, or it is damaged.
    """
    if len(data) < _HEAD.size:
        raise CorruptSnapshotError(f"{len(data)} bytes are too few for a snapshot")
    version, checksum, count = _HEAD.unpack_from(data)
    if version != _VERSION:
        raise CorruptSnapshotError(f"the snapshot has version {version}, not {_VERSION}")
    if _twin.crc32c(data[_CHECKED_FROM:]) != checksum:
        raise CorruptSnapshotError("the snapshot fails its checksum")
    if len(data) != _HEAD.size + count * _ENTRY.size:
        raise CorruptSnapshotError(f"the snapshot has {len(data)} bytes but {count} entries")
    return [_decode_entry(*fields) for fields in _ENTRY.iter_unpack(data[_HEAD.size :])]


def _decode_entry(
    producer_id: int,
    epoch: int,
    last_sequence: int,
    last_offset: int,
    offset_delta: int,
    timestamp: int,
    coordinator_epoch: int,
    current_txn_first_offset: int,
) -> ProducerEntry:
    has_batch = last_offset >= 0 and last_sequence >= 0
    last = RememberedBatch(last_sequence, last_offset, offset_delta, timestamp)
    return ProducerEntry(
        producer_id,
        epoch,
        batches=[last] if has_batch else [],
        last_timestamp=timestamp,
        coordinator_epoch=coordinator_epoch,
        current_txn_first_offset=current_txn_first_offset,
        tail_is_known=not has_batch,
    )


def write_snapshot(path: str, entries: Iterable[ProducerEntry]) -> None:
    """Write a snapshot file. Not synced: a torn file fails its checksum, and recovery skips it."""
    data = encode_snapshot(entries)
    descriptor = os.open(path, os.O_WRONLY | os.O_CREAT | os.O_TRUNC | os.O_CLOEXEC, 0o644)
    with open(descriptor, "wb") as file:
        file.write(data)


def read_snapshot(path: str) -> list[ProducerEntry]:
    """The producers of a snapshot file.

    Raises:
        CorruptSnapshotError: the file is damaged.
    """
    with open(path, "rb") as file:
        data = file.read()
    try:
        return decode_snapshot(data)
    except CorruptSnapshotError as error:
        raise CorruptSnapshotError(f"{path}: {error}") from error
