"""Transactions and the producers of partitions."""

from enum import StrEnum
from typing import NamedTuple, Self

from pyclient.admin.types.result import AdminResult
from pyclient.types import TopicPartition


class TransactionState(StrEnum):
    """The state of a transaction; UNKNOWN stands for those that only newer brokers know."""

    EMPTY = "Empty"
    ONGOING = "Ongoing"
    PREPARE_COMMIT = "PrepareCommit"
    PREPARE_ABORT = "PrepareAbort"
    COMPLETE_COMMIT = "CompleteCommit"
    COMPLETE_ABORT = "CompleteAbort"
    DEAD = "Dead"
    PREPARE_EPOCH_FENCE = "PrepareEpochFence"
    UNKNOWN = "Unknown"

    @classmethod
    def of(cls, told: str) -> Self:
        """The state that a broker told."""
        return next((one for one in cls if one.value == told), cls("Unknown"))


class TransactionListing(NamedTuple):
    """A transaction in a list."""

    transactional_id: str
    producer_id: int
    state: TransactionState


class TransactionDescription(NamedTuple):
    """A transaction as its coordinator knows it; the start is -1 unless it is open."""

    coordinator_id: int
    state: TransactionState
    producer_id: int
    producer_epoch: int
    transaction_timeout_ms: int
    transaction_start_time_ms: int
    topic_partitions: set[TopicPartition]


class ProducerState(NamedTuple):
    """A producer as a partition remembers it; the start offset is -1 without a transaction."""

    producer_id: int
    producer_epoch: int
    last_sequence: int
    last_timestamp: int
    coordinator_epoch: int
    current_transaction_start_offset: int


class PartitionProducerState(NamedTuple):
    """The producers of a partition."""

    active_producers: list[ProducerState]


class AbortTransactionSpec(NamedTuple):
    """An open transaction of a partition; -1 aborts it whatever the coordinator's epoch is."""

    topic_partition: TopicPartition
    producer_id: int
    producer_epoch: int
    coordinator_epoch: int = -1


class HangingTransaction(AdminResult):
    """A transaction that should have ended long ago.

    `transactional_id` and `coordinator_id` are None, and `state` is Unknown, if no coordinator
    knows it: then only `abort_transaction` ends it, for each partition.
    """

    transactional_id: str | None
    producer_id: int
    producer_epoch: int
    state: str
    age_ms: int
    coordinator_id: int | None
    topic_partitions: list[TopicPartition]
