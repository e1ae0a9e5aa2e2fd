"""`__cluster_metadata-0`: the changes to the cluster, as records in Kafka's own frames.

A record's value is a frame: frame version, record type and version as unsigned varints, then the
fields. Only the controller appends (serving thread); `sync` may run on any thread.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from typing import Final, NamedTuple

from broker_stub import diagnostics
from broker_stub.log.log_config import LogConfig
from broker_stub.log.log_manager import LogManager
from broker_stub.log.partition_log import AppendOrigin
from broker_stub.replica.batches import build_batch, read_log
from pyclient.clock import Clock
from pyclient.errors import CorruptRecordError, ProtocolError
from pyclient.protocol.messages import metadata_records
from pyclient.protocol.messages.metadata_records import (
    AbortTransactionRecord,
    BeginTransactionRecord,
    EndTransactionRecord,
)
from pyclient.protocol.primitives import Buffer, decode_uvarint, encode_uvarint
from pyclient.protocol.schema import Message

CLUSTER_METADATA: Final = "__cluster_metadata"
_TOPIC_ID: Final = bytes(15) + b"\x01"  # reserved by Kafka for this topic
_FRAME_VERSION: Final = 1
# One node is a quorum of itself and wins one election, the first.
_LEADER_EPOCH: Final = 1
_CONFIG: Final = LogConfig.from_values(
    {
        "retention.ms": -1,  # the image is all of the log
        "retention.bytes": -1,
        "max.message.bytes": 64 << 20,  # one change is one batch, ten thousand partitions too
        "cleanup.policy": ["delete"],
    }
)


class LoggedRecord(NamedTuple):
    """A change, and where in the log it stands."""

    offset: int
    record: Message


class MetadataLog:
    """The log of the cluster's changes."""

    def __init__(self, manager: LogManager, clock: Clock) -> None:
        self._clock = clock
        self._log = manager.create(CLUSTER_METADATA, 0, topic_id=_TOPIC_ID, config=_CONFIG)
        self._log.update_config(_CONFIG)

    def append(self, records: Sequence[Message]) -> list[LoggedRecord]:
        """Write one change, as a batch: after a crash all of its records are there, or none.

        Raises:
            KafkaStorageError: it could not be written, and is not.
        """
        now_ms = self._clock.now_ms()
        batch = build_batch([(None, encode_frame(record)) for record in records], now_ms)
        info = self._log.append(
            batch, leader_epoch=_LEADER_EPOCH, now_ms=now_ms, origin=AppendOrigin.COORDINATOR
        )
        self._log.advance_high_watermark(self._log.log_end_offset)
        return [
            LoggedRecord(info.first_offset + index, record) for index, record in enumerate(records)
        ]

    def sync(self) -> None:
        """Make what was appended survive a power cut."""
        self._log.flush()

    def replay(self) -> Iterator[LoggedRecord]:
        """Every change that counts, from the first on.

        A transaction that was not ended is dropped, as are the raft quorum's control batches.
        """
        transaction: list[LoggedRecord] | None = None
        for logged in self._records():
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

    def _records(self) -> Iterator[LoggedRecord]:
        unknown: set[int] = set()
        for entry in read_log(self._log):
            if entry.value is None:
                raise CorruptRecordError(f"a metadata record without a value at {entry.offset}")
            record = decode_frame(entry.value, unknown)
            if record is not None:
                yield LoggedRecord(entry.offset, record)


def encode_frame(record: Message) -> bytes:
    """A record's value: the frame header and the record in its highest version."""
    assert record.record_type is not None
    version = record.versions.highest
    header = b"".join(map(encode_uvarint, (_FRAME_VERSION, record.record_type, version)))
    return header + record.encode_bytes(version)


def decode_frame(value: Buffer, unknown: set[int]) -> Message | None:
    """The record in a frame; None, and a line in the log the first time, for an unknown type.

    Raises:
        ProtocolError: the frame's version is unknown, or the bytes are not such a record.
    """
    frame_version, position = decode_uvarint(value, 0)
    if frame_version != _FRAME_VERSION:
        raise ProtocolError(f"a metadata record in frame version {frame_version}, not 1")
    record_type, position = decode_uvarint(value, position)
    version, position = decode_uvarint(value, position)
    declared = _RECORD_TYPES.get(record_type)
    if declared is None:
        if record_type not in unknown:
            unknown.add(record_type)
            diagnostics.warn("metadata records of type %d are unknown: skipped", record_type)
        return None
    return declared.decode(memoryview(value)[position:], version)


def _record_types() -> dict[int, type[Message]]:
    declared = (
        item
        for item in vars(metadata_records).values()
        if isinstance(item, type) and issubclass(item, Message) and item is not Message
    )
    return {item.record_type: item for item in declared if item.record_type is not None}


_RECORD_TYPES: Final = _record_types()
