"""How transactions end other than by their producer's word: timeouts, crashes, broken disks."""

import errno
import struct

import pytest

from broker_stub.coordinator.placement import partition_for
from broker_stub.coordinator.transactions.transaction_log import (
    STATE_TOPIC,
    read_transaction,
    transaction_record,
)
from broker_stub.coordinator.transactions.transaction_state import (
    EPOCH_MAX,
    TransactionImage,
    TransactionState,
)
from broker_stub.log.internal_batches import build_batch
from pyclient.protocol.messages.delete_topics import DeleteTopicsRequest, DeleteTopicState
from pyclient.types import TopicPartition
from tests.support.failing_disk import FailingDisk
from tests.support.held_background import HeldBackground
from tests.support.node_harness import NOW_MS, NodeHarness
from tests.support.transaction_script import OLD, TOPIC, Producer, TransactionScript

INTERVAL_MS = 10_000  # between two looks for timed-out transactions
DAY_MS = 86_400_000


@pytest.fixture
def script(harness: NodeHarness) -> TransactionScript:
    return begin(harness)


def begin(harness: NodeHarness) -> TransactionScript:
    harness.create_topic(TOPIC, 3)
    script = TransactionScript(harness.ask)
    assert script.find() == 0
    assert script.find(key_type=0, key="tellers") == 0
    return script


def log_image(harness: NodeHarness, image: TransactionImage) -> None:
    """Write a transaction to the log, as an earlier broker did."""
    partition = harness.node.replicas.partition(
        STATE_TOPIC, partition_for(image.transactional_id, 50)
    )
    batch = build_batch([transaction_record(image, 2)], NOW_MS)
    harness.node.replicas.append(partition, batch)


# --- timeouts and expiry -------------------------------------------------------------------------


@pytest.mark.parametrize("version", [OLD, 12])
def test_a_transaction_is_aborted_when_its_time_is_up(script, harness, version):
    producer = script.started(timeout_ms=5_000)
    script.add(producer, 0)
    script.produce(producer, b"slow", version=version)
    harness.advance(5_000)
    assert script.describe()["state"] == "Ongoing"
    harness.advance(INTERVAL_MS)
    assert script.describe()["state"] == "CompleteAbort"
    assert script.read() == []
    assert script.end_offset() == script.end_offset(committed_only=False)
    assert script.end(producer, version=4).error == 90  # PRODUCER_FENCED
    assert script.produce(producer, b"late", sequence=1, version=version) == 47
    assert script.started().epoch == producer.epoch + 2


def test_a_timeout_counts_from_the_first_write_and_over_a_restart(script, harness):
    producer = script.started(timeout_ms=30_000)
    harness.advance(60_000)
    script.produce(producer, b"a")
    harness.restart(clean=False)
    harness.advance(INTERVAL_MS)
    assert script.describe()["state"] == "Ongoing"
    for _ in range(3):
        harness.advance(INTERVAL_MS)
    assert script.describe()["state"] == "CompleteAbort"


def test_nothing_ticks_while_no_transaction_is_open(script, harness):
    producer = script.started()
    idle = harness.node.timers.next_deadline_ms()
    script.produce(producer, b"a")
    script.end(producer)
    harness.advance(INTERVAL_MS)
    assert harness.node.timers.next_deadline_ms() == idle


def test_an_unused_transactional_id_expires(script, harness):
    producer = script.started()
    script.produce(producer, b"a")
    script.end(producer)
    open_script = TransactionScript(harness.ask, "open")
    open_script.produce(open_script.started(timeout_ms=900_000), b"b", partition=1)
    harness.advance(6 * DAY_MS)
    assert script.describe()["state"] == "CompleteCommit"
    harness.advance(DAY_MS + 3_600_000)
    assert script.describe()["error"] == 105  # TRANSACTIONAL_ID_NOT_FOUND
    harness.restart()
    assert script.list_all() == [("open", "CompleteAbort")]
    assert script.end(producer).error == 49  # INVALID_PRODUCER_ID_MAPPING


