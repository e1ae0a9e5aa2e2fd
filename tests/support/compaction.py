"""Compacting logs in tests, and what readers find in them."""

from collections.abc import Callable

from broker_stub.log.batch.append_info import AppendOrigin
from broker_stub.log.cleaning.compaction import Compaction, DirtyLog
from broker_stub.log.cleaning.offset_map import OffsetMap
from broker_stub.log.files.open_files import OpenFiles
from broker_stub.log.internal_batches import read_log
from broker_stub.log.partition_log import PartitionLog
from pyclient.records.record import ConsumerRecord
from tests.support.logs import NOW_MS, append

DAY_MS = 86_400_000


def write(log: PartitionLog, buffer: bytes | bytearray, now_ms: int = NOW_MS) -> int:
    """Append as the broker's own parts do; the first offset."""
    return append(log, buffer, now_ms=now_ms, origin=AppendOrigin.COORDINATOR).first_offset


def compaction(
    log: PartitionLog,
    files: OpenFiles,
    *,
    first_dirty: int = 0,
    now_ms: int = NOW_MS,
    map_bytes: int = 1 << 20,
    digest: Callable[[bytes], bytes] | None = None,
) -> Compaction:
    """A compaction of the whole log but its active segment."""
    offsets = OffsetMap(map_bytes) if digest is None else OffsetMap(map_bytes, digest)
    end = min(log.last_stable_offset, log.segments[-1].base_offset)
    dirty = DirtyLog(log, first_dirty, end)
    return Compaction(dirty, files, offsets, now_ms, lambda _log, _paths: None)


def compact(log: PartitionLog, files: OpenFiles, **options: object) -> int:
    """Compact a log; the offset up to which it is compacted then."""
    work = compaction(log, files, **options)  # type: ignore[arg-type]
    for _ in work.run():
        pass
    return work.end_offset


def records(log: PartitionLog) -> list[ConsumerRecord]:
    """What a reader of committed records gets, but for open transactions."""
    return list(read_log(log))


def contents(log: PartitionLog) -> dict[int, tuple[bytes | None, bytes | None]]:
    """Keys and values of those, by offset."""
    return {record.offset: (record.key, record.value) for record in records(log)}


def table(log: PartitionLog) -> dict[bytes, bytes]:
    """What a reader who keeps the last value of each key ends up with."""
    rows: dict[bytes, bytes] = {}
    for record in records(log):
        if record.key is None:
            continue
        if record.value is None:
            rows.pop(record.key, None)
        else:
            rows[record.key] = record.value
    return rows
