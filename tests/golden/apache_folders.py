"""Data folders that Apache Kafka wrote, and what it gave readers of them.

A test opens a copy; the broker opens it at the time of its newest record, or
retention, compaction and the expiry of offsets would change what is there.
"""

import base64
import json
import lzma
import tarfile
from collections.abc import Iterable, Iterator
from pathlib import Path
from typing import Any, NamedTuple

from pyclient.clock import ManualClock
from pyclient.types import TopicPartition
from tests.golden.loader import golden_path

KINDS = ("clean", "killed")


class Record(NamedTuple):
    """A record as a reader gets it."""

    offset: int
    timestamp: int
    key: bytes | None
    value: bytes | None
    headers: tuple[tuple[str, bytes | None], ...]


class ApacheFolder(NamedTuple):
    """An unpacked folder and its description."""

    path: Path
    read_uncommitted: dict[TopicPartition, list[Record]]
    read_committed: dict[TopicPartition, list[Record]]
    group_offsets: dict[str, dict[TopicPartition, tuple[int, str]]]

    def clock(self) -> ManualClock:
        """A clock that stands at the newest record."""
        timestamps = (record.timestamp for record in _all(self.read_uncommitted.values()))
        return ManualClock(max(timestamps))


def unpack(kind: str, folder: Path) -> ApacheFolder:
    """Unpack the folder of a broker that was stopped in this way."""
    with tarfile.open(golden_path(f"apache-log-dir-{kind}.tar.xz")) as archive:
        for member in archive:
            if member.isfile():
                _extract(archive, member, folder / member.name)
    with lzma.open(golden_path(f"apache-log-dir-{kind}.json.xz")) as file:
        said = json.load(file)
    (meta,) = folder.rglob("meta.properties")
    folder_of_kafka = ApacheFolder(
        meta.parent,
        _records(said["read_uncommitted"]),
        _records(said["read_committed"]),
        {
            group: {
                _partition(name): (offset, metadata)
                for name, (offset, metadata) in committed.items()
            }
            for group, committed in said["group_offsets"].items()
        },
    )
    assert list(_all(folder_of_kafka.read_uncommitted.values()))
    assert folder_of_kafka.group_offsets
    return folder_of_kafka


def _extract(archive: tarfile.TarFile, member: tarfile.TarInfo, path: Path) -> None:
    """Write a file as Kafka did, sparse after an index's entries: writing zeros is slow."""
    path.parent.mkdir(parents=True, exist_ok=True)
    content = archive.extractfile(member)
    assert content is not None
    with open(path, "wb") as file:
        file.write(content.read().rstrip(b"\0"))
        file.truncate(member.size)
    path.chmod(member.mode)


def _records(said: dict[str, list[list[Any]]]) -> dict[TopicPartition, list[Record]]:
    return {
        _partition(name): [
            Record(
                offset,
                timestamp,
                _bytes(key),
                _bytes(value),
                tuple((header, _bytes(content)) for header, content in headers),
            )
            for offset, timestamp, key, value, headers in records
        ]
        for name, records in said.items()
    }


def _partition(name: str) -> TopicPartition:
    topic, _, index = name.rpartition("-")
    return TopicPartition(topic, int(index))


def _bytes(text: str | None) -> bytes | None:
    return None if text is None else base64.b64decode(text)


def _all(lists: Iterable[list[Record]]) -> Iterator[Record]:
    return (record for records in lists for record in records)
