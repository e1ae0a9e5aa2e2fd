"""Kafka's checkpoint files: a version, a count, then one line per entry.

`recovery-point-offset-checkpoint`, `log-start-offset-checkpoint`, `cleaner-offset-checkpoint` and
`replication-offset-checkpoint` (the high watermarks) in a log dir's root, and a partition's
`leader-epoch-checkpoint`. Written to a temporary file and renamed, so that a reader finds either
the old or the new content. No state; the owner of the file chooses the thread.
"""

import os
from collections.abc import Callable, Iterable, Mapping, Sequence
from typing import Final, TypeAlias

from broker_stub.log.files.open_files import fsync
from pyclient.errors import KafkaError
from pyclient.types import TopicPartition

RECOVERY_POINTS: Final = "recovery-point-offset-checkpoint"
LOG_START_OFFSETS: Final = "log-start-offset-checkpoint"
HIGH_WATERMARKS: Final = "replication-offset-checkpoint"
CLEANER_OFFSETS: Final = "cleaner-offset-checkpoint"
LEADER_EPOCHS: Final = "leader-epoch-checkpoint"

Sync: TypeAlias = Callable[[str], None]
"""Syncs the file at a path."""

_VERSION: Final = "0"


class CorruptCheckpointError(KafkaError):
    """A checkpoint file is damaged; the text names the file and the line."""


def write_checkpoint(path: str, entries: Sequence[str], *, sync: Sync | None) -> None:
    """Replace a checkpoint file; with `sync`, the new content survives a power failure."""
    write_atomically(path, "\n".join((_VERSION, str(len(entries)), *entries, "")), sync=sync)


def read_checkpoint(path: str, fields: int) -> list[list[str]]:
    """The entries of a checkpoint, split into fields; no entries if the file is missing or empty.

    Raises:
        CorruptCheckpointError: the version, the count of entries or of fields is wrong.
    """
    try:
        with open(path, encoding="utf-8") as file:
            lines = file.read().splitlines()
    except FileNotFoundError:
        return []
    except UnicodeDecodeError as error:
        raise CorruptCheckpointError(f"{path} is not text: {error}") from error
    if not lines:
        return []
    if lines[0] != _VERSION:
        raise CorruptCheckpointError(f"{path} has version {lines[0]!r}, not {_VERSION}")
    entries = [line.split() for line in lines[2:]]
    if len(lines) < 2 or lines[1] != str(len(entries)):
        raise CorruptCheckpointError(f"{path} has {len(entries)} entries, not {lines[1:2]}")
    for number, entry in enumerate(entries, start=3):
        if len(entry) != fields:
            raise CorruptCheckpointError(f"{path}, line {number}: not {fields} fields: {entry}")
    return entries


def write_offsets(path: str, offsets: Mapping[TopicPartition, int], sync: Sync = fsync) -> None:
    """Replace an offset checkpoint; background thread, since it is synced."""
    entries = [f"{topic} {partition} {offset}" for (topic, partition), offset in offsets.items()]
    write_checkpoint(path, entries, sync=sync)


def read_offsets(path: str) -> dict[TopicPartition, int]:
    """The offsets of an offset checkpoint.

    Raises:
        CorruptCheckpointError: the file is damaged.
    """
    return {
        TopicPartition(topic, partition): offset
        for topic, (partition, offset) in (
            (entry[0], numbers(path, entry[1:])) for entry in read_checkpoint(path, fields=3)
        )
    }


def numbers(path: str, fields: Iterable[str]) -> list[int]:
    """The fields of an entry as integers.

    Raises:
        CorruptCheckpointError: one is not an integer.
    """
    try:
        return [int(field) for field in fields]
    except ValueError as error:
        raise CorruptCheckpointError(f"{path}: {error}") from error


def write_atomically(path: str, text: str, *, sync: Sync | None) -> None:
    """Replace the content of a file; readers see either the old or the new."""
    temporary = path + ".tmp"
    with open(temporary, "w", encoding="utf-8") as file:
        file.write(text)
    if sync is not None:
        sync(temporary)
    os.replace(temporary, path)
