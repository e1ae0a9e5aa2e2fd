"""Our codecs against the bytes that Apache Kafka's own classes wrote, message by message."""

import base64
from itertools import groupby
from typing import Any

import pytest

from pyclient.protocol.primitives import BYTES, FLOAT64, RECORDS, UUID, ArrayType, StructType
from pyclient.protocol.schema import Struct
from tests.golden.loader import golden_lines
from tests.support.messages import declared_messages

# What nothing here uses, and so is not declared.
UNUSED_APIS = [
    # the controllers' quorum: keys 52-54, 58, 59, 70, 73, 80-82
    *("Vote", "BeginQuorumEpoch", "EndQuorumEpoch", "Envelope", "FetchSnapshot"),
    *("ControllerRegistration", "AssignReplicasToDirs"),
    *("AddRaftVoter", "RemoveRaftVoter", "UpdateRaftVoter"),
    # share groups: keys 76-79, 83-87, 90-92
    *("ShareGroupHeartbeat", "ShareGroupDescribe", "ShareFetch", "ShareAcknowledge"),
    *("InitializeShareGroupState", "ReadShareGroupState", "WriteShareGroupState"),
    *("DeleteShareGroupState", "ReadShareGroupStateSummary"),
    *("DescribeShareGroupOffsets", "AlterShareGroupOffsets", "DeleteShareGroupOffsets"),
    # streams groups: keys 88, 89
    *("StreamsGroupHeartbeat", "StreamsGroupDescribe"),
]
UNUSED_COORDINATOR_RECORDS = [
    *("ShareGroupMetadata", "ShareGroupMemberMetadata", "ShareGroupStatePartitionMetadata"),
    *("ShareGroupTargetAssignmentMetadata", "ShareGroupTargetAssignmentMember"),
    "ShareGroupCurrentMemberAssignment",
    *("StreamsGroupMetadata", "StreamsGroupMemberMetadata", "StreamsGroupTopology"),
    *("StreamsGroupTargetAssignmentMetadata", "StreamsGroupTargetAssignmentMember"),
    "StreamsGroupCurrentMemberAssignment",
]
UNUSED = {
    *(f"{api}{kind}" for api in UNUSED_APIS for kind in ("Request", "Response")),
    *(f"{record}{kind}" for record in UNUSED_COORDINATOR_RECORDS for kind in ("Key", "Value")),
    # raft's own control records
    *("KRaftVersionRecord", "SnapshotHeaderRecord", "SnapshotFooterRecord"),
    # what an Envelope carries, and what only a migration from ZooKeeper wrote
    *("DefaultPrincipalData", "ZkMigrationStateRecord"),
}

DECLARED = declared_messages()
LINES = {
    message: list(lines)
    for message, lines in groupby(
        sorted(golden_lines("messages.jsonl.gz"), key=lambda line: str(line["message"])),
        key=lambda line: str(line["message"]),
    )
}
USED = sorted(LINES.keys() - UNUSED)


def test_no_message_is_both_declared_and_listed_as_unused() -> None:
    assert DECLARED.keys() & UNUSED == set()


@pytest.mark.parametrize("name", USED)
def test_value_encodes_to_kafkas_bytes(name: str) -> None:
    for line in LINES[name]:
        message = from_json(DECLARED[name], line["value"])
        assert message.encode_bytes(line["version"]).hex() == line["hex"], line


@pytest.mark.parametrize("name", USED)
def test_kafkas_bytes_decode_to_the_value(name: str) -> None:
    for line in LINES[name]:
        version = line["version"]
        message = DECLARED[name].decode(bytes.fromhex(line["hex"]), version)
        expected = with_tagged_defaults(type(message), line["value"], version)
        assert to_json(message, version) == expected, line


def camel(name: str) -> str:
    first, *rest = name.split("_")
    return first + "".join(word.capitalize() for word in rest)


def from_json(cls: type[Struct], value: dict[str, Any]) -> Any:
    """The struct that a golden value describes; a field that it lacks has its default."""
    types = {camel(one.name): one for one in cls.fields}
    assert value.keys() <= types.keys(), f"{cls.__name__} lacks {value.keys() - types.keys()}"
    return cls(
        **{types[key].name: _from_json(types[key].type, held) for key, held in value.items()}
    )


def _from_json(wire_type: Any, value: Any) -> Any:
    if value is None:
        return None
    if isinstance(wire_type, ArrayType):
        return [_from_json(wire_type.element, item) for item in value]
    if isinstance(wire_type, StructType):
        return from_json(wire_type.struct, value)
    if wire_type in (BYTES, RECORDS):
        return base64.b64decode(value)
    if wire_type is UUID:
        return base64.urlsafe_b64decode(value + "==")
    return float(value) if wire_type is FLOAT64 else value


def to_json(struct: Struct, version: int) -> dict[str, Any]:
    """All fields that the version carries, tagged ones too, as golden values write them."""
    return {
        camel(one.name): _to_json(one.type, getattr(struct, one.name), version)
        for one in type(struct).fields
        if version in one.versions
    }


def _to_json(wire_type: Any, value: Any, version: int) -> Any:
    if value is None:
        return None
    if isinstance(wire_type, ArrayType):
        return [_to_json(wire_type.element, item, version) for item in value]
    if isinstance(wire_type, StructType):
        return to_json(value, version)
    if wire_type in (BYTES, RECORDS):
        return base64.b64encode(value).decode()
    if wire_type is UUID:
        return base64.urlsafe_b64encode(value).decode().rstrip("=")
    return value


def with_tagged_defaults(cls: type[Struct], value: dict[str, Any], version: int) -> dict[str, Any]:
    """The golden value with the tagged fields that it leaves out, at all depths."""
    whole: dict[str, Any] = {}
    for one in cls.fields:
        name = camel(one.name)
        if version not in one.versions:
            continue
        if name in value:
            whole[name] = _with_tagged_defaults(one.type, value[name], version)
        else:
            assert version in one.tagged, f"the golden value lacks {name}, which is not tagged"
            whole[name] = _to_json(one.type, one.fresh_default(), version)
    return whole


def _with_tagged_defaults(wire_type: Any, value: Any, version: int) -> Any:
    if isinstance(wire_type, ArrayType) and value is not None:
        return [_with_tagged_defaults(wire_type.element, item, version) for item in value]
    if isinstance(wire_type, StructType) and value is not None:
        return with_tagged_defaults(wire_type.struct, value, version)
    return value
