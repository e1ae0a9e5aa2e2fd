"""Apache Kafka's snapshots of the metadata log: `<end offset>-<epoch>.checkpoint`.

A snapshot has the state before its end offset, as record batches between a header and a footer
batch. Only read here. Used while the node opens, by the thread that opens it.
"""

import os
import re
from typing import Final, NamedTuple

from pyclient.errors import CorruptRecordError
from pyclient.records.batch import RecordBatch, iter_batches

_NAME: Final = r"([0-9]{20})-([0-9]{10})\.checkpoint"


class SnapshotFile(NamedTuple):
    """A snapshot file, and the offset and epoch in its name."""

    end_offset: int
    epoch: int
    path: str


def list_snapshots(folder: str) -> list[SnapshotFile]:
    """The snapshots in a directory, newest first."""
    try:
        names = os.listdir(folder)
    except FileNotFoundError:
        return []
    found = [(name, match) for name in names if (match := re.fullmatch(_NAME, name)) is not None]
    return sorted(
        (
            SnapshotFile(int(match[1]), int(match[2]), os.path.join(folder, name))
            for name, match in found
        ),
        reverse=True,
    )


def read_snapshot(snapshot: SnapshotFile) -> list[RecordBatch]:
    """The batches of a snapshot.

    Raises:
        CorruptRecordError: it is cut off or damaged.
    """
    from pyclient.records.control import ControlRecordType, control_record_type

    def is_kind(batch: RecordBatch, kind: ControlRecordType) -> bool:
        return batch.is_control and control_record_type(batch) is kind

    with open(snapshot.path, "rb") as file:
        data = file.read()
    batches: list[RecordBatch] = []
    for batch in iter_batches(data):
        if not isinstance(batch, RecordBatch):
            raise CorruptRecordError(f"{snapshot.path} has a batch of format {batch.magic}")
        batch.check_crc()
        batches.append(batch)
    if (
        not batches
        or sum(batch.size_in_bytes for batch in batches) != len(data)
        or not is_kind(batches[0], ControlRecordType.SNAPSHOT_HEADER)
        or not is_kind(batches[-1], ControlRecordType.SNAPSHOT_FOOTER)
    ):
        raise CorruptRecordError(f"{snapshot.path} is cut off")
    return batches
