"""Writes the markers that end a transaction in its partitions, until all have theirs.

A partition that was deleted needs none, and one that a newer epoch of the producer has written to
has its marker. A disk that refuses is tried again. Only when every marker is synced, where
`flush.messages` asks for it, the transaction is complete: a power failure must not leave the log
of transactions with an end that a partition does not have. Serving thread only.
"""

from __future__ import annotations

from collections.abc import Callable
from functools import partial
from typing import TYPE_CHECKING, Final, NamedTuple

from broker_stub import diagnostics
from broker_stub.metadata.image import CONSUMER_OFFSETS
from pyclient.error_codes import (
    BrokerResponseError,
    InvalidProducerEpochError,
    TransactionCoordinatorFencedError,
    UnknownTopicOrPartitionError,
)
from pyclient.records.control import EndTransactionMarker, build_end_transaction_marker
from pyclient.types import TopicPartition

if TYPE_CHECKING:
    from broker_stub.log.partition_log import AppendInfo
    from broker_stub.node import Node
    from broker_stub.replica.partition import Partition

RETRY_BACKOFF_MS: Final = 1000
_DONE_ELSEWHERE: Final = (
    UnknownTopicOrPartitionError,
    InvalidProducerEpochError,
    TransactionCoordinatorFencedError,
)


class Marker(NamedTuple):
    """The end of a producer's transaction."""

    producer_id: int
    producer_epoch: int
    committed: bool
    coordinator_epoch: int
    transaction_version: int


def write_marker(
    node: Node, marker: Marker, topic: str, index: int
) -> tuple[Partition, AppendInfo]:
    """Write a marker to one partition; a group's pending offsets end with it.

    Raises:
        UnknownTopicOrPartitionError: there is no such partition.
        InvalidProducerEpochError: a newer epoch of the producer has written to it.
        TransactionCoordinatorFencedError: a newer coordinator has ended a transaction in it.
        BrokerResponseError: the log refused it.
    """
    partition = node.replicas.partition(topic, index)
    batch = build_end_transaction_marker(
        EndTransactionMarker(marker.committed, marker.coordinator_epoch),
        producer_id=marker.producer_id,
        producer_epoch=marker.producer_epoch,
        timestamp_ms=node.clock.now_ms(),
    )
    info = node.replicas.append(
        partition, bytearray(batch), transaction_version=marker.transaction_version
    )
    if topic == CONSUMER_OFFSETS:
        node.coordinator.end_transaction(index, marker.producer_id, committed=marker.committed)
    return partition, info


def write_markers(
    node: Node, marker: Marker, partitions: frozenset[TopicPartition], done: Callable[[], None]
) -> None:
    """Write a marker to every partition, then call `done`; at once, if nothing has to wait."""
    _Markers(node, marker, set(partitions), done).run()


class _Markers:
    """The partitions of one transaction that have no marker yet."""

    __slots__ = ("_done", "_marker", "_missing", "_node")

    def __init__(
        self, node: Node, marker: Marker, missing: set[TopicPartition], done: Callable[[], None]
    ) -> None:
        self._node = node
        self._marker = marker
        self._missing = missing
        self._done = done

    def run(self) -> None:
        if not self._missing:
            self._done()
            return
        for one in sorted(self._missing):
            self._write(one)

    def _write(self, one: TopicPartition) -> None:
        try:
            partition, info = write_marker(self._node, self._marker, one.topic, one.partition)
        except _DONE_ELSEWHERE as error:
            diagnostics.warn("%s-%d needs no transaction marker: %s", *one, error)
            self._written(one, None)
        except BrokerResponseError as error:
            diagnostics.warn("cannot write a transaction marker to %s-%d: %s", *one, error)
            self._node.timers.after(RETRY_BACKOFF_MS, partial(self._write, one))
        else:
            if info.flush_due:
                flushed = partial(self._flushed, one, partition)
                self._node.background.submit(partition.log.flush, flushed)
            else:
                self._written(one, None)

    def _flushed(self, one: TopicPartition, partition: Partition, error: Exception | None) -> None:
        self._node.replicas.wake_fetches([partition])
        self._written(one, error)

    def _written(self, one: TopicPartition, error: Exception | None) -> None:
        if error is not None:
            # A log whose sync failed takes nothing more until the broker is restarted, which
            # writes the marker again.
            diagnostics.warn("cannot sync a transaction marker of %s-%d: %s", *one, error)
            return
        self._missing.discard(one)
        if not self._missing:
            self._done()