# --- crashes -------------------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("state", "values"),
    [(TransactionState.PREPARE_COMMIT, [b"a"]), (TransactionState.PREPARE_ABORT, [])],
)
def test_a_decided_transaction_gets_its_markers_after_a_crash(script, harness, state, values):
    producer = script.started()
    script.produce(producer, b"a")
    script.commit_offsets(producer, {0: 7})
    offsets = harness.node.coordinator.offsets_partition("tellers")
    log_image(
        harness,
        harness.node.transactions.describe("t")._replace(
            state=state,
            producer_epoch=producer.epoch + 1,
            client_version=2,
            partitions=frozenset({TopicPartition(TOPIC, 0), offsets}),
        ),
    )
    harness.restart(clean=False)
    assert script.describe()["state"] == state.value.replace("Prepare", "Complete")
    assert script.read() == values
    assert script.committed(0) == {0: (7 if values else -1, 0)}
    assert script.end_offset() == script.end_offset(committed_only=False)


def test_a_hanging_transaction_is_named_at_the_start_and_can_be_aborted(script, harness, caplog):
    producer = script.started()
    script.produce(producer, b"a")
    index = partition_for("t", 50)
    log_image(
        harness,
        harness.node.transactions.describe("t")._replace(
            state=TransactionState.COMPLETE_ABORT, partitions=frozenset()
        ),
    )
    harness.restart(clean=False)
    assert f"hanging transactions: {TOPIC}-0 (producer id {producer.id})" in caplog.text
    assert script.end_offset() == 0
    assert script.write_marker(producer, coordinator_epoch=index) == 0
    assert script.end_offset() == 2
    caplog.clear()
    harness.restart()
    assert "hanging" not in caplog.text


def test_a_deleted_topic_does_not_keep_a_transaction_from_ending(script, harness):
    harness.create_topic("gone")
    producer = script.started()
    script.produce(producer, b"a", topic="gone")
    script.produce(producer, b"b")
    request = DeleteTopicsRequest(topics=[DeleteTopicState(name="gone")])
    assert harness.ask(request, 6).responses[0].error_code == 0
    assert script.end(producer).error == 0
    assert script.describe()["state"] == "CompleteCommit"
    assert script.read() == [b"b"]


def test_without_their_log_all_transactions_are_gone(script, harness):
    producer = script.started()
    script.produce(producer, b"a")
    request = DeleteTopicsRequest(topics=[DeleteTopicState(name=STATE_TOPIC)])
    assert harness.ask(request, 6).responses[0].error_code == 0
    assert script.end(producer).error == 16  # NOT_COORDINATOR
    assert script.find() == 0
    assert script.end(producer).error == 49


def test_an_unreadable_record_is_skipped(script, harness, caplog):
    producer = script.started()
    partition = harness.node.replicas.partition(STATE_TOPIC, 3)
    for key in (b"", b"\0\7x", struct.pack(">hh", 0, 99)):
        harness.node.replicas.append(partition, build_batch([(key, b"?")], NOW_MS))
    harness.restart()
    assert harness.node.transactions.unreadable_records == 3
    assert f"{STATE_TOPIC}-3" in caplog.text
    assert script.produce(producer, b"a") == 0


# --- epochs that run out -------------------------------------------------------------------------


def exhausted(harness: NodeHarness, script: TransactionScript, epoch: int) -> Producer:
    """The producer of a transactional id that has used up its epochs."""
    producer = script.started()
    log_image(harness, harness.node.transactions.describe("t")._replace(producer_epoch=epoch))
    harness.restart()
    return Producer(producer.id, epoch)


def test_a_producer_gets_a_new_id_when_its_epochs_have_run_out(script, harness):
    last = exhausted(harness, script, EPOCH_MAX - 1)
    other = script.init(last)
    assert other.id != last.id
    assert (other.epoch, other.error) == (0, 0)
    again = script.init(last)  # it missed the answer
    assert (again.id, again.epoch) == (other.id, 0)
    assert script.init(Producer(last.id, 5)).error == 90


