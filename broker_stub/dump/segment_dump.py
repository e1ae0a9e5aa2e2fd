"""`.log` and `.checkpoint` files: batches, and on request the records in them."""

import json
import re
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any, Final, NamedTuple

from broker_stub.dump.lines import Faults, Line, spelled
from pyclient.errors import KafkaError, ProtocolError
from pyclient.protocol.internal_topics import DECODERS, Decoded
from pyclient.protocol.message_json import message_json
from pyclient.protocol.messages.quorum_records import LeaderChangeMessage, VotersRecord
from pyclient.protocol.schema import Message
from pyclient.records.batch import RecordBatch, iter_batches
from pyclient.records.control import (
    ControlRecordType,
    control_record_type,
    end_transaction_marker,
)
from pyclient.records.record import ConsumerRecord

BYTES_MAX: Final = 2**31 - 1
_CODECS: Final = ("none", "gzip", "snappy", "lz4", "zstd")
_TIMES: Final = ("CreateTime", "LogAppendTime")
_CHECKPOINT: Final = re.compile(r"(\d+)-(\d+)\.checkpoint")
# Their first field is their version; nothing else has one in front.
_QUORUM: Final[dict[ControlRecordType, tuple[str, type[Message]]]] = {
    ControlRecordType.LEADER_CHANGE: ("LeaderChange:", LeaderChangeMessage),
    ControlRecordType.KRAFT_VOTERS: ("KRaftVoters", VotersRecord),
}
# Name, second field behind the version, and its bytes.
_QUORUM_FIELDS: Final = {
    ControlRecordType.SNAPSHOT_HEADER: ("SnapshotHeader", "lastContainedLogTimestamp", 8),
    ControlRecordType.SNAPSHOT_FOOTER: ("SnapshotFooter", "", 0),
    ControlRecordType.KRAFT_VERSION: ("KRaftVersion", "kRaftVersion", 2),
}


class SegmentOptions(NamedTuple):
    """How much of a segment is shown."""

    deep: bool = False
    print_data: bool = False
    decode: str | None = None
    skip_metadata: bool = False
    bytes_max: int = BYTES_MAX


def dump_segment(path: Path, options: SegmentOptions, faults: Faults) -> Iterator[Line]:
    """The lines of a segment; damage stops it, and is a fault."""
    yield _first_line(path)
    data = memoryview(path.read_bytes())
    whole = len(data)
    data = data[: options.bytes_max]
    end = 0
    last_offset = -1
    try:
        for batch in iter_batches(data):
            if not isinstance(batch, RecordBatch):
                faults.add(f"{path}: a batch at byte {end} has a format from before Kafka 0.11")
                return
            line = _batch_line(batch)
            if not line.facts["isvalid"]:
                faults.add(f"{path}: the batch at byte {end} fails its checksum")
            yield line
            if options.deep:
                for record in batch.decode():
                    if last_offset >= 0 and record.offset != last_offset + 1:
                        faults.add(
                            f"Non-consecutive offsets in {path.absolute()}",
                            f"  {last_offset} is followed by {record.offset}",
                        )
                    last_offset = record.offset
                    yield _record_line(batch, record, options)
            end = batch.position + batch.size_in_bytes
    except KafkaError as error:
        faults.add(f"{path}: the batch at byte {end} cannot be read: {error}")
    if end < whole and len(data) == whole:
        text = f"Found {whole - end} invalid bytes at the end of {path.name}"
        faults.add(f"{path}: {whole - end} bytes behind the last batch are not a batch")
        yield Line(text, {"invalidBytes": whole - end})


def _first_line(path: Path) -> Line:
    if path.suffix == ".log":
        offset = int(path.name.partition(".")[0])
        return Line(f"Log starting offset: {offset}", {"startOffset": offset})
    found = _CHECKPOINT.fullmatch(path.name)
    if found is None:
        return Line("KRaft bootstrap snapshot", {"snapshot": "bootstrap"})
    offset, epoch = map(int, found.groups())
    text = f"Snapshot end offset: {offset}, epoch: {epoch}"
    return Line(text, {"endOffset": offset, "epoch": epoch})


