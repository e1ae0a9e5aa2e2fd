"""What poll returns of the buffer, and what it drops."""

import pytest

from pyclient.consumer.fetch.buffer import FetchBuffer
from pyclient.consumer.fetch.collector import FetchCollector
from pyclient.consumer.fetch.completed_fetch import CompletedFetch
from pyclient.consumer.partition_state import OffsetReset
from pyclient.consumer.subscription_state import SubscriptionState
from pyclient.errors import (
    CorruptRecordError,
    OffsetOutOfRangeError,
    RecordDeserializationError,
    TopicAuthorizationError,
)
from pyclient.records.columns import ColumnsBuilder
from pyclient.records.control import EndTransactionMarker, build_end_transaction_marker
from pyclient.types import TopicPartition
from tests.support.consumer_parts import batch_at, epoch_of, new_metrics, started

P0, P1 = TopicPartition("orders", 0), TopicPartition("orders", 1)


class World:
    """A collector and what it stands on; partitions 0 and 1 are at offset 0."""

    def __init__(self, reset=OffsetReset.EARLIEST, limit_bytes=1_000_000, **options):
        self.subscription = started(SubscriptionState(reset), {P0: 0, P1: 0})
        self.buffer = FetchBuffer(limit_bytes, lambda: None)
        self.rooms = 0
        self.collector = FetchCollector(
            self.buffer, self.subscription, new_metrics(), self._on_room, **options
        )

    def _on_room(self):
        self.rooms += 1

    def put(self, partition, data=b"", *, fetch_offset=0, error=None):
        at = epoch_of(self.subscription, partition)
        if error is not None:
            self.subscription.fail(at)
        self.buffer.put([CompletedFetch(at, fetch_offset, memoryview(data), error=error)])

    def collect(self, max_records=100):
        """Values by partition; the program has got them."""
        collected = self.collector.collect(max_records)
        self.collector.advance(collected)
        self.collector.close()
        return [
            (one.at.partition.partition, [record.value for record in one.records])
            for one in collected
        ]

    def collect_columns(self, builder, *limits):
        rows = self.collector.collect_columns(builder, *limits)
        self.collector.close()
        return rows


def test_records_of_many_partitions_come_up_to_the_limit():
    world = World()
    world.put(P0, batch_at(0, [b"a", b"b"]))
    world.put(P1, batch_at(0, [b"c", b"d"]))
    assert world.collect(3) == [(0, [b"a", b"b"]), (1, [b"c"])]
    assert world.collect(3) == [(1, [b"d"])]
    assert world.collect(3) == []


def test_collecting_moves_no_position_but_says_where_it_would_be():
    world = World()
    world.put(P0, batch_at(0, [b"a", b"b"], leader_epoch=6))
    (collected,) = world.collector.collect(1)
    assert (collected.next_offset, collected.leader_epoch) == (1, 6)
    assert world.subscription.position(P0) == 0


def test_a_fetch_that_is_read_makes_room():
    world = World()
    world.put(P0, batch_at(0, [b"a", b"b"]))
    world.collect(1)
    assert world.rooms == 0
    world.collect(10)
    assert world.rooms == 1
    assert len(world.buffer) == 0


def test_what_was_fetched_before_a_seek_is_dropped():
    world = World()
    world.put(P0, batch_at(0, [b"a"]))
    world.subscription.seek(P0, 5)
    world.put(P0, batch_at(5, [b"f"]), fetch_offset=5)
    assert world.collect() == [(0, [b"f"])]


def test_a_paused_partition_keeps_what_it_has_for_later():
    world = World()
    world.put(P0, batch_at(0, [b"a"]))
    world.put(P1, batch_at(0, [b"b"]))
    world.subscription.pause([P0])
    assert world.collect() == [(1, [b"b"])]
    world.subscription.resume([P0])
    assert world.collect() == [(0, [b"a"])]


def test_batches_without_records_for_the_program_move_the_position_alone():
    world = World()
    marker = build_end_transaction_marker(
        EndTransactionMarker(True, 0), producer_id=1, producer_epoch=0, timestamp_ms=0
    )
    world.put(P0, marker)
    assert world.collect() == []
    assert world.subscription.position(P0) == 1


