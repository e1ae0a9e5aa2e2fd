"""Faults and the log of requests, on transactional APIs."""

import pytest

from broker_stub.request import HANG_UP
from pyclient.error_codes import (
    BrokerResponseError,
    ConcurrentTransactionsError,
    CoordinatorLoadInProgressError,
    CoordinatorNotAvailableError,
    InvalidTxnStateError,
    NotCoordinatorError,
    ProducerFencedError,
    TransactionAbortableError,
)
from pyclient.protocol.messages.add_offsets_to_txn import AddOffsetsToTxnRequest
from pyclient.protocol.messages.add_partitions_to_txn import AddPartitionsToTxnRequest
from pyclient.protocol.messages.describe_transactions import DescribeTransactionsRequest
from pyclient.protocol.messages.end_txn import EndTxnRequest
from pyclient.protocol.messages.init_producer_id import InitProducerIdRequest
from pyclient.protocol.messages.produce import ProduceRequest
from pyclient.protocol.messages.txn_offset_commit import TxnOffsetCommitRequest
from pyclient.protocol.messages.write_txn_markers import WriteTxnMarkersRequest
from tests.support.node_harness import NodeHarness
from tests.support.transaction_script import TOPIC, TransactionScript


@pytest.fixture
def script(harness: NodeHarness) -> TransactionScript:
    harness.create_topic(TOPIC, 3)
    script = TransactionScript(harness.ask)
    script.find()
    script.find(key_type=0, key="tellers")
    return script


ACTS = {
    InitProducerIdRequest: (NotCoordinatorError, lambda script, p: script.init().error),
    AddPartitionsToTxnRequest: (
        ConcurrentTransactionsError,
        lambda script, p: script.add(p, 0),
    ),
    AddOffsetsToTxnRequest: (
        CoordinatorLoadInProgressError,
        lambda script, p: script.add_offsets(p),
    ),
    ProduceRequest: (TransactionAbortableError, lambda script, p: script.produce(p, b"a")),
    TxnOffsetCommitRequest: (
        CoordinatorNotAvailableError,
        lambda script, p: script.commit_offsets(p, {0: 1}),
    ),
    EndTxnRequest: (ProducerFencedError, lambda script, p: script.end(p).error),
    WriteTxnMarkersRequest: (InvalidTxnStateError, lambda script, p: script.write_marker(p)),
    DescribeTransactionsRequest: (
        CoordinatorNotAvailableError,
        lambda script, p: script.describe()["error"],
    ),
}


@pytest.mark.parametrize("api", ACTS, ids=lambda api: api.__name__)
def test_a_refused_request_changes_nothing(harness, script, requests, faults, api):
    error: type[BrokerResponseError]
    error, act = ACTS[api]
    producer = script.started()
    before = harness.node.transactions.describe("t")
    requests.clear()
    fault = faults.fail_next(api, error)
    assert act(script, producer) == error.code
    assert fault.hits == 1
    assert requests.count(api) == 1
    assert harness.node.transactions.describe("t") == before
    assert script.read(committed_only=False) == []


def test_a_fault_of_one_partition_leaves_the_others_in_the_transaction(script, faults):
    producer = script.started()
    faults.fail_next(TxnOffsetCommitRequest, NotCoordinatorError, topic=TOPIC, partition=1)
    assert script.commit_offsets(producer, {0: 5, 1: 6}) == {0: 0, 1: 16}
    script.end(producer)
    assert script.committed(0, 1) == {0: (5, 0), 1: (-1, 0)}


def test_a_lost_answer_to_the_end_is_found_by_the_retry(harness, script, faults):
    producer = script.started()
    script.produce(producer, b"a")
    faults.drop(EndTxnRequest, after=True)
    request = EndTxnRequest(
        transactional_id="t",
        producer_id=producer.id,
        producer_epoch=producer.epoch,
        committed=True,
    )
    assert harness.start(request, 5).reply == HANG_UP
    assert script.describe()["state"] == "CompleteCommit"
    retried = script.end(producer)
    assert (retried.error, retried.epoch) == (0, producer.epoch + 1)
    assert script.read() == [b"a"]
