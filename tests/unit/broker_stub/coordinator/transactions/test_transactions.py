"""Transactions from the first request to the last marker, on both transaction versions."""

import pytest

from tests.support.node_harness import NodeHarness
from tests.support.transaction_script import NEW, OLD, TOPIC, Producer, TransactionScript


@pytest.fixture
def script(harness: NodeHarness) -> TransactionScript:
    harness.create_topic(TOPIC, 3)
    script = TransactionScript(harness.ask)
    assert script.find() == 0
    assert script.find(key_type=0, key="tellers") == 0
    return script


def test_a_committed_transaction_is_seen_as_a_whole(script):
    producer = script.started()
    assert producer.epoch == 0
    assert script.produce(producer, b"debit") == 0
    assert script.produce(producer, b"credit", partition=1) == 0
    assert (script.read(0), script.read(1)) == ([], [])
    assert script.read(0, committed_only=False) == [b"debit"]
    assert script.describe()["state"] == "Ongoing"
    after = script.end(producer)
    assert (after.id, after.epoch, after.error) == (producer.id, 1, 0)
    assert (script.read(0), script.read(1)) == ([b"debit"], [b"credit"])
    assert script.describe()["state"] == "CompleteCommit"


def test_an_aborted_transaction_is_never_seen(script):
    producer = script.started()
    script.produce(producer, b"no")
    after = script.end(producer, commit=False)
    assert script.produce(after, b"yes") == 0
    script.end(after)
    assert script.read() == [b"yes"]
    assert script.end_offset() == 4  # two records, two markers


def test_clients_of_version_1_add_their_partitions_themselves(script):
    producer = script.started()
    assert script.produce(producer, b"early", version=OLD) == 120  # TRANSACTION_ABORTABLE
    assert script.produce(producer, b"early", version=10) == 48  # INVALID_TXN_STATE
    assert script.add(producer, 0) == 0
    assert script.produce(producer, b"a", version=OLD) == 0
    after = script.end(producer, version=4)
    assert after.error == 0
    assert script.produce(producer, b"late", sequence=1, version=OLD) == 120
    assert script.add(producer, 0) == 0  # the epoch stays
    assert script.produce(producer, b"b", sequence=1, version=OLD) == 0
    assert script.end(producer, version=4).error == 0
    assert script.read() == [b"a", b"b"]


def test_a_new_producer_fences_the_old_one_and_aborts_what_it_left_open(script):
    zombie = script.started()
    script.produce(zombie, b"zombie")
    assert script.init().error == 51  # CONCURRENT_TRANSACTIONS: the abort comes first
    producer = script.started()
    assert producer.id == zombie.id
    assert producer.epoch > zombie.epoch
    assert script.produce(zombie, b"again", sequence=1) == 47  # INVALID_PRODUCER_EPOCH
    assert script.end(zombie).error == 90  # PRODUCER_FENCED
    assert script.end(zombie, version=1).error == 47
    assert script.read() == []
    assert script.end_offset() == script.end_offset(committed_only=False)


@pytest.mark.parametrize("version", [10, OLD, NEW])
def test_a_batch_that_its_partition_refuses_begins_no_transaction(script, version):
    """A marker of a newer epoch is there: the partition refuses before the coordinator is asked."""
    producer = script.started()
    newer = Producer(producer.id, producer.epoch + 1)
    assert script.write_marker(newer) == 0
    assert script.produce(producer, b"late", version=version) == 47  # INVALID_PRODUCER_EPOCH
    assert script.describe()["state"] == "Empty"


def test_offsets_are_visible_once_their_transaction_commits(script):
    producer = script.started()
    assert script.commit_offsets(producer, {0: 5, 1: 7}) == {0: 0, 1: 0}
    assert script.committed(0, 2) == {0: (-1, 88), 2: (-1, 0)}  # UNSTABLE_OFFSET_COMMIT
    assert script.committed(0, stable=False) == {0: (-1, 0)}
    after = script.end(producer)
    assert script.committed(0, 1) == {0: (5, 0), 1: (7, 0)}
    assert script.commit_offsets(after, {0: 6}) == 0
    assert script.committed(0, stable=False) == {0: (5, 0)}
    script.end(after, commit=False)
    assert script.committed(0) == {0: (5, 0)}


def test_everything_survives_a_restart(script, harness):
    producer = script.started()
    script.produce(producer, b"a")
    script.commit_offsets(producer, {0: 5})
    harness.restart(clean=False)
    assert script.describe()["state"] == "Ongoing"
    assert script.committed(0) == {0: (-1, 88)}
    assert script.produce(producer, b"b", sequence=1) == 0
    after = script.end(producer)
    harness.restart()
    assert script.read() == [b"a", b"b"]
    assert script.committed(0) == {0: (5, 0)}
    assert script.end(producer) == Producer(producer.id, after.epoch)  # a retry
    assert script.produce(after, b"c") == 0
