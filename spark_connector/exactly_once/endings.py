"""Ends transactions, and finds out how they ended.

The coordinator's answer to a repeated end tells how the transaction ended while nobody else has
used its id. After that only the proof tells: an offset that the transaction commits along with its
records, with a token that no other transaction has.
"""

from collections.abc import Callable, Iterable
from concurrent.futures import ThreadPoolExecutor
from enum import Enum
from typing import Final

from pyclient import KafkaAdminClient, PreparedTransaction
from pyclient.errors import (
    InvalidPidMappingError,
    InvalidProducerEpochError,
    InvalidTxnStateError,
    ProducerFencedError,
    TransactionalIdNotFoundError,
)
from spark_connector.exactly_once.names import TaskTransaction, is_task_id, proof_group
from spark_connector.exactly_once.sink import ExactlyOnceSink

_PARALLEL: Final = 8
_TELLS_NOTHING: Final = (ProducerFencedError, InvalidProducerEpochError, InvalidPidMappingError)


class Fate(Enum):
    """How a transaction ended."""

    COMMITTED = "committed"
    ABORTED = "aborted"
    UNKNOWN = "unknown"  # it is over; its proof tells how


Fates = dict[TaskTransaction, Fate]


def end_all(
    admin: KafkaAdminClient, transactions: Iterable[TaskTransaction], *, commit: bool
) -> Fates:
    """Commit or abort; how each transaction has ended, now or before."""

    def end(one: TaskTransaction) -> Fate:
        try:
            admin.end_transaction(one.prepared, commit=commit)
        except InvalidTxnStateError:
            return Fate.ABORTED if commit else Fate.COMMITTED
        except _TELLS_NOTHING:
            return Fate.UNKNOWN
        return Fate.COMMITTED if commit else Fate.ABORTED

    named = list(transactions)
    with ThreadPoolExecutor(_PARALLEL) as threads:
        return dict(zip(named, threads.map(end, named), strict=True))


def abort_all(
    admin: KafkaAdminClient,
    transactions: Iterable[PreparedTransaction],
    on_failure: Callable[[str], None],
) -> None:
    """Abort what nobody is going to commit; the coordinator does what this cannot, in time."""
    fates = end_all(admin, [TaskTransaction(-1, "", one) for one in transactions], commit=False)
    for one, fate in fates.items():
        if fate is Fate.COMMITTED:
            on_failure(one.prepared.transactional_id)


def still_open(
    admin: KafkaAdminClient, transactions: Iterable[TaskTransaction]
) -> list[TaskTransaction]:
    """The transactions that are neither committed nor aborted yet."""
    found = []
    for one in transactions:
        prepared = one.prepared
        try:
            name = prepared.transactional_id
            now = admin.describe_transactions([name])[name]
        except TransactionalIdNotFoundError:
            continue
        identity = (now.producer_id, now.producer_epoch)
        if now.state == "Ongoing" and identity == (prepared.producer_id, prepared.producer_epoch):
            found.append(one)
    return found


def open_tasks(admin: KafkaAdminClient, key: str) -> list[PreparedTransaction]:
    """Every transaction of the key's tasks that is open now.

    With producer id and epoch, so that ending one cannot hit a later transaction of the same id.
    """
    listed = admin.list_transactions(state_filters=["Ongoing"])
    names = [
        one.transactional_id
        for of in listed.values()
        for one in of
        if is_task_id(key, one.transactional_id)
    ]
    found = []
    for name in names:
        try:
            now = admin.describe_transactions([name])[name]
        except TransactionalIdNotFoundError:
            continue
        if now.state == "Ongoing":
            found.append(PreparedTransaction(name, now.producer_id, now.producer_epoch, 0))
    return found


def proven(
    admin: KafkaAdminClient, sink: ExactlyOnceSink, key: str, transactions: list[TaskTransaction]
) -> Fates:
    """How transactions ended, by their proofs; waits for open transactions of the same tasks."""
    if not transactions:
        return {}
    groups = {one: proof_group(key, one.partition) for one in transactions}
    asked = {group: [sink.decisions] for group in groups.values()}
    offsets = admin.list_group_offsets(asked, require_stable=True)
    return {
        one: Fate.COMMITTED
        if offsets[group][sink.decisions].metadata == one.token
        else Fate.ABORTED
        for one, group in groups.items()
    }
