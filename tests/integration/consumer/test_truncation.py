"""A broker that lost records in a crash: consumers find out, and go back to where its log differs.

Each record is a batch of its own. The crash takes the last ones; others are written in their
place, under the next leader epoch.
"""

import struct

import pytest

from pyclient import KafkaProducer, OffsetAndMetadata, TopicPartition
from pyclient.errors import LogTruncationError
from pyclient.protocol.messages.offset_for_leader_epoch import OffsetForLeaderEpochRequest

P0 = TopicPartition("orders", 0)
READ, KEPT = 10, 6


@pytest.fixture
def write(kafka_broker):
    def write(numbers):
        with KafkaProducer(bootstrap_servers=kafka_broker.bootstrap_servers) as producer:
            for number in numbers:
                producer.send("orders", b"%d" % number).get(timeout=20)

    return write


@pytest.fixture
def crash(kafka_broker, write):
    """Kill the broker, cut its log, start it again, and write other records."""

    def crash():
        kafka_broker.kill()
        path = kafka_broker.data_dir / "orders-0" / f"{0:020d}.log"
        content = path.read_bytes()
        size = 0
        for _ in range(KEPT):
            size += 12 + struct.unpack_from(">i", content, size + 8)[0]
        path.write_bytes(content[:size])
        kafka_broker.start()
        write(range(100, 100 + READ))

    return crash


@pytest.fixture(autouse=True)
def first_records(kafka_broker, write):
    kafka_broker.create_topic("orders")
    write(range(READ))


OTHERS = [(0, number) for number in range(100, 100 + READ)]


def test_a_consumer_goes_back_to_where_the_log_was_cut(new_consumer, read, crash, caplog):
    consumer = new_consumer("orders")
    assert len(read(consumer, READ)) == READ
    crash()
    assert read(consumer, READ) == OTHERS
    assert "going back to 6" in caplog.text


def test_without_a_reset_the_program_decides(kafka_broker, new_consumer, read, crash):
    consumer = new_consumer(auto_offset_reset="none")
    consumer.assign([P0])
    consumer.seek(P0, 0)
    assert len(read(consumer, READ)) == READ
    crash()
    for _ in range(2):  # again, until the program does something about it
        with pytest.raises(LogTruncationError) as caught:
            read(consumer, READ)
        assert caught.value.divergent_offsets == {P0: OffsetAndMetadata(KEPT, "", 0)}
    consumer.seek(P0, caught.value.divergent_offsets[P0].offset)
    assert read(consumer, READ) == OTHERS


def test_a_committed_offset_is_validated_by_its_epoch(new_consumer, read, crash):
    with new_consumer("orders", group_id="kitchen") as consumer:
        assert len(read(consumer, READ)) == READ
    crash()
    consumer = new_consumer("orders", group_id="kitchen")
    assert consumer.committed(P0, metadata=True) == OffsetAndMetadata(READ, "", 0)
    assert read(consumer, READ) == OTHERS


def test_a_seek_with_an_epoch_is_validated(new_consumer, read, crash):
    crash()
    consumer = new_consumer()
    consumer.assign([P0])
    consumer.seek(P0, OffsetAndMetadata(READ, "", 0))
    assert read(consumer, READ) == OTHERS
    consumer.seek(P0, READ)  # without one, it is believed
    assert read(consumer, KEPT) == OTHERS[READ - KEPT :]


def test_a_log_that_lost_nothing_is_read_on(kafka_broker, new_consumer, read, write, caplog):
    consumer = new_consumer("orders")
    assert len(read(consumer, READ)) == READ
    kafka_broker.kill()
    kafka_broker.start()
    write(range(100, 103))
    assert read(consumer, 3) == OTHERS[:3]
    assert kafka_broker.requests.count(OffsetForLeaderEpochRequest) == 1
    assert "truncated" not in caplog.text


def test_brokers_that_do_not_know_epochs_are_believed(kafka_broker, new_consumer, read, crash):
    kafka_broker.faults.hide(OffsetForLeaderEpochRequest, above=2)  # as before Kafka 2.3
    consumer = new_consumer("orders")
    assert len(read(consumer, READ)) == READ
    crash()
    assert read(consumer, KEPT) == OTHERS[READ - KEPT :]
