"""Commits the offsets of a request: which partitions are refused, and when it is answered.

The one owner of this decision: `handlers/offset_commit.py` and `data_path/offset_commit.py` decode,
call `commit_offsets` and encode. A partition that does not exist is refused whatever its group
says, and one whose metadata is too long fails alone. Serving thread only.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import TYPE_CHECKING, Final, NamedTuple, TypeAlias, TypeVar

from broker_stub.coordinator.groups.offsets import CommittedOffset
from broker_stub.coordinator.transactions.admission import TransactionOperation, admit
from broker_stub.coordinator.transactions.transaction import ProducerIdAndEpoch
from broker_stub.request import Parked
from pyclient.error_codes import (
    BrokerResponseError,
    OffsetMetadataTooLargeError,
    UnknownTopicIdError,
    UnknownTopicOrPartitionError,
)
from pyclient.types import TopicPartition

if TYPE_CHECKING:
    from broker_stub.coordinator.transactions.transaction_coordinator import Refused
    from broker_stub.node import Node

Answer = TypeVar("Answer")

PartitionOffset: TypeAlias = tuple[int, int, int, str | None]
"""Partition, offset, leader epoch and metadata."""

CommitResults: TypeAlias = list[tuple[str | None, list[tuple[int, int]]]]
"""Every topic of the request, in its order, with each partition's index and error code."""

_MISSING: Final = (UnknownTopicOrPartitionError.code, UnknownTopicIdError.code)


class OffsetCommit(NamedTuple):
    """A request's fields, whatever its version."""

    group_id: str
    generation_id: int
    member_id: str
    instance_id: str | None
    retention_ms: int
    topics: Sequence[tuple[str | None, Sequence[PartitionOffset]]]
    """By name; None for an id that no topic has."""
    names_missing_group: bool
    """Whether the client knows the error for a group that does not exist."""


def commit_offsets(
    node: Node, commit: OffsetCommit, encode: Callable[[CommitResults], Answer]
) -> Answer | Parked[Answer]:
    """Check and write the offsets, all of them as one.

    The answer is parked until the records are in the log: at the end of the server's turn, or
    after a flush that has to come first.
    """
    accepted, results, any_exists = _select(node, commit.topics, commit.retention_ms)
    if not any_exists:
        return encode(results)
    coordinator = node.coordinator
    try:
        coordinator.check_commit(
            commit.group_id,
            commit.member_id,
            commit.instance_id,
            commit.generation_id,
            names_missing_group=commit.names_missing_group,
        )
    except BrokerResponseError as error:
        return encode(_refused(results, error.code))
    if not accepted:
        return encode(results)
    answer: Parked[Answer] = Parked()

    def done(error: BrokerResponseError | None) -> None:
        answer.answer(encode(results if error is None else _refused(results, error.code)))

    coordinator.commit(commit.group_id, accepted, done)
    return answer.unwrap()


def commit_in_transaction(
    node: Node,
    commit: OffsetCommit,
    transactional_id: str,
    producer: ProducerIdAndEpoch,
    encode: Callable[[CommitResults], Answer],
    *,
    operation: TransactionOperation,
) -> Answer | Parked[Answer]:
    """Check and write the offsets as part of a transaction; they are visible once it commits."""
    accepted, results, any_exists = _select(node, commit.topics, commit.retention_ms)
    if not any_exists:
        return encode(results)
    answer: Parked[Answer] = Parked()
    coordinator = node.coordinator

    def done(error: BrokerResponseError | None) -> None:
        answer.answer(encode(results if error is None else _refused(results, error.code)))

    def admitted(refused: Refused) -> None:
        for error in refused.values():
            done(error)
            return
        try:
            coordinator.check_commit(
                commit.group_id,
                commit.member_id,
                commit.instance_id,
                commit.generation_id,
                names_missing_group=False,
                in_transaction=True,
            )
        except BrokerResponseError as error:
            done(error)
            return
        if accepted:
            coordinator.commit_in_transaction(commit.group_id, producer, accepted, done)
        else:
            done(None)

    try:
        written_to = coordinator.offsets_partition(commit.group_id)
    except BrokerResponseError as error:
        return encode(_refused(results, error.code))
    admit(node, transactional_id, producer, [written_to], admitted, operation=operation)
    return answer.unwrap()


def _select(
    node: Node, topics: Sequence[tuple[str | None, Sequence[PartitionOffset]]], retention_ms: int
) -> tuple[dict[TopicPartition, CommittedOffset], CommitResults, bool]:
    """The offsets that may be written, every partition's error code, and whether any exists."""
    now_ms = node.clock.now_ms()
    expires_ms = -1 if retention_ms < 0 else now_ms + retention_ms
    accepted: dict[TopicPartition, CommittedOffset] = {}
    results: CommitResults = []
    any_exists = False
    for name, partitions in topics:
        image = None if name is None else node.image.topic(name)
        count = 0 if image is None else len(image.partitions)
        missing = UnknownTopicIdError if name is None else UnknownTopicOrPartitionError
        outcomes = []
        for index, offset, leader_epoch, metadata in partitions:
            error_code = 0
            if name is None or not 0 <= index < count:
                error_code = missing.code
            else:
                any_exists = True
                if metadata and _is_too_long(metadata, node):
                    error_code = OffsetMetadataTooLargeError.code
                else:
                    accepted[TopicPartition(name, index)] = CommittedOffset(
                        offset, leader_epoch, metadata or "", now_ms, expires_ms
                    )
            outcomes.append((index, error_code))
        results.append((name, outcomes))
    return accepted, results, any_exists


def _is_too_long(metadata: str, node: Node) -> bool:
    # The option says bytes, but Apache Kafka compares a Java string's length: UTF-16 units.
    length = len(metadata.encode("utf-16-le", "surrogatepass")) // 2
    limit: int = node.config["offset.metadata.max.bytes"]
    return length > limit


def _refused(results: CommitResults, error_code: int) -> CommitResults:
    return [
        (name, [(index, code if code in _MISSING else error_code) for index, code in outcomes])
        for name, outcomes in results
    ]
