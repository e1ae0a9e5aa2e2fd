"""InitProducerId of a producer that goes on after an error and names its epoch (KIP-360)."""

import pytest

from broker_stub.coordinator.transactions.transaction import ProducerIdAndEpoch, Transaction
from broker_stub.coordinator.transactions.transaction_state import (
    EPOCH_MAX,
    TransactionImage,
    new_image,
)
from pyclient.errors import ProducerFencedError
from pyclient.types import TopicPartition

HERE = TopicPartition("transfers", 0)
TIMEOUT_MS = 1000


def write(transaction: Transaction, image: TransactionImage | None) -> ProducerIdAndEpoch:
    assert image is not None
    transaction.begin(image)
    transaction.complete()
    return ProducerIdAndEpoch(image.producer_id, image.producer_epoch)


def init(transaction: Transaction, expected: ProducerIdAndEpoch | None) -> ProducerIdAndEpoch:
    return write(transaction, transaction.init_producer_id(TIMEOUT_MS, expected, None, 0))


def ongoing(epoch: int = -1) -> tuple[Transaction, ProducerIdAndEpoch]:
    """A transaction whose producer has the epoch after this one, and has written."""
    image = new_image("t", 7, TIMEOUT_MS, 0)._replace(producer_epoch=epoch)
    transaction = Transaction(image)
    producer = init(transaction, None)
    write(transaction, transaction.add_partitions(producer, [HERE], 2, 0))
    return transaction, producer


def fence(transaction: Transaction, client_version: int) -> None:
    write(transaction, transaction.fence(client_version, 0))
    write(transaction, transaction.completed(0))


def test_a_producer_is_not_fenced_by_its_own_initialisation() -> None:
    """The first attempt aborts its transaction and is told to retry; the retry names its epoch."""
    transaction, producer = ongoing()
    assert transaction.init_producer_id(TIMEOUT_MS, producer, None, 0) is None
    fence(transaction, 2)
    assert init(transaction, producer) == (7, producer.epoch + 1)


def test_another_producers_initialisation_fences_it() -> None:
    transaction, producer = ongoing()
    fence(transaction, 2)
    init(transaction, None)
    with pytest.raises(ProducerFencedError):
        init(transaction, producer)


def test_an_older_cluster_fences_it_as_before() -> None:
    transaction, producer = ongoing()
    fence(transaction, 1)
    with pytest.raises(ProducerFencedError):
        init(transaction, producer)


@pytest.mark.parametrize("commit", [True, False])
def test_a_producer_that_did_not_hear_of_its_end_goes_on(commit: bool) -> None:
    transaction, producer = ongoing()
    ended = transaction.end(
        producer, commit=commit, client_version=2, new_producer_id=None, now_ms=0
    )
    write(transaction, ended)
    write(transaction, transaction.completed(0))
    assert init(transaction, producer) == (7, producer.epoch + 1)


def test_a_producer_that_did_not_hear_of_its_new_id_goes_on() -> None:
    transaction, producer = ongoing(EPOCH_MAX - 2)
    ended = transaction.end(producer, commit=True, client_version=2, new_producer_id=9, now_ms=0)
    write(transaction, ended)
    assert write(transaction, transaction.completed(0)) == (9, 0)
    assert init(transaction, producer) == (9, 0)
