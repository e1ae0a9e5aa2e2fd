"""A disk that refuses, as clients see it: KAFKA_STORAGE_ERROR, and later all that was acked."""

import errno

import pytest

from broker_stub.dispatch import Interceptor
from broker_stub.request import Reply
from pyclient.error_codes import KafkaStorageError
from pyclient.protocol.messages.create_topics import CreatableTopic, CreateTopicsRequest
from pyclient.protocol.messages.delete_topics import DeleteTopicsRequest, DeleteTopicState
from pyclient.protocol.messages.init_producer_id import InitProducerIdRequest
from pyclient.protocol.messages.produce import ProduceRequest
from tests.support.failing_disk import FailingDisk
from tests.support.logs import read_values
from tests.support.node_harness import NodeHarness, batch, produce_request

ERRORS = [errno.ENOSPC, errno.EROFS, errno.EIO]
REFUSED = KafkaStorageError.code
METADATA_LOG = "__cluster_metadata-0/00000000000000000000.log"


@pytest.fixture
def disk(monkeypatch) -> FailingDisk:
    return FailingDisk(monkeypatch)


def numbered(sequence: int) -> bytes:
    return batch(b"%d" % sequence, producer_id=7, producer_epoch=0, base_sequence=sequence)


def produce(harness: NodeHarness, request: ProduceRequest) -> tuple[int, int]:
    """Error code and offset."""
    (outcome,) = harness.ask(request, 9).responses[0].partition_responses
    return outcome.error_code, outcome.base_offset


def values(harness: NodeHarness, topic: str = "orders") -> list[bytes]:
    return list(read_values(harness.node.replicas.partition(topic, 0).log).values())


def create(harness: NodeHarness, name: str) -> int:
    topic = CreatableTopic(name=name, num_partitions=1, replication_factor=1)
    return harness.ask(CreateTopicsRequest(topics=[topic])).topics[0].error_code


@pytest.mark.parametrize("error", ERRORS)
@pytest.mark.parametrize("watched", [True, False])
def test_a_produce_that_the_disk_refuses_fails_by_name_and_can_be_retried(
    harness, disk, error, watched
):
    if watched:
        # With an interceptor, requests go through the codec.
        harness.node.dispatcher.interceptors.append(Interceptor())
    harness.create_topic("orders")
    assert produce(harness, produce_request("orders", numbered(0))) == (0, 0)
    disk.refuse(error, "pwrite", suffix=".log", bytes_before=40)
    assert produce(harness, produce_request("orders", numbered(1))) == (REFUSED, -1)
    assert produce(harness, produce_request("orders", numbered(1))) == (REFUSED, -1)
    disk.mend()
    assert produce(harness, produce_request("orders", numbered(1))) == (0, 1)
    assert produce(harness, produce_request("orders", numbered(1))) == (0, 1)
    harness.restart(clean=False)
    assert values(harness) == [b"0", b"1"]


def test_a_refused_produce_without_acks_closes_the_connection(harness, disk):
    harness.create_topic("orders")
    disk.refuse(errno.ENOSPC)
    reply = harness.submit(produce_request("orders", batch(b"lost"), acks=0), 9)
    assert isinstance(reply, Reply)
    assert (reply.parts, reply.close) == ([], True)


@pytest.mark.parametrize("error", ERRORS)
def test_an_ack_that_waits_for_the_disk_is_not_given_when_the_disk_fails(harness, disk, error):
    harness.create_topic("orders", flush_messages="1")
    assert produce(harness, produce_request("orders", numbered(0))) == (0, 0)
    disk.refuse(error, "fsync", suffix=".log")
    assert produce(harness, produce_request("orders", numbered(1)))[0] == REFUSED
    disk.mend()
    # A retry that was acked now could be gone after a power loss: fsync tells of a failure once.
    assert produce(harness, produce_request("orders", numbered(1)))[0] == REFUSED
    harness.restart(clean=False)
    assert produce(harness, produce_request("orders", numbered(1))) == (0, 1)
    assert values(harness) == [b"0", b"1"]


@pytest.mark.parametrize("error", ERRORS)
@pytest.mark.parametrize("written", [0, 50])
def test_a_change_that_can_not_be_written_is_refused_and_leaves_nothing(
    harness, disk, error, written
):
    assert create(harness, "before") == 0
    disk.refuse(error, "pwrite", suffix=METADATA_LOG, bytes_before=written)
    assert create(harness, "lost") == REFUSED
    assert harness.node.image.topic("lost") is None
    disk.mend()
    assert create(harness, "after") == 0
    harness.restart(clean=False)
    assert {topic.name for topic in harness.node.image.topics()} == {"before", "after"}


def test_no_producer_id_is_given_that_could_be_given_again(harness, disk):
    disk.refuse(errno.EIO, "fsync", suffix=METADATA_LOG)
    request = InitProducerIdRequest(transactional_id=None, transaction_timeout_ms=1000)
    assert harness.ask(request).error_code == REFUSED
    disk.mend()
    assert harness.ask(request).error_code == REFUSED  # until a restart has read what is there
    harness.restart(clean=False)
    assert harness.ask(request).error_code == 0


@pytest.mark.parametrize("error", ERRORS)
@pytest.mark.parametrize("calls", [(), ("fsync",), ("open",)])
def test_a_start_that_the_disk_refuses_says_so_and_leaves_the_folder_free(
    harness, disk, error, calls
):
    harness.create_topic("orders")
    produce(harness, produce_request("orders", batch(b"one")))
    harness.node.abandon()
    disk.refuse(error, *calls, suffix="" if calls != ("open",) else ".index")
    with pytest.raises(KafkaStorageError, match="cannot"):
        harness.node = harness._open()
    assert disk.refused
    disk.mend()
    harness.node = harness._open()
    assert values(harness) == [b"one"]


def test_what_was_kept_is_served_from_a_disk_that_is_full(harness, disk):
    harness.create_topic("orders")
    produce(harness, produce_request("orders", batch(b"one")))
    harness.node.abandon()
    disk.refuse(errno.ENOSPC, "pwrite")
    harness.node = harness._open()
    assert values(harness) == [b"one"]
    assert create(harness, "lost") == REFUSED
    disk.mend()
    assert create(harness, "after") == 0
    harness.restart(clean=False)
    assert {topic.name for topic in harness.node.image.topics()} == {"orders", "after"}


def test_a_deleted_topic_is_gone_although_its_folder_can_not_be_renamed(harness, disk, caplog):
    harness.create_topic("orders")
    produce(harness, produce_request("orders", batch(b"one")))
    disk.refuse(errno.EIO, "rename", suffix="orders-0")
    request = DeleteTopicsRequest(topics=[DeleteTopicState(name="orders")])
    assert harness.ask(request).responses[0].error_code == 0
    assert "the next start tries again" in caplog.text
    disk.mend()
    assert (harness.folder / "orders-0").is_dir()
    harness.restart(clean=False)
    assert not (harness.folder / "orders-0").exists()
    harness.create_topic("orders")
    assert produce(harness, produce_request("orders", batch(b"new"))) == (0, 0)
