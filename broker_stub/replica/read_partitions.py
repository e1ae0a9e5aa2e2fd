"""Reads the partitions of a Fetch request from their logs, within its limits.

The one owner of reading for clients. It neither waits (`delayed_fetch.py`) nor knows the wire
(`handlers/fetch.py`, `data_path/fetch.py`). Serving thread only.
"""

from __future__ import annotations

from collections.abc import Iterable
from typing import TYPE_CHECKING, Final, NamedTuple

from broker_stub.replica.fetch_sessions import FetchKey, FetchTarget
from pyclient.error_codes import (
    BrokerResponseError,
    FencedLeaderEpochError,
    NotLeaderOrFollowerError,
)
from pyclient.protocol.primitives import part_length

if TYPE_CHECKING:
    from broker_stub.log.files.file_slice import FileSlice
    from broker_stub.replica.manager import ReplicaManager
    from broker_stub.replica.partition import Partition

READ_COMMITTED: Final = 1  # the isolation level
_WRONG_ABOUT_LEADER: Final = (NotLeaderOrFollowerError.code, FencedLeaderEpochError.code)

# A file range keeps its file open until it is sent, and costs a system call of its own: small
# ones are read at once instead. One response has at most this many of either kind, and the rest
# comes with the next one. So a fetch of ten thousand partitions needs neither as many open files
# nor their bytes in memory.
_COPIED_UP_TO: Final = 64 << 10
_COPIED_IN_ALL: Final = 4 << 20
_FILE_RANGES_MAX: Final = 64


class FetchParams(NamedTuple):
    """What a client asks for."""

    session_id: int
    session_epoch: int
    by_id: bool
    max_wait_ms: int
    min_bytes: int
    max_bytes: int
    committed_only: bool
    targets: list[FetchTarget]
    forgotten: list[FetchKey]


class FetchPartitionData:
    """What one partition gave: records or an error, and its offsets."""

    __slots__ = (
        "aborted",
        "error_code",
        "high_watermark",
        "index",
        "last_stable_offset",
        "leader",
        "log_start_offset",
        "records",
    )

    def __init__(self, index: int, error_code: int = 0) -> None:
        self.index = index
        self.error_code = error_code
        self.high_watermark = -1
        self.last_stable_offset = -1
        self.log_start_offset = -1
        self.aborted: list[tuple[int, int]] | None = None
        """Producer id and first offset of transactions to skip; None for read_uncommitted."""
        self.records: FileSlice | bytes | None = None
        self.leader: tuple[int, int] | None = None
        """Leader id and epoch, where the client was wrong about the leader."""

    @property
    def nbytes(self) -> int:
        """Size of the records."""
        return 0 if self.records is None else part_length(self.records)


class PartitionReads:
    """What one pass over the partitions gave.

    Attributes:
        data: every target with what its partition gave.
        partitions: the partitions that were found and are led here.
        nbytes: size of all records.
        is_final: waiting gives nothing better: there is an error, or more data than fits.
    """

    __slots__ = ("_copied", "_file_ranges", "data", "is_final", "nbytes", "partitions")

    def __init__(self) -> None:
        self.data: list[tuple[FetchTarget, FetchPartitionData]] = []
        self.partitions: list[Partition] = []
        self.nbytes = 0
        self.is_final = False
        self._copied = 0
        self._file_ranges = 0

    def read(
        self, partition: Partition, target: FetchTarget, params: FetchParams
    ) -> FetchPartitionData:
        """Read one partition within what the others left of the limits.

        Raises:
            OffsetOutOfRangeError: the log has no such offset.
        """
        committed_only = params.committed_only
        partition.follow_flushes()
        end = partition.readable_end(committed_only=committed_only)
        is_full = self._file_ranges >= _FILE_RANGES_MAX or self._copied >= _COPIED_IN_ALL
        room = 0 if is_full else params.max_bytes - self.nbytes
        read = partition.read(
            target.fetch_offset,
            min(target.partition_max_bytes, room),
            limit_offset=end,
            # The first batch of a response goes out whatever its size, or a batch above the
            # client's limit would stop it for ever.
            min_one_batch=self.nbytes == 0,
        )
        if read.next_offset < end:
            self.is_final = True  # a limit, or the end of a segment, cut it off
        data = FetchPartitionData(partition.index)
        data.high_watermark = partition.high_watermark
        data.last_stable_offset = partition.last_stable_offset
        data.log_start_offset = partition.log_start_offset
        data.records = None if read.records is None else self._copy_if_small(read.records)
        if committed_only:
            data.aborted = []
            if read.records is not None:
                aborted = partition.aborted_transactions(target.fetch_offset, read.next_offset)
                data.aborted = [(one.producer_id, one.first_offset) for one in aborted]
        return data

    def _copy_if_small(self, records: FileSlice) -> FileSlice | bytes:
        if records.nbytes > _COPIED_UP_TO:
            self._file_ranges += 1
            return records
        self._copied += records.nbytes
        return records.read()


def read_partitions(
    replicas: ReplicaManager, params: FetchParams, targets: Iterable[FetchTarget]
) -> PartitionReads:
    """Read every target, in order; one that fails does not stop the others."""
    reads = PartitionReads()
    for target in targets:
        topic_id, name, index = target.key
        partition: Partition | None = None
        try:
            topic = replicas.topic(name, topic_id, by_id=params.by_id)
            partition = replicas.partition_of(topic, index)
            partition.check_leader_epoch(target.current_leader_epoch)
            reads.partitions.append(partition)
            data = reads.read(partition, target, params)
        except BrokerResponseError as error:
            data = FetchPartitionData(index, error.code)
            if partition is not None and error.code in _WRONG_ABOUT_LEADER:
                data.leader = partition.leader, partition.leader_epoch
            reads.is_final = True
        reads.data.append((target, data))
        reads.nbytes += data.nbytes
    return reads
