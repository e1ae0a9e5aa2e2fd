"""Records of Kafka's internal topics as JSON, as Kafka's own tools print them. Pure functions."""

import base64
import struct
from collections.abc import Callable
from functools import cache
from types import ModuleType
from typing import Any, Final, NamedTuple

from pyclient.errors import ProtocolError
from pyclient.protocol.message_json import constant_case, message_json
from pyclient.protocol.messages import (
    consumer_group_records,
    group_records,
    metadata_records,
    transaction_records,
)
from pyclient.protocol.messages.consumer_protocol import (
    ConsumerProtocolAssignment,
    ConsumerProtocolSubscription,
)
from pyclient.protocol.schema import Message
from pyclient.varint import decode_uvarint

_INT16: Final = struct.Struct(">h")
_FRAME_VERSION: Final = 1


class Decoded(NamedTuple):
    """A record taken apart; a value of None deletes what the key names."""

    key: dict[str, Any] | None
    value: dict[str, Any] | None


def decode_offsets(key: bytes | None, value: bytes | None) -> Decoded:
    """A record of `__consumer_offsets`.

    Raises:
        ProtocolError: the type is unknown, or the bytes are not such a record.
    """
    decoded = _coordinator_record(key, value, group_records, consumer_group_records)
    if decoded.value is not None and decoded.value["data"].get("protocolType") == "consumer":
        for member in decoded.value["data"]["members"]:
            _expand(member, "subscription", ConsumerProtocolSubscription)
            _expand(member, "assignment", ConsumerProtocolAssignment)
    return decoded


def decode_transactions(key: bytes | None, value: bytes | None) -> Decoded:
    """A record of `__transaction_state`.

    Raises:
        ProtocolError: the type is unknown, or the bytes are not such a record.
    """
    return _coordinator_record(key, value, transaction_records)


def decode_metadata(_key: bytes | None, value: bytes | None) -> Decoded:
    """A record of `__cluster_metadata`, which has no key.

    Raises:
        ProtocolError: the type is unknown, or the bytes are not such a record.
    """
    if value is None:
        raise ProtocolError("a metadata record without a value")
    try:
        frame_version, position = decode_uvarint(value, 0)
        number, position = decode_uvarint(value, position)
        version, position = decode_uvarint(value, position)
    except (IndexError, ValueError) as error:
        raise ProtocolError("a metadata record that is cut off") from error
    if frame_version != _FRAME_VERSION:
        raise ProtocolError(f"a metadata record in frame version {frame_version}, not 1")
    declared = _declared("", metadata_records).get(number)
    if declared is None:
        raise ProtocolError(f"unknown metadata record type {number}")
    data = message_json(declared.decode(value[position:], version), version)
    return Decoded(
        None, {"type": constant_case(declared.__name__), "version": version, "data": data}
    )


DECODERS: Final[dict[str, Callable[[bytes | None, bytes | None], Decoded]]] = {
    "offsets": decode_offsets,
    "transactions": decode_transactions,
    "metadata": decode_metadata,
}


def _coordinator_record(key: bytes | None, value: bytes | None, *modules: ModuleType) -> Decoded:
    if key is None:
        raise ProtocolError("a record of an internal topic without a key")
    number = _leading_int16(key)
    key_class = _declared("Key", *modules).get(number)
    if key_class is None:
        raise ProtocolError(f"unknown record type {number}")
    named = {"type": str(number), "data": message_json(key_class.decode(key[2:], 0), 0)}
    if value is None:
        return Decoded(named, None)
    version = _leading_int16(value)
    message = _declared("Value", *modules)[number].decode(value[2:], version)
    return Decoded(named, {"version": str(version), "data": message_json(message, version)})


def _leading_int16(data: bytes) -> int:
    if len(data) < _INT16.size:
        raise ProtocolError(f"{len(data)} bytes are too few for a record of an internal topic")
    return int(_INT16.unpack_from(data)[0])


@cache
def _declared(suffix: str, *modules: ModuleType) -> dict[int, type[Message]]:
    declared = {}
    for module in modules:
        for name, item in vars(module).items():
            if isinstance(item, type) and issubclass(item, Message) and name.endswith(suffix):
                number = getattr(item, "record_type", None)  # Message itself has none
                if number is not None:
                    declared[number] = item
    return declared


def _expand(member: dict[str, Any], name: str, message: type[Message]) -> None:
    """Replace bytes that the group's members have written, where they can be read."""
    data = base64.b64decode(member[name])
    try:
        version = _leading_int16(data)
        decoded, _ = message.decode_from(data, 2, version)
        member[name] = message_json(decoded, version)
    except ProtocolError:
        pass  # a foreign protocol: the bytes stay