def test_the_last_transaction_of_an_id_ends_with_another_id(script, harness):
    last = exhausted(harness, script, EPOCH_MAX - 1)
    assert script.produce(last, b"a") == 0
    other = script.end(last)
    assert other.id != last.id
    assert (other.epoch, other.error) == (0, 0)
    retried = script.end(last)
    assert (retried.id, retried.epoch, retried.error) == (other.id, 0, 0)
    harness.restart()
    assert script.end(last) == other
    assert script.read() == [b"a"]
    assert script.produce(other, b"b") == 0
    script.end(other)
    assert script.read() == [b"a", b"b"]


def test_the_last_epoch_is_left_for_fencing(script, harness):
    last = exhausted(harness, script, EPOCH_MAX - 1)
    script.produce(last, b"zombie")
    assert script.init().error == 51
    other = script.started()
    assert (other.id != last.id, other.epoch) == (True, 0)
    assert script.read() == []


# --- disks ---------------------------------------------------------------------------------------


def test_a_disk_that_refuses_a_decision_leaves_the_transaction_open(script, harness, monkeypatch):
    producer = script.started()
    script.produce(producer, b"a")
    disk = FailingDisk(monkeypatch)
    disk.refuse(errno.ENOSPC)
    assert script.end(producer).error == 16  # NOT_COORDINATOR: clients retry it
    assert script.init().error == 16
    disk.mend()
    assert script.describe()["state"] == "Ongoing"
    assert script.end(producer).error == 0
    assert script.read() == [b"a"]


def test_a_marker_that_the_disk_refused_is_written_later(script, harness, monkeypatch):
    producer = script.started()
    script.produce(producer, b"a")
    script.produce(producer, b"b", partition=1)
    disk = FailingDisk(monkeypatch)
    decide = harness.node.transactions._write_markers

    def without_disk(transaction):
        disk.refuse(errno.ENOSPC)
        decide(transaction)

    monkeypatch.setattr(harness.node.transactions, "_write_markers", without_disk)
    assert script.end(producer).error == 0
    assert script.describe()["state"] == "PrepareCommit"
    assert script.init().error == 51
    disk.mend()
    harness.advance(1_000)
    assert script.describe()["state"] == "CompleteCommit"
    assert (script.read(0), script.read(1)) == ([b"a"], [b"b"])


def test_nothing_is_answered_before_it_is_synced(tmp_path):
    harness = NodeHarness(tmp_path, log_flush_interval_messages=1)
    script = begin(harness)
    producer = script.started()
    held = harness.node.background = HeldBackground()
    writing = harness.start(produce(script, producer), 12)
    assert not writing.arrived
    assert harness.node.replicas.partition(TOPIC, 0).log_end_offset == 0
    assert script.init().error == 51  # nothing else is decided meanwhile
    held.let_go()  # the partition is in the transaction: now the record may be written
    assert harness.node.replicas.partition(TOPIC, 0).log_end_offset == 1
    assert not writing.arrived
    held.let_go()
    assert writing.response.responses[0].partition_responses[0].error_code == 0

    ending = harness.start(end(script, producer), 5)
    assert not ending.arrived
    held.let_go()
    assert ending.response.producer_epoch == producer.epoch + 1
    assert script.describe()["state"] == "PrepareCommit"
    assert script.read() == []  # the marker is not on disk
    held.let_go()
    assert script.read() == [b"a"]
    held.let_go()
    assert script.describe()["state"] == "CompleteCommit"


def produce(script: TransactionScript, producer: Producer):
    """The request that `script.produce` sends."""
    return caught(script, lambda: script.produce(producer, b"a"))


def end(script: TransactionScript, producer: Producer):
    return caught(script, lambda: script.end(producer))


def caught(script: TransactionScript, act):
    requests = []

    class Caught(Exception):
        pass

    def catch(request, version):
        requests.append(request)
        raise Caught

    ask, script.ask = script.ask, catch
    try:
        act()
    except Caught:
        pass
    finally:
        script.ask = ask
    return requests[0]


def test_the_log_of_transactions_can_be_read_back(script, harness):
    producer = script.started(timeout_ms=1234)
    script.produce(producer, b"a", partition=2)
    image = harness.node.transactions.describe("t")
    key, value = transaction_record(image, 2)
    assert read_transaction(key, value) == ("t", image)
    old = read_transaction(*transaction_record(image, 0))[1]
    assert old == image._replace(previous_producer_id=-1, client_version=0)
