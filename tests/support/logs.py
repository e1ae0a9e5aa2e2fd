"""Partition logs for tests: batches to append, logs to append them to, records read back."""

from collections.abc import Container, Iterator, Mapping
from pathlib import Path
from typing import Any

from broker_stub.log.files.open_files import OpenFiles
from broker_stub.log.log_config import LogConfig
from broker_stub.log.log_manager import LogManager, LogManagerSettings
from broker_stub.log.partition_log import AppendInfo, AppendOrigin, PartitionLog
from broker_stub.log.producers.recall import recall
from broker_stub.log.recovery.log_recovery import load_log
from pyclient.clock import Clock, ManualClock
from pyclient.entropy import Entropy
from pyclient.errors import KafkaStorageError
from pyclient.records.batch import RecordBatch, iter_batches
from pyclient.records.builder import BatchBuilder
from pyclient.records.control import EndTransactionMarker, build_end_transaction_marker

NOW_MS = 1_700_000_000_000
TOPIC_ID = bytes(range(16))


def batch(
    *values: bytes,
    timestamps: list[int] | None = None,
    key: bytes | None = b"key",
    **header: Any,
) -> bytearray:
    """A batch of these values; `header` goes to the builder."""
    values = values or (b"value",)
    builder = BatchBuilder(bytearray(200 + sum(len(value) + 60 for value in values)), **header)
    for index, value in enumerate(values):
        timestamp_ms = NOW_MS if timestamps is None else timestamps[index]
        assert builder.try_append(timestamp_ms, key, value) == index
    return bytearray(b"".join(builder.close()))


def idempotent_batch(
    sequence: int, count: int = 1, *, producer_id: int = 7, epoch: int = 0
) -> bytearray:
    """A batch of an idempotent producer."""
    return batch(
        *(b"%d" % (sequence + index) for index in range(count)),
        producer_id=producer_id,
        producer_epoch=epoch,
        base_sequence=sequence,
    )


def transactional_batch(
    *values: bytes, producer_id: int = 7, epoch: int = 0, sequence: int = 0
) -> bytearray:
    """A batch that belongs to a transaction."""
    return batch(
        *values,
        transactional=True,
        producer_id=producer_id,
        producer_epoch=epoch,
        base_sequence=sequence,
    )


def marker(
    *, committed: bool, producer_id: int = 7, epoch: int = 0, coordinator_epoch: int = 0
) -> bytes:
    """The control batch that ends a transaction."""
    return build_end_transaction_marker(
        EndTransactionMarker(committed, coordinator_epoch),
        producer_id=producer_id,
        producer_epoch=epoch,
        timestamp_ms=NOW_MS,
    )


def config(**values: Any) -> LogConfig:
    """Kafka's defaults, but for the values given (`segment_bytes=2000`)."""
    return LogConfig.from_values({name.replace("_", "."): value for name, value in values.items()})


class FlushRequests(list[tuple[PartitionLog, int]]):
    """The flushes that a log asked for."""

    def __call__(self, log: PartitionLog, delay_ms: int) -> None:
        self.append((log, delay_ms))


def open_log(
    folder: Path,
    *,
    clean: bool = False,
    recovery_point: int = 0,
    log_start_offset: int = 0,
    files: OpenFiles | None = None,
    request_flush: FlushRequests | None = None,
    **values: Any,
) -> PartitionLog:
    """The log in a folder, or a new one where there is none."""
    files = OpenFiles() if files is None else files  # an empty one is false
    log = PartitionLog(
        str(folder),
        "orders",
        0,
        topic_id=TOPIC_ID,
        config=config(**values),
        files=files,
        request_flush=request_flush if request_flush is not None else FlushRequests(),
        request_reindexing=lambda log, segment: None,
        request_recall=lambda log: None,
    )
    if folder.exists():
        load_log(
            log,
            files,
            clean=clean,
            recovery_point=recovery_point,
            log_start_offset=log_start_offset,
        )
    return log


def append(
    log: PartitionLog,
    batches: bytes | bytearray | memoryview | None = None,
    *,
    leader_epoch: int = 0,
    now_ms: int = NOW_MS,
    origin: AppendOrigin = AppendOrigin.CLIENT,
) -> AppendInfo:
    """Append, and count the records as replicated."""
    info = log.append(
        batch() if batches is None else batches,
        leader_epoch=leader_epoch,
        now_ms=now_ms,
        origin=origin,
    )
    log.advance_high_watermark(log.log_end_offset)
    return info


def append_as_client(log: PartitionLog, batches: bytes) -> AppendInfo:
    """Append; if the log has to read its tail first, let it, and append again."""
    try:
        return append(log, batches)
    except KafkaStorageError:
        assert log.producer_state.is_recalling
        for _ in recall(log):
            pass
        assert not log.producer_state.is_recalling
        return append(log, batches)


def read_batches(log: PartitionLog, offset: int = 0, max_bytes: int = 1 << 20) -> list[RecordBatch]:
    """All batches from an offset to the end, in reads of at most so many bytes."""
    return list(_read_batches(log, offset, max_bytes))


def _read_batches(log: PartitionLog, offset: int, max_bytes: int) -> Iterator[RecordBatch]:
    while (read := log.read(offset, max_bytes)).records is not None:
        for found in iter_batches(read.records.read()):
            assert isinstance(found, RecordBatch)
            found.check_crc()
            yield found
        offset = read.next_offset


def read_values(log: PartitionLog, offset: int = 0) -> dict[int, bytes]:
    """The values of all records from an offset to the end, by their offsets."""
    return {
        record.offset: record.value
        for found in read_batches(log, offset)
        for record in found.decode(from_offset=offset)
    }


def open_manager(
    *folders: Path,
    clock: Clock | None = None,
    settings: Mapping[str, int] | None = None,
    cluster_id: str | None = None,
    node_id: int = 1,
    never_cut: Container[str] = (),
    files: OpenFiles | None = None,
    **values: Any,
) -> LogManager:
    """An open log manager over folders."""
    manager = LogManager(
        folders,
        clock=clock or ManualClock(NOW_MS),
        entropy=Entropy(seed=1),
        node_id=node_id,
        cluster_id=cluster_id,
        default_config=config(**values),
        settings=LogManagerSettings(**(settings or {})),
        files=files,
        never_cut=never_cut,
    )
    manager.open()
    manager.claim()
    return manager


def create(
    manager: LogManager, partition: int = 0, topic: str = "orders", **values: Any
) -> PartitionLog:
    """The log of a partition, by default with the manager's configuration."""
    settings = config(**values) if values else None
    return manager.create(topic, partition, topic_id=TOPIC_ID, config=settings)
