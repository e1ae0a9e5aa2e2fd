"""The offset checkpoints in the roots of a node's data directories.

Recovery points, log start offsets, high watermarks and cleaner offsets. Read when the directories
are opened; written at an interval, after deletions and at a clean shutdown. A damaged one counts
as empty: recovery then checks more, and nothing is lost. Background thread, or the thread that
opens or closes the node.
"""

import os
from collections.abc import Mapping, Sequence
from typing import NamedTuple

from broker_stub import diagnostics
from broker_stub.log.files.checkpoint_file import (
    CLEANER_OFFSETS,
    HIGH_WATERMARKS,
    LOG_START_OFFSETS,
    RECOVERY_POINTS,
    CorruptCheckpointError,
    Sync,
    read_offsets,
    write_offsets,
)
from broker_stub.log.partition_log import PartitionLog
from pyclient.types import TopicPartition

Offsets = dict[TopicPartition, int]


class KnownOffsets(NamedTuple):
    """The checkpointed offsets of one data directory, by partition."""

    recovery_points: Offsets
    start_offsets: Offsets
    high_watermarks: Offsets
    cleaned_to: Offsets


def read_known_offsets(folder: str) -> KnownOffsets:
    """Read all checkpoints of a data directory."""
    return KnownOffsets(
        _read(folder, RECOVERY_POINTS),
        _read(folder, LOG_START_OFFSETS),
        _read(folder, HIGH_WATERMARKS),
        _read(folder, CLEANER_OFFSETS),
    )


def _read(folder: str, name: str) -> Offsets:
    try:
        return read_offsets(os.path.join(folder, name))
    except CorruptCheckpointError as error:
        diagnostics.warn("%s; the checkpoint counts as empty", error)
        return {}


class OffsetCheckpoints:
    """Writes the checkpoints; a file only if its content has changed."""

    def __init__(self, sync: Sync) -> None:
        self._sync = sync
        self._written: dict[str, Offsets] = {}

    def write(self, folders: Sequence[str], logs: Mapping[TopicPartition, PartitionLog]) -> None:
        """Write the offsets of all logs, each in its own data directory.

        Raises:
            OSError: the disk refused; the old file is unchanged.
        """
        for folder in folders:
            kept = {key: log for key, log in logs.items() if os.path.dirname(log.folder) == folder}
            self._replace(
                os.path.join(folder, RECOVERY_POINTS),
                {key: log.recovery_point for key, log in kept.items()},
            )
            self._replace(
                os.path.join(folder, HIGH_WATERMARKS),
                {key: log.high_watermark for key, log in kept.items()},
            )
            self._replace(
                os.path.join(folder, LOG_START_OFFSETS),
                {
                    key: log.log_start_offset
                    for key, log in kept.items()
                    if log.log_start_offset > _first_offset_on_disk(log)
                },
            )
            self._replace(
                os.path.join(folder, CLEANER_OFFSETS),
                {key: log.cleaned_to for key, log in kept.items() if log.cleaned_to},
            )

    def _replace(self, path: str, offsets: Offsets) -> None:
        if self._written.get(path) != offsets:
            write_offsets(path, offsets, self._sync)
            self._written[path] = offsets


def _first_offset_on_disk(log: PartitionLog) -> int:
    segments = log.segments
    return segments[0].base_offset if segments else 0
