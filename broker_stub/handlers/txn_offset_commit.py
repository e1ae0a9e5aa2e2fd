"""TxnOffsetCommit (API key 28), versions 0-5.

Commits a group's offsets as part of a transaction: they are visible once it commits. The group
checks the member and its generation (3+). From version 5 on (KIP-890), the request adds the group
to the transaction by itself.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Final

from broker_stub.coordinator.groups.commit_offsets import (
    CommitResults,
    OffsetCommit,
    commit_in_transaction,
)
from broker_stub.coordinator.transactions.admission import TransactionOperation
from broker_stub.coordinator.transactions.transaction import ProducerIdAndEpoch
from broker_stub.request import Parked, RequestContext
from pyclient.error_codes import BrokerResponseError
from pyclient.protocol.messages.txn_offset_commit import (
    TxnOffsetCommitRequest,
    TxnOffsetCommitResponse,
    TxnOffsetCommitResponsePartition,
    TxnOffsetCommitResponseTopic,
)

if TYPE_CHECKING:
    from broker_stub.node import Node

_ABORTABLE_FROM: Final = 4
_ADDS_FROM: Final = 5


def handle(
    node: Node, request: TxnOffsetCommitRequest, context: RequestContext
) -> TxnOffsetCommitResponse | Parked[TxnOffsetCommitResponse]:
    commit = OffsetCommit(
        request.group_id,
        request.generation_id,
        request.member_id,
        request.group_instance_id,
        -1,
        [
            (
                topic.name,
                [
                    (
                        one.partition_index,
                        one.committed_offset,
                        one.committed_leader_epoch,
                        one.committed_metadata,
                    )
                    for one in topic.partitions
                ],
            )
            for topic in request.topics
        ],
        names_missing_group=False,
    )
    return commit_in_transaction(
        node,
        commit,
        request.transactional_id,
        ProducerIdAndEpoch(request.producer_id, request.producer_epoch),
        _respond,
        operation=_operation(context.api_version),
    )


def _operation(version: int) -> TransactionOperation:
    if version >= _ADDS_FROM:
        return TransactionOperation.ADD
    if version >= _ABORTABLE_FROM:
        return TransactionOperation.VERIFY_ABORTABLE
    return TransactionOperation.VERIFY


def _respond(results: CommitResults) -> TxnOffsetCommitResponse:
    return TxnOffsetCommitResponse(
        topics=[
            TxnOffsetCommitResponseTopic(
                name=name or "",
                partitions=[
                    TxnOffsetCommitResponsePartition(partition_index=index, error_code=code)
                    for index, code in outcomes
                ],
            )
            for name, outcomes in results
        ]
    )


def refuse(request: TxnOffsetCommitRequest, error: BrokerResponseError) -> TxnOffsetCommitResponse:
    return _respond(
        [
            (topic.name, [(one.partition_index, error.code) for one in topic.partitions])
            for topic in request.topics
        ]
    )
