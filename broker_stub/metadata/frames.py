"""Metadata records as values of a log: Kafka's own frames.

A frame is its version, the record's type and version as unsigned varints, then the record's
fields. Pure functions.
"""

from typing import Final

from broker_stub import diagnostics
from pyclient.errors import ProtocolError
from pyclient.protocol.messages import metadata_records
from pyclient.protocol.primitives import Buffer
from pyclient.protocol.schema import Message
from pyclient.varint import decode_uvarint, encode_uvarint

_FRAME_VERSION: Final = 1


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
            diagnostics.warn("skipping metadata records of unknown type %d", record_type)
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
