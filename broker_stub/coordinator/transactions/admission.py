"""Which writes belong to their producer's transaction: Produce and TxnOffsetCommit ask first.

A write outside its transaction would stay undecided for ever, and every `read_committed` reader
would stop before it (KIP-890). Newer clients rely on the write itself to add its partition. Serving
thread only.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from enum import Enum
from typing import TYPE_CHECKING

from broker_stub.coordinator.transactions.transaction import ProducerIdAndEpoch
from broker_stub.log.producers.transactions import EPOCH_BUMP_FROM
from pyclient.error_codes import (
    BrokerResponseError,
    InvalidProducerEpochError,
    InvalidTxnStateError,
    ProducerFencedError,
    TransactionAbortableError,
)
from pyclient.types import TopicPartition

if TYPE_CHECKING:
    from broker_stub.coordinator.transactions.transaction_coordinator import Refused
    from broker_stub.node import Node


class TransactionOperation(Enum):
    """What a write's version asks for."""

    VERIFY = "verify"
    """Refuse a partition that is not in the transaction; the client knows INVALID_TXN_STATE."""
    VERIFY_ABORTABLE = "verify abortable"
    """The same; the client knows TRANSACTION_ABORTABLE."""
    ADD = "add"
    """Add the partition to the transaction."""


def admit(
    node: Node,
    transactional_id: str,
    producer: ProducerIdAndEpoch,
    partitions: Sequence[TopicPartition],
    done: Callable[[Refused], None],
    *,
    operation: TransactionOperation,
) -> None:
    """Verify or add partitions; `done` gets those that were refused, and the errors.

    It is called before this returns, unless the log of transactions has to be flushed first.
    """
    transactions = node.transactions
    if operation is TransactionOperation.ADD:

        def added(error: BrokerResponseError | None) -> None:
            refused = {} if error is None else dict.fromkeys(partitions, error)
            done(_as_told(refused, operation))

        transactions.add_partitions(
            transactional_id, producer, partitions, added, client_version=EPOCH_BUMP_FROM
        )
    elif node.config["transaction.partition.verification.enable"]:
        refused = transactions.verify_partitions(transactional_id, producer, partitions)
        done(_as_told(refused, operation))
    else:
        done({})


def _as_told(refused: Refused, operation: TransactionOperation) -> Refused:
    """The errors that a producer expects from a write."""
    told: dict[TopicPartition, BrokerResponseError] = {}
    for partition, error in refused.items():
        if isinstance(error, ProducerFencedError):
            error = InvalidProducerEpochError(str(error))
        elif (
            isinstance(error, TransactionAbortableError)
            and operation is TransactionOperation.VERIFY
        ):
            error = InvalidTxnStateError("Partition was not added to the transaction")
        told[partition] = error
    return told