def test_an_offset_out_of_range_is_reset_as_configured():
    world = World(OffsetReset.EARLIEST)
    world.put(P0, error=OffsetOutOfRangeError())
    assert world.collect() == []
    assert list(world.subscription.to_reset().values()) == [OffsetReset.EARLIEST]


def test_an_offset_out_of_range_is_raised_where_there_is_no_reset():
    world = World(reset=None)
    world.put(P0, error=OffsetOutOfRangeError())
    with pytest.raises(OffsetOutOfRangeError, match=r"offset 0 of orders-0 .* is none"):
        world.collect()
    assert len(world.subscription.fetchable()) == 2  # it is tried again
    assert world.collect() == []


def test_an_error_waits_until_the_records_before_it_were_returned():
    world = World()
    world.put(P0, batch_at(0, [b"a"]))
    world.put(P1, error=TopicAuthorizationError())
    assert world.collect() == [(0, [b"a"])]
    with pytest.raises(TopicAuthorizationError):
        world.collect()


def test_a_damaged_batch_does_not_lose_the_records_of_others():
    world = World()
    damaged = bytearray(batch_at(0, [b"x"]))
    damaged[-1] ^= 1
    world.put(P0, batch_at(0, [b"a"]))
    world.put(P1, bytes(damaged))
    assert world.collect() == [(0, [b"a"])]
    for _ in range(2):
        with pytest.raises(CorruptRecordError):
            world.collect()
    world.subscription.seek(P1, 1)
    assert world.collect() == []


def test_deserializers_get_topic_headers_and_bytes():
    seen = []

    def deserialize(topic, headers, data):
        seen.append((topic, headers, data))
        return data.decode()

    world = World(value_deserializer=deserialize)
    world.put(P0, batch_at(0, [b"a"]))
    (collected,) = world.collector.collect(10)
    assert seen == [("orders", [], b"a")]
    assert (collected.records[0].value, collected.records[0].serialized_value_size) == ("a", 1)


def test_a_record_that_cannot_be_deserialized_stops_there_until_the_program_seeks():
    def deserialize(_topic, _headers, data):
        return int(data)

    world = World(value_deserializer=deserialize)
    world.put(P0, batch_at(0, [b"1", b"two", b"3"]))
    assert world.collect() == [(0, [1])]
    for _ in range(2):
        with pytest.raises(RecordDeserializationError, match="offset 1 of orders-0") as caught:
            world.collect()
        error = caught.value
        assert (error.topic_partition, error.offset, error.value) == (P0, 1, b"two")
        assert (error.timestamp, error.origin) == (1_700_000_000_001, "value")
        assert isinstance(error.__cause__, ValueError)
        assert world.subscription.position(P0) == 1
    world.subscription.seek(P0, 2)
    world.put(P0, batch_at(2, [b"3"]), fetch_offset=2)
    assert world.collect() == [(0, [3])]


def test_columns_take_whole_fetches_and_move_the_positions():
    world = World()
    world.put(P0, batch_at(0, [b"a", b"b"]))
    world.put(P1, batch_at(0, [b"c"]))
    builder = ColumnsBuilder()
    assert world.collect_columns(builder, 1) == 2
    assert world.collect_columns(builder, 1) == 1
    assert builder.finish()["value"].to_pylist() == [b"a", b"b", b"c"]
    assert (world.subscription.position(P0), world.subscription.position(P1)) == (2, 1)
    assert len(world.buffer) == 0


def test_columns_meet_errors_as_records_do():
    world = World(reset=None)
    world.put(P0, batch_at(0, [b"a"]))
    world.put(P1, error=OffsetOutOfRangeError())
    builder = ColumnsBuilder()
    assert world.collect_columns(builder, 10**6) == 1
    with pytest.raises(OffsetOutOfRangeError):
        world.collect_columns(builder, 10**6)


def marker(offset):
    data = bytearray(
        build_end_transaction_marker(
            EndTransactionMarker(True, 0), producer_id=1, producer_epoch=0, timestamp_ms=0
        )
    )
    data[:8] = offset.to_bytes(8, "big")
    return bytes(data)


