"""Writes committed offsets to the log: the commits of one turn of the server as one batch.

A commit is answered once its record is in the log, and synced where `flush.messages` asks for it;
memory changes after the append. If the log refuses a batch, every commit in it fails. Serving
thread only.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from functools import partial
from typing import TYPE_CHECKING, Final, NamedTuple, TypeAlias

from broker_stub import diagnostics
from broker_stub.coordinator.errors import as_coordinator
from broker_stub.coordinator.groups.group_log import OFFSETS_TOPIC, KeyValue, offset_record
from broker_stub.coordinator.groups.offsets import CommittedOffset
from broker_stub.coordinator.transactions.transaction import ProducerIdAndEpoch
from broker_stub.log.internal_batches import build_batch
from pyclient.error_codes import (
    BrokerResponseError,
    KafkaStorageError,
    RecordBatchTooLargeError,
    RecordTooLargeError,
    UnknownServerError,
    UnknownTopicOrPartitionError,
)
from pyclient.types import TopicPartition

if TYPE_CHECKING:
    from broker_stub.node import Node
    from broker_stub.replica.partition import Partition

# With this much collected, the batch is written before the turn is over.
_BATCH_BYTES: Final = 64 << 10
_TOO_LARGE: Final = (RecordTooLargeError, RecordBatchTooLargeError)

Done: TypeAlias = Callable[[BrokerResponseError | None], None]
Offsets: TypeAlias = Mapping[TopicPartition, CommittedOffset]


class _Commit(NamedTuple):
    group_id: str
    offsets: Offsets
    records: Sequence[KeyValue]
    done: Done
    on_written: Callable[[str, Offsets], None]


class CommitBatch:
    """Commits that are not written yet, by partition of `__consumer_offsets`."""

    def __init__(self, node: Node, on_written: Callable[[str, Offsets], None]) -> None:
        """`on_written` makes the offsets of a group visible."""
        self._node = node
        self._on_written = on_written
        self._commits: dict[int, list[_Commit]] = {}
        self._bytes = 0

    def add(self, index: int, group_id: str, offsets: Offsets, done: Done) -> None:
        """Write offsets to a partition, now or at the end of the turn; `done` gets the outcome.

        It may be called before `add` returns.
        """
        records = [offset_record(group_id, one, offset) for one, offset in offsets.items()]
        commit = _Commit(group_id, offsets, records, done, self._on_written)
        turn = self._node.turn
        if not turn.is_open:
            self._write(index, [commit])
            return
        if not self._commits:
            turn.leave(self.write)
        self._commits.setdefault(index, []).append(commit)
        for key, value in records:
            self._bytes += len(key) + len(value or b"")
        if self._bytes >= _BATCH_BYTES:
            self.write()

    def write_transactional(
        self,
        index: int,
        group_id: str,
        producer: ProducerIdAndEpoch,
        offsets: Offsets,
        done: Done,
        on_written: Callable[[str, Offsets], None],
    ) -> None:
        """Write offsets of a transaction at once, as a batch of its own."""
        records = [offset_record(group_id, one, offset) for one, offset in offsets.items()]
        self._write(index, [_Commit(group_id, offsets, records, done, on_written)], producer)

    def write(self) -> None:
        """Write what was collected, one batch for each partition."""
        collected, self._commits, self._bytes = self._commits, {}, 0
        for index, commits in collected.items():
            self._write(index, commits)

    def _write(
        self, index: int, commits: Sequence[_Commit], producer: ProducerIdAndEpoch | None = None
    ) -> None:
        records = [record for commit in commits for record in commit.records]
        replicas = self._node.replicas
        try:
            partition = replicas.partition(OFFSETS_TOPIC, index)
            batch = build_batch(records, self._node.clock.now_ms(), producer)
            info = replicas.append(partition, batch)
        except _TOO_LARGE as error:
            if len(commits) == 1:
                self._refuse(commits, error)
                return
            for commit in commits:  # each may be small enough
                self._write(index, [commit])
            return
        except BrokerResponseError as error:
            self._refuse(commits, error)
            return
        except Exception as error:  # noqa: BLE001  logged, and every commit is answered
            diagnostics.exception("OffsetCommit failed")
            self._refuse(commits, UnknownServerError(repr(error)))
            return
        for commit in commits:
            commit.on_written(commit.group_id, commit.offsets)
        if info.flush_due:
            done = partial(self._on_flushed, partition, commits)
            self._node.background.submit(partition.log.flush, done)
            return
        for commit in commits:
            commit.done(None)

    def _on_flushed(
        self, partition: Partition, commits: Sequence[_Commit], error: Exception | None
    ) -> None:
        self._node.replicas.wake_fetches([partition])
        if error is not None:
            self._refuse(commits, KafkaStorageError(str(error)))
        elif self._node.image.topic_by_id(partition.topic_id) is None:
            self._refuse(commits, UnknownTopicOrPartitionError(f"{partition} was deleted"))
        else:
            for commit in commits:
                commit.done(None)

    def _refuse(self, commits: Sequence[_Commit], error: BrokerResponseError) -> None:
        groups = ", ".join(dict.fromkeys(commit.group_id for commit in commits))
        diagnostics.warn("cannot write group %s to %s: %s", groups, OFFSETS_TOPIC, error)
        told = as_coordinator(error)
        for commit in commits:
            commit.done(told)
