"""Builds the requests to the transaction coordinator."""

from collections.abc import Iterable

from pyclient.producer.sequences import ProducerIdAndEpoch
from pyclient.protocol.messages.add_offsets_to_txn import AddOffsetsToTxnRequest
from pyclient.protocol.messages.add_partitions_to_txn import (
    AddPartitionsToTxnRequest,
    AddPartitionsToTxnTopic,
)
from pyclient.protocol.messages.end_txn import EndTxnRequest
from pyclient.protocol.messages.init_producer_id import InitProducerIdRequest
from pyclient.types import TopicPartition


def init(
    transactional_id: str, timeout_ms: int, identity: ProducerIdAndEpoch
) -> InitProducerIdRequest:
    """Ask for an id, or, with an identity, for its next epoch (KIP-360)."""
    return InitProducerIdRequest(
        transactional_id=transactional_id,
        transaction_timeout_ms=timeout_ms,
        producer_id=identity.producer_id,
        producer_epoch=identity.epoch,
    )


def add_partitions(
    transactional_id: str, identity: ProducerIdAndEpoch, partitions: Iterable[TopicPartition]
) -> AddPartitionsToTxnRequest:
    """Add partitions, before transaction.version 2."""
    topics: dict[str, list[int]] = {}
    for topic, partition in partitions:
        topics.setdefault(topic, []).append(partition)
    return AddPartitionsToTxnRequest(
        v3_and_below_transactional_id=transactional_id,
        v3_and_below_producer_id=identity.producer_id,
        v3_and_below_producer_epoch=identity.epoch,
        v3_and_below_topics=[
            AddPartitionsToTxnTopic(name=name, partitions=of) for name, of in topics.items()
        ],
    )


def add_group(
    transactional_id: str, identity: ProducerIdAndEpoch, group_id: str
) -> AddOffsetsToTxnRequest:
    """Add a group whose offsets are to be committed, before transaction.version 2."""
    return AddOffsetsToTxnRequest(
        transactional_id=transactional_id,
        producer_id=identity.producer_id,
        producer_epoch=identity.epoch,
        group_id=group_id,
    )


def end(
    transactional_id: str,
    identity: ProducerIdAndEpoch,
    transaction_version: int,
    *,
    commit: bool,
) -> EndTxnRequest:
    """Commit or abort, in the protocol that the transaction was begun in."""
    request = EndTxnRequest(
        transactional_id=transactional_id,
        producer_id=identity.producer_id,
        producer_epoch=identity.epoch,
        committed=commit,
    )
    request.use_transaction_version(transaction_version)
    return request