def test_a_marker_moves_the_position_only_with_the_records_before_it():
    world = World()
    world.put(P0, batch_at(0, [b"a", b"b"]))
    world.put(P0, marker(2), fetch_offset=2)
    (collected,) = world.collector.collect(100)
    assert world.subscription.position(P0) == 0  # the program has nothing yet
    assert collected.next_offset == 3
    world.collector.advance([collected])
    assert world.subscription.position(P0) == 3


def test_a_marker_behind_a_full_poll_is_passed_by_the_next_one():
    world = World()
    world.put(P0, batch_at(0, [b"a", b"b"]) + marker(2))
    assert world.collect(2) == [(0, [b"a", b"b"])]
    assert world.collect(2) == []
    assert world.subscription.position(P0) == 3


def test_data_that_does_not_begin_at_the_position_is_dropped_and_fetched_again():
    world = World()
    world.put(P0, batch_at(5, [b"f"]), fetch_offset=5)
    assert world.collect() == []
    assert len(world.buffer) == 0
    target = next(one for one in world.subscription.fetchable() if one.partition == P0)
    assert target.fetch_offset == 0


@pytest.mark.parametrize("failure", [KeyboardInterrupt, SystemExit, GeneratorExit])
def test_records_come_again_after_an_interrupt_in_a_deserializer(failure):
    calls = []

    def deserialize(_topic, _headers, data):
        calls.append(data)
        if len(calls) == 2:
            raise failure
        return data

    world = World(value_deserializer=deserialize)
    world.put(P0, batch_at(0, [b"a", b"b", b"c"]))
    world.put(P0, batch_at(3, [b"d"]), fetch_offset=3)
    with pytest.raises(failure):
        world.collector.collect(100)
    world.collector.recover()
    assert world.subscription.position(P0) == 0
    assert world.collect() == []  # to be fetched again, from the position
    world.put(P0, batch_at(0, [b"a", b"b", b"c"]))
    assert world.collect() == [(0, [b"a", b"b", b"c"])]


def test_a_full_buffer_of_paused_partitions_is_given_up_for_the_others():
    batch = batch_at(0, [b"x" * 100])
    world = World(limit_bytes=len(batch))
    world.put(P0, batch)
    world.subscription.pause([P0])
    assert not world.buffer.has_room()
    assert world.collect() == []
    assert world.buffer.has_room()
    assert world.rooms == 1  # the I/O thread fetches the others
    world.subscription.resume([P0])
    target = next(one for one in world.subscription.fetchable() if one.partition == P0)
    assert target.fetch_offset == 0
    world.put(P0, batch)
    assert world.collect() == [(0, [b"x" * 100])]


def test_columns_stop_at_rows_and_before_end_offsets():
    world = World()
    world.put(P0, batch_at(0, [b"a", b"b", b"c", b"d"]) + marker(4))
    world.put(P1, batch_at(0, [b"e", b"f"]))
    builder = ColumnsBuilder()
    assert world.collect_columns(builder, 10**6, 3, {P0: 2}) == 3
    assert builder.finish()["value"].to_pylist() == [b"a", b"b", b"e"]
    assert (world.subscription.position(P0), world.subscription.position(P1)) == (2, 1)
    assert world.collect_columns(builder, 10**6, 100, {P0: 2, P1: 2}) == 1
    assert world.collect_columns(builder, 10**6, 100, {P0: 5}) == 2
    assert builder.finish()["value"].to_pylist() == [b"f", b"c", b"d"]
    assert world.subscription.position(P0) == 5  # the marker is no record
    assert len(world.buffer) == 0


def test_records_and_columns_take_turns_in_one_batch():
    world = World()
    world.put(P0, batch_at(0, [b"a", b"b", b"c", b"d", b"e"]))
    builder = ColumnsBuilder()
    assert world.collect(1) == [(0, [b"a"])]
    assert world.collect_columns(builder, 10**6, 2) == 2
    assert world.collect(1) == [(0, [b"d"])]
    assert world.collect_columns(builder, 10**6) == 1
    assert builder.finish()["value"].to_pylist() == [b"b", b"c", b"e"]
    assert world.subscription.position(P0) == 5
