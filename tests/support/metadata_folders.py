"""Data folders with a metadata log of a test's own making, as Apache Kafka could have left them."""

import json
from collections.abc import Sequence
from pathlib import Path

from broker_stub.log.batch.append_info import AppendOrigin
from broker_stub.log.internal_batches import build_batch
from broker_stub.metadata.frames import encode_frame
from broker_stub.metadata.log import CLUSTER_METADATA
from pyclient.protocol.messages.metadata_records import PartitionRecord, TopicRecord
from pyclient.protocol.messages.quorum_records import LeaderChangeMessage, LeaderChangeVoter
from pyclient.protocol.schema import Message
from pyclient.records.control import ControlRecordType
from tests.support.logs import NOW_MS, batch, open_manager

TOPIC_ID = b"t" * 16


def metadata_folder(folder: Path) -> Path:
    return folder / f"{CLUSTER_METADATA}-0"


def write_log(folder: Path, *batches: bytes | bytearray | memoryview, epoch: int = 1) -> None:
    """Append batches to the metadata log in a folder, which is made if need be."""
    manager = open_manager(folder)
    log = manager.create(CLUSTER_METADATA, 0, topic_id=bytes(15) + b"\1")
    for one in batches:
        log.append(one, leader_epoch=epoch, now_ms=NOW_MS, origin=AppendOrigin.COORDINATOR)
    manager.close()


def records(*messages: Message) -> memoryview:
    """A batch of metadata records."""
    return build_batch([(None, encode_frame(message)) for message in messages], NOW_MS)


def control(kind: ControlRecordType, value: bytes = b"\0\0\0") -> bytearray:
    key = b"\0\0" + kind.to_bytes(2, "big")
    return batch(value, key=key, control=True)


def leader_change(*voters: int) -> bytearray:
    """The control batch that says who votes."""
    message = LeaderChangeMessage(
        leader_id=voters[0], voters=[LeaderChangeVoter(voter_id=voter) for voter in voters]
    )
    return control(ControlRecordType.LEADER_CHANGE, message.encode_bytes(0))


def write_snapshot(
    folder: Path, end_offset: int, *messages: Message, epoch: int = 1, extra: bytes = b""
) -> Path:
    """A snapshot of these records; `extra` are control batches between header and footer."""
    path = metadata_folder(folder) / f"{end_offset:020d}-{epoch:010d}.checkpoint"
    path.write_bytes(
        control(ControlRecordType.SNAPSHOT_HEADER)
        + extra
        + bytes(records(*messages))
        + control(ControlRecordType.SNAPSHOT_FOOTER)
    )
    path.chmod(0o400)
    return path


def write_quorum_state(folder: Path, *voters: int) -> None:
    state = {"leaderId": 1, "currentVoters": [{"voterId": voter} for voter in voters]}
    (metadata_folder(folder) / "quorum-state").write_text(json.dumps(state))


def topic(
    name: str,
    *,
    topic_id: bytes = TOPIC_ID,
    replicas: Sequence[int] = (1,),
    leader: int = 1,
    isr: Sequence[int] = (1,),
    directory: bytes = bytes(16),
) -> list[Message]:
    """A topic of one partition."""
    return [
        TopicRecord(name=name, topic_id=topic_id),
        PartitionRecord(
            partition_id=0,
            topic_id=topic_id,
            replicas=list(replicas),
            isr=list(isr),
            leader=leader,
            leader_epoch=4,
            partition_epoch=4,
            directories=[directory] * len(replicas),
        ),
    ]