def _batch_line(batch: RecordBatch) -> Line:
    horizon = batch.base_timestamp if batch.has_delete_horizon else None
    facts = {
        "baseOffset": batch.base_offset,
        "lastOffset": batch.last_offset,
        "count": batch.record_count,
        "baseSequence": batch.base_sequence,
        "lastSequence": batch.last_sequence,
        "producerId": batch.producer_id,
        "producerEpoch": batch.producer_epoch,
        "partitionLeaderEpoch": batch.leader_epoch,
        "isTransactional": batch.is_transactional,
        "isControl": batch.is_control,
        "deleteHorizonMs": horizon,
        "position": batch.position,
        _TIMES[batch.timestamp_type]: batch.max_timestamp,
        "size": batch.size_in_bytes,
        "magic": batch.magic,
        "compresscodec": _CODECS[batch.codec] if batch.codec < len(_CODECS) else batch.codec,
        "crc": batch.crc,
        "isvalid": batch.crc_is_valid(),
    }
    shown = "OptionalLong.empty" if horizon is None else f"OptionalLong[{horizon}]"
    return Line(spelled({**facts, "deleteHorizonMs": shown}), facts)


def _record_line(batch: RecordBatch, record: ConsumerRecord, options: SegmentOptions) -> Line:
    facts: dict[str, Any] = {}
    texts = ["|"]
    if not options.skip_metadata:
        sequence = batch.base_sequence
        if sequence >= 0:
            sequence = (sequence + record.offset - batch.base_offset) & 0x7FFF_FFFF
        names = [name for name, _ in record.headers]
        facts = {
            "offset": record.offset,
            _TIMES[batch.timestamp_type]: record.timestamp,
            "keySize": -1 if record.key is None else len(record.key),
            "valueSize": -1 if record.value is None else len(record.value),
            "sequence": sequence,
            "headerKeys": names,
        }
        texts.append(spelled({**facts, "headerKeys": f"[{','.join(names)}]"}))
        if batch.is_control:
            text, control = _control(batch, record)
            facts |= control
            texts.append(text)
    if options.print_data and not batch.is_control:
        for name, value in _data(record, options.decode).items():
            facts[name] = value
            shown = value if isinstance(value, str) else compact_json(value)
            texts.append(f"{name}: {shown}")
    return Line(" ".join(texts), facts)


def _data(record: ConsumerRecord, decode: str | None) -> dict[str, Any]:
    """The key and the payload, so far as there are any."""
    if decode is None:
        return {
            name: data.decode(errors="replace")
            for name, data in (("key", record.key), ("payload", record.value))
            if data is not None
        }
    decoder: Callable[[bytes | None, bytes | None], Decoded] = DECODERS[decode]
    try:
        key, value = decoder(record.key, record.value)
    except ProtocolError as error:
        name = "payload" if decode == "metadata" else "key"
        return {name: f"Error at offset {record.offset}, skipping. {error}"}
    return {**({} if key is None else {"key": key}), "payload": value or "<DELETE>"}


def compact_json(value: Any) -> str:
    """JSON as Java prints it: without spaces."""
    return json.dumps(value, separators=(",", ":"), ensure_ascii=False)


def _control(batch: RecordBatch, record: ConsumerRecord) -> tuple[str, dict[str, Any]]:
    kind = control_record_type(batch)
    if kind in (ControlRecordType.ABORT, ControlRecordType.COMMIT):
        marker = end_transaction_marker(batch)
        facts = {"endTxnMarker": kind.name, "coordinatorEpoch": marker.coordinator_epoch}
        return spelled(facts), facts
    value = record.value or b""
    if kind in _QUORUM:
        name, message = _QUORUM[kind]
        version = int.from_bytes(value[:2], "big", signed=True)
        content = message_json(message.decode(value, version), version)
    elif kind in _QUORUM_FIELDS:
        name, field, width = _QUORUM_FIELDS[kind]
        content = {"version": int.from_bytes(value[:2], "big", signed=True)}
        if field:
            content[field] = int.from_bytes(value[2 : 2 + width], "big", signed=True)
    else:
        number = int.from_bytes((record.key or b"")[2:4], "big", signed=True)
        return f"controlType: {kind.name}({number})", {"controlType": number}
    return f"{name} {compact_json(content)}", {name.rstrip(":"): content}
