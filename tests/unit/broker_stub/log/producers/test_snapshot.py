"""Snapshot files of producers: Apache Kafka's bytes, and every kind of damage."""

import pytest

from broker_stub.log.producers.producer_state import ProducerEntry, RememberedBatch
from broker_stub.log.producers.snapshot import (
    CorruptSnapshotError,
    decode_snapshot,
    encode_snapshot,
    read_snapshot,
    write_snapshot,
)

# Written by Apache Kafka 4.3: a producer that has ended its transactions.
APACHE = bytes.fromhex(
    "0001 66f4f20c 00000001 0000000000000005 0000 00000011 0000000000000016 00000002"
    " 000001a1e2b4ba48 00000000 ffffffffffffffff"
)


def test_a_snapshot_of_apache_kafka_is_read_and_written_byte_for_byte():
    (entry,) = decode_snapshot(APACHE)
    assert (entry.producer_id, entry.epoch, entry.coordinator_epoch) == (5, 0, 0)
    assert entry.current_txn_first_offset == -1
    (last,) = entry.batches
    assert (last.first_sequence, last.last_sequence) == (15, 17)
    assert (last.first_offset, last.last_offset) == (20, 22)
    assert encode_snapshot([entry]) == APACHE


def test_an_empty_snapshot_has_ten_bytes():
    assert len(encode_snapshot([])) == 10
    assert decode_snapshot(encode_snapshot([])) == []


def test_a_producer_without_batches_survives():
    entry = ProducerEntry(9, 3, last_timestamp=5, current_txn_first_offset=40)
    (found,) = decode_snapshot(encode_snapshot([entry]))
    assert (found.producer_id, found.epoch, found.batches) == (9, 3, [])
    assert (found.last_timestamp, found.current_txn_first_offset) == (5, 40)


@pytest.mark.parametrize("size", range(len(APACHE)))
def test_a_cut_snapshot_is_corrupt(size):
    with pytest.raises(CorruptSnapshotError):
        decode_snapshot(APACHE[:size])


@pytest.mark.parametrize("at", range(len(APACHE)))
def test_a_flipped_bit_is_corrupt(at):
    damaged = bytearray(APACHE)
    damaged[at] ^= 0x40
    with pytest.raises(CorruptSnapshotError):
        decode_snapshot(bytes(damaged))


def test_the_error_names_the_file(tmp_path):
    path = str(tmp_path / "00000000000000000005.snapshot")
    entry = ProducerEntry(1, 0, batches=[RememberedBatch(3, 9, 3, 100)], last_timestamp=100)
    write_snapshot(path, [entry])
    assert read_snapshot(path)[0].batches == entry.batches
    with open(path, "ab") as file:
        file.write(b"x")
    with pytest.raises(CorruptSnapshotError, match=r"00000000000000000005\.snapshot"):
        read_snapshot(path)
