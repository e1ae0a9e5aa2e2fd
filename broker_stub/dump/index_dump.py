"""Indexes and snapshots of producers, compared with the log beside them."""

from bisect import bisect_right
from collections.abc import Iterator
from pathlib import Path

from broker_stub.dump.lines import Faults, Line, spelled
from broker_stub.log.files.file_names import INDEX_SUFFIX, LOG_SUFFIX
from broker_stub.log.index.sparse_index import Entry, OffsetIndex, SparseIndex, TimeIndex
from broker_stub.log.index.transaction_index import TransactionIndex
from broker_stub.log.producers.snapshot import CorruptSnapshotError, read_snapshot
from pyclient.errors import CorruptRecordError
from pyclient.records.batch import AnyBatch, RecordBatch, iter_batches


def dump_offset_index(path: Path, faults: Faults, *, verify_only: bool) -> Iterator[Line]:
    """Each entry; one whose position is not that of its batch is a fault."""
    entries = _entries(path, OffsetIndex)
    if not path.stat().st_size:
        yield Line(f"{path} is empty.", {"empty": True})
        return
    log = _log_beside(path)
    base = _base_offset(path)
    for relative, position in entries:
        offset = base + relative
        batch = next(_batches(log, position), None)
        last = batch.last_offset if isinstance(batch, RecordBatch) else -1
        if last != offset:
            faults.add(
                f"Mismatches in :{path.absolute()}", f"  Index offset: {offset}, log offset: {last}"
            )
        if not verify_only:
            facts = {"offset": offset, "position": position}
            yield Line(spelled(facts), facts)


def dump_time_index(path: Path, faults: Faults, *, verify_only: bool) -> Iterator[Line]:
    """Each entry; one with another timestamp than its batch, or out of order, is a fault."""
    log = _log_beside(path)
    base = _base_offset(path)
    index = path.with_suffix(INDEX_SUFFIX)
    positions = _entries(index, OffsetIndex) if index.exists() else []
    previous = -1
    for timestamp, relative in _entries(path, TimeIndex):
        offset = base + relative
        slot = bisect_right(positions, relative, key=lambda entry: entry[0])
        position = positions[slot - 1][1] if slot else 0
        _check_time(path, _batch_up_to(log, position, offset), timestamp, offset, previous, faults)
        if not verify_only:
            facts = {"timestamp": timestamp, "offset": offset}
            yield Line(spelled(facts), facts)
        previous = timestamp


def _check_time(
    path: Path,
    batch: RecordBatch | None,
    timestamp: int,
    offset: int,
    previous: int,
    faults: Faults,
) -> None:
    last = -1 if batch is None else batch.last_offset
    if batch is None or last != offset:
        faults.add(
            f"The following indexed offsets are not found in :{path.absolute()}",
            f"Indexed offset: {offset}, found log offset: {last}",
        )
        return
    latest = max((record.timestamp for record in batch.decode()), default=-1)
    if latest != timestamp:
        faults.add(
            f"Found timestamp mismatch in :{path.absolute()}",
            f"  Index timestamp: {timestamp}, log timestamp: {latest}",
        )
    if previous >= timestamp:
        faults.add(
            f"Found out of order timestamp in :{path.absolute()}",
            f"  Index timestamp: {timestamp}, Previously indexed timestamp: {previous}",
        )


def dump_transaction_index(path: Path, faults: Faults) -> Iterator[Line]:
    """Each aborted transaction."""
    data = path.read_bytes()
    torn = len(data) % TransactionIndex.ENTRY.size
    if torn:
        faults.add(f"{path}: {torn} bytes at its end are no entry")
        data = data[: len(data) - torn]
    names = ("version", "producerId", "firstOffset", "lastOffset", "lastStableOffset")
    for fields in TransactionIndex.ENTRY.iter_unpack(data):
        facts = dict(zip(names, fields, strict=True))
        if facts["version"] != 0:
            faults.add(f"{path}: an entry has version {facts['version']}, not 0")
            return
        yield Line(spelled(facts), facts)


def dump_producer_snapshot(path: Path, faults: Faults) -> Iterator[Line]:
    """The state of each producer."""
    try:
        entries = read_snapshot(str(path))
    except CorruptSnapshotError as error:
        faults.add(str(error))
        return
    for entry in entries:
        open_since = entry.current_txn_first_offset
        facts = {
            "producerId": entry.producer_id,
            "producerEpoch": entry.epoch,
            "coordinatorEpoch": entry.coordinator_epoch,
            "currentTxnFirstOffset": None if open_since < 0 else open_since,
            "lastTimestamp": entry.last_timestamp,
        }
        text = spelled(
            {
                **facts,
                "currentTxnFirstOffset": "OptionalLong.empty"
                if open_since < 0
                else f"OptionalLong[{open_since}]",
            }
        )
        batch_facts = {}
        if entry.batches:
            last_sequence, last_offset, offset_delta, timestamp = entry.batches[-1]
            batch_facts = {
                "firstSequence": (last_sequence - offset_delta) & 0x7FFF_FFFF,
                "lastSequence": last_sequence,
                "lastOffset": last_offset,
                "offsetDelta": offset_delta,
                "timestamp": timestamp,
            }
        yield Line(f"{text} {spelled(batch_facts)}", {**facts, **batch_facts})


def check_index(path: Path, faults: Faults) -> Iterator[Line]:
    """The check by which a broker decides at its start whether it rebuilds an index."""
    kind = OffsetIndex if path.suffix == INDEX_SUFFIX else TimeIndex
    size = path.stat().st_size
    entries = _entries(path, kind)
    keys = [entry[0] for entry in entries]
    if size % kind.ENTRY.size:
        faults.add(f"{path}: {size} bytes are not a multiple of {kind.ENTRY.size}")
    elif keys != sorted(keys) or any(entry[1] < 0 for entry in entries):
        faults.add(f"{path}: its entries are not in order")
    elif not size and kind is OffsetIndex:
        yield Line(f"{path} is empty.", {"empty": True})
    else:
        yield Line(f"{path} passed sanity check.", {"sane": True})


def _entries(path: Path, kind: type[SparseIndex]) -> list[Entry]:
    """The entries up to the zeros of a preallocated file."""
    size = kind.ENTRY.size
    data = path.read_bytes()
    field = 0 if kind is OffsetIndex else 1  # the relative offset
    found: list[Entry] = []
    for fields in kind.ENTRY.iter_unpack(data[: len(data) - len(data) % size]):
        if found and fields[field] == 0:
            break
        found.append((fields[0], fields[1]))
    return found


def _base_offset(path: Path) -> int:
    return int(path.name.partition(".")[0])


def _log_beside(path: Path) -> memoryview:
    return memoryview(path.with_suffix(LOG_SUFFIX).read_bytes())


def _batches(log: memoryview, position: int) -> Iterator[AnyBatch]:
    if 0 <= position < len(log):
        try:
            yield from iter_batches(log, position)
        except CorruptRecordError:
            return  # the dump of the log says so


def _batch_up_to(log: memoryview, position: int, offset: int) -> RecordBatch | None:
    for batch in _batches(log, position):
        if isinstance(batch, RecordBatch) and batch.last_offset >= offset:
            return batch
    return None
