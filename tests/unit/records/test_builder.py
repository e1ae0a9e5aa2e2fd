"""Appending, growing, sealing, closing and renumbering a batch."""

import struct
from itertools import pairwise
from types import ModuleType
from typing import Any

import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from pyclient import _twin
from pyclient.records.batch import RecordBatch
from pyclient.records.compression import Codec
from tests.support.batches import CODECS, build_batch, facts, numbered_records

HEADER = 61
TIMESTAMP = 1_700_000_000_000

payloads = st.none() | st.binary(max_size=300)
record_strategy = st.tuples(
    st.integers(-1, 2**63 - 1),
    payloads,
    payloads,
    st.lists(st.tuples(st.text(max_size=20), payloads), max_size=3),
)


def read(parts: list[memoryview]) -> list[Any]:
    return facts(RecordBatch(b"".join(parts)).decode())


@given(records=st.lists(record_strategy, min_size=1, max_size=20), codec=st.sampled_from(CODECS))
@settings(suppress_health_check=[HealthCheck.function_scoped_fixture], deadline=None)
def test_what_was_appended_is_read_again(
    records: list[Any], codec: Codec, twin: ModuleType
) -> None:
    batch = RecordBatch(build_batch(records, codec=codec))
    assert batch.crc_is_valid()
    assert facts(batch.decode()) == records
    assert [record.offset for record in batch.decode()] == list(range(len(records)))
    assert batch.base_timestamp == records[0][0]
    assert batch.max_timestamp == max(record[0] for record in records)


@given(records=st.lists(record_strategy, min_size=1, max_size=20))
@settings(deadline=None)
def test_both_twins_write_the_same_bytes(records: list[Any]) -> None:
    written = []
    for twin in (_twin.load(name)["batch"] for name in _twin.PACKAGES):
        builder = twin.BatchBuilder(bytearray(1 << 16), producer_id=9, base_offset=1 << 40)
        for record in records:
            builder.try_append(*record)
        written.append(b"".join(builder.close()))
    assert written[0] == written[1]


def test_the_widest_gap_between_timestamps_is_kept(twin: ModuleType) -> None:
    timestamps = [-1, 2**63 - 1, 0, 2**63 - 2]
    batch = RecordBatch(build_batch([(timestamp, None, None, []) for timestamp in timestamps]))
    assert [record.timestamp for record in batch.decode()] == timestamps


@given(records=st.lists(record_strategy, min_size=1, max_size=20))
@settings(suppress_health_check=[HealthCheck.function_scoped_fixture], deadline=None)
def test_sizes_are_known_to_the_byte_before_appending(records: list[Any], twin: ModuleType) -> None:
    builder = twin.BatchBuilder(bytearray(1 << 16))
    sizes = [HEADER]
    for record in records:
        announced = builder.size_of(*record)
        builder.try_append(*record)
        sizes.append(builder.raw_size)
        assert sizes[-1] - sizes[-2] == announced
    assert sum(map(len, builder.close())) == builder.size_in_bytes == sizes[-1]
    assert twin.batch_size_of(*records[0][1:]) == sizes[1]
    assert all(later > earlier for earlier, later in pairwise(sizes))


def test_a_record_that_just_fits_is_taken_and_one_byte_more_is_not(twin: ModuleType) -> None:
    size = twin.batch_size_of(b"key", b"value")
    exact = twin.BatchBuilder(bytearray(size))
    assert exact.has_room_for(TIMESTAMP, b"key", b"value")
    assert not exact.has_room_for(TIMESTAMP, b"key", b"value+")
    assert exact.try_append(TIMESTAMP, b"key", b"value+") == -1
    assert exact.try_append(TIMESTAMP, b"key", b"value") == 0
    assert not exact.has_room_for(TIMESTAMP, None, None)


def test_the_limit_counts_over_all_buffers(twin: ModuleType) -> None:
    builder = twin.BatchBuilder(bytearray(100), limit=150)
    assert builder.try_append(TIMESTAMP, None, b"x" * 25) == 0
    assert builder.extend([bytearray(100)])
    assert builder.try_append(TIMESTAMP, None, b"y" * 60) == -1  # the buffer has room for it
    assert builder.try_append(TIMESTAMP, None, b"y" * 40) == 1
    assert sum(map(len, builder.close())) <= 150


def test_a_batch_goes_on_in_further_buffers_and_no_record_straddles_them(
    twin: ModuleType,
) -> None:
    records = numbered_records(60)
    builder = twin.BatchBuilder(bytearray(256))
    buffers = 1
    for record in records:
        if builder.try_append(*record) < 0:
            assert builder.extend([bytearray(256)])
            buffers += 1
            assert builder.try_append(*record) >= 0
    parts = builder.close()
    assert len(parts) == buffers > 2
    assert read(parts) == records
    # The same bytes as in one buffer: where a batch lies does not show on the wire.
    assert b"".join(parts) == build_batch(records)


def test_several_buffers_can_be_had_at_once_and_are_the_builders_then(twin: ModuleType) -> None:
    builder = twin.BatchBuilder(bytearray(256))
    given = [bytearray(256) for _ in range(4)]
    buffers = list(given)
    assert builder.extend(buffers)
    assert buffers == []
    while builder.try_append(TIMESTAMP, None, b"x" * 100) >= 0:
        pass
    assert builder.record_count == 9  # one beside the header, two in each of the others
    assert read(builder.close()) == [(TIMESTAMP, None, b"x" * 100, [])] * 9
    assert {id(buffer) for buffer in builder.release()} > {id(buffer) for buffer in given}


@pytest.mark.parametrize("codec", CODECS)
def test_pieces_compress_as_one_stream(codec: Codec, twin: ModuleType) -> None:
    records = numbered_records(300)
    builder = twin.BatchBuilder(bytearray(1024), codec=codec)
    for record in records:
        if builder.try_append(*record) < 0:
            builder.extend([bytearray(1024)])
            builder.try_append(*record)
    assert read(builder.close()) == records


def test_a_sealed_batch_takes_neither_records_nor_buffers(twin: ModuleType) -> None:
    builder = twin.BatchBuilder(bytearray(1000))
    builder.try_append(TIMESTAMP, None, b"in time")
    assert not builder.is_sealed
    assert builder.seal()
    assert not builder.seal()
    assert builder.is_sealed
    assert builder.try_append(TIMESTAMP, None, b"late") == -1
    assert not builder.has_room_for(TIMESTAMP, None, b"late")
    assert not twin.ListRows(TIMESTAMP, [b"late"]).append_to(builder, None, 0, 1)
    buffers = [bytearray(100)]
    assert not builder.extend(buffers)
    assert len(buffers) == 1
    assert builder.record_count == 1


def test_closing_twice_gives_the_same_parts(twin: ModuleType) -> None:
    builder = twin.BatchBuilder(bytearray(1000))
    builder.try_append(TIMESTAMP, None, b"value")
    assert not builder.is_closed
    assert builder.close() is builder.close()
    assert builder.is_closed


def test_a_batch_without_records_cannot_be_closed(twin: ModuleType) -> None:
    with pytest.raises(ValueError, match="without records"):
        twin.BatchBuilder(bytearray(1000)).close()


def test_size_on_the_wire_is_unknown_before_closing(twin: ModuleType) -> None:
    builder = twin.BatchBuilder(bytearray(1000))
    with pytest.raises(ValueError, match="not closed"):
        builder.size_in_bytes  # noqa: B018
    with pytest.raises(ValueError, match="not closed"):
        builder.compression_ratio  # noqa: B018


@pytest.mark.parametrize("codec", CODECS[1:])
def test_the_compression_ratio_is_that_of_the_batch(codec: Codec, twin: ModuleType) -> None:
    builder = twin.BatchBuilder(bytearray(100_000), codec=codec)
    builder.try_append(TIMESTAMP, None, b"all the same " * 5000)
    size = sum(map(len, builder.close()))
    assert builder.size_in_bytes == size
    assert builder.compression_ratio == size / builder.raw_size < 0.1


def test_every_header_field_is_written(twin: ModuleType) -> None:
    batch = RecordBatch(
        build_batch(
            codec=Codec.LZ4,
            transactional=True,
            control=True,
            log_append_time_ms=77,
            producer_id=1 << 33,
            producer_epoch=5,
            base_sequence=1 << 20,
            base_offset=1 << 50,
            leader_epoch=12,
        )
    )
    assert batch.codec == Codec.LZ4
    assert batch.timestamp_type == 1
    assert (batch.is_transactional, batch.is_control) == (True, True)
    assert (batch.producer_id, batch.producer_epoch, batch.base_sequence) == (1 << 33, 5, 1 << 20)
    assert (batch.base_offset, batch.last_offset, batch.leader_epoch) == (
        1 << 50,
        (1 << 50) + 2,
        12,
    )
    assert {record.timestamp for record in batch.decode()} == {77}
    assert {record.timestamp_type for record in batch.decode()} == {1}


@pytest.mark.parametrize("codec", [Codec.NONE, Codec.GZIP])
def test_numbering_a_closed_batch_renews_its_checksum(codec: Codec, twin: ModuleType) -> None:
    late = twin.BatchBuilder(bytearray(1000), codec=codec)
    late.try_append(TIMESTAMP, b"key", b"value")
    before = b"".join(late.close())
    late.set_producer_state(7, 8, 9)
    after = b"".join(late.close())
    early = twin.BatchBuilder(bytearray(1000), codec=codec)
    early.try_append(TIMESTAMP, b"key", b"value")
    early.seal()
    early.set_producer_state(7, 8, 9)
    assert (late.producer_id, late.producer_epoch, late.base_sequence) == (7, 8, 9)
    assert after == b"".join(early.close())
    assert RecordBatch(after).crc_is_valid()
    assert RecordBatch(after).crc != RecordBatch(before).crc


@pytest.mark.parametrize("codec", [Codec.NONE, Codec.GZIP])
def test_placing_a_closed_batch_leaves_its_checksum(codec: Codec, twin: ModuleType) -> None:
    builder = twin.BatchBuilder(bytearray(1000), codec=codec)
    builder.try_append(TIMESTAMP, b"key", b"value")
    crc = RecordBatch(b"".join(builder.close())).crc
    builder.set_base_offset(1 << 40)
    builder.set_leader_epoch(3)
    placed = RecordBatch(b"".join(builder.close()))
    assert (placed.base_offset, placed.leader_epoch, placed.crc) == (1 << 40, 3, crc)
    assert placed.crc_is_valid()


def test_placing_before_closing_works_too(twin: ModuleType) -> None:
    builder = twin.BatchBuilder(bytearray(1000))
    builder.try_append(TIMESTAMP, None, None)
    builder.set_base_offset(5)
    builder.set_leader_epoch(6)
    batch = RecordBatch(b"".join(builder.close()))
    assert (batch.base_offset, batch.leader_epoch) == (5, 6)


def test_a_held_buffer_cannot_be_resized_and_a_released_one_can(twin: ModuleType) -> None:
    first, second = bytearray(100), bytearray(100)
    builder = twin.BatchBuilder(first)
    builder.extend([second])
    with pytest.raises(BufferError):
        first.clear()
    with pytest.raises(BufferError):
        second.append(0)
    released = builder.release()
    assert released[0] is first
    assert released[1] is second
    first.clear()
    second.append(0)
    assert builder.release() == []


@pytest.mark.parametrize(("codec", "detach"), [(Codec.ZSTD, False), (Codec.NONE, True)])
def test_a_detached_batch_outlives_its_buffers(
    twin: ModuleType, codec: Codec, detach: bool
) -> None:
    records = numbered_records(20)
    buffer = bytearray(10_000)
    builder = twin.BatchBuilder(buffer, codec=codec)
    for record in records:
        builder.try_append(*record)
    assert not builder.is_detached
    parts = builder.close(detach=detach)
    assert builder.is_detached
    assert builder.release() == [buffer]
    buffer[:] = b"\xff" * len(buffer)
    builder.set_producer_state(1, 2, 3)
    assert builder.close() is parts
    batch = RecordBatch(b"".join(parts))
    assert batch.crc_is_valid()
    assert batch.base_sequence == 3
    assert facts(batch.decode()) == records


def test_a_detached_copy_has_the_same_bytes_whatever_buffers_it_came_from(twin: ModuleType) -> None:
    def closed(detach: bool) -> bytes:
        builder = twin.BatchBuilder(bytearray(200))
        for record in numbered_records(5):
            if builder.try_append(*record) < 0:
                builder.extend([bytearray(200)])
                builder.try_append(*record)
        return b"".join(builder.close(detach=detach))

    assert closed(detach=True) == closed(detach=False)


def test_releasing_an_open_batch_drops_what_it_holds(twin: ModuleType) -> None:
    builder = twin.BatchBuilder(bytearray(1000))
    builder.try_append(TIMESTAMP, None, b"value")
    builder.release()
    assert builder.is_sealed
    assert builder.try_append(TIMESTAMP, None, b"value") == -1
    with pytest.raises(ValueError, match="cannot be closed"):
        builder.close()


def test_any_bytes_like_payload_is_copied_at_once(twin: ModuleType) -> None:
    payload = bytearray(b"xabcx")
    view = memoryview(payload)[1:4]
    builder = twin.BatchBuilder(bytearray(1000))
    builder.try_append(TIMESTAMP, view, view, [("header", view)])
    payload[:] = b"?????"
    assert read(builder.close()) == [(TIMESTAMP, b"abc", b"abc", [("header", b"abc")])]


def test_a_payload_counts_in_bytes_whatever_its_items_are(twin: ModuleType) -> None:
    numbers = memoryview(struct.pack("3i", 1, 2, 3)).cast("i")
    builder = twin.BatchBuilder(bytearray(1000))
    assert builder.size_of(TIMESTAMP, None, numbers) == builder.size_of(TIMESTAMP, None, bytes(12))
    builder.try_append(TIMESTAMP, None, numbers)
    assert read(builder.close())[0][2] == bytes(numbers)


@pytest.mark.parametrize(
    "record",
    [
        (TIMESTAMP, "text", None),
        (TIMESTAMP, None, "text"),
        (TIMESTAMP, None, 5),
        (TIMESTAMP, None, None, [("name", "text")]),
        (TIMESTAMP, None, None, [(b"name", b"value")]),
        (TIMESTAMP, None, None, ["ab", 5]),
        ("now", None, None),
        (1.5, None, None),
    ],
)
def test_a_wrong_type_is_refused_and_changes_nothing(record: Any, twin: ModuleType) -> None:
    builder = twin.BatchBuilder(bytearray(1000))
    builder.try_append(TIMESTAMP, b"key", b"value")
    size = builder.raw_size
    with pytest.raises(TypeError):
        builder.try_append(*record)
    assert (builder.record_count, builder.raw_size) == (1, size)


@pytest.mark.parametrize(("timestamp", "error"), [(-2, ValueError), (1 << 63, OverflowError)])
def test_a_timestamp_outside_of_kafkas_range_is_refused(
    timestamp: int, error: type[Exception], twin: ModuleType
) -> None:
    builder = twin.BatchBuilder(bytearray(1000))
    with pytest.raises(error):
        builder.try_append(timestamp, None, None)


@pytest.mark.parametrize(
    ("buffer", "options", "error"),
    [
        (bytearray(60), {}, ValueError),
        (bytearray(100), {"codec": 5}, ValueError),
        (bytearray(100), {"limit": 60}, ValueError),
        (bytes(100), {}, BufferError),
    ],
)
def test_a_builder_that_could_not_work_is_refused(
    buffer: Any, options: Any, error: type[Exception], twin: ModuleType
) -> None:
    with pytest.raises(error):
        twin.BatchBuilder(buffer, **options)


def test_a_buffer_may_be_a_view_of_a_larger_one(twin: ModuleType) -> None:
    arena = bytearray(300)
    builder = twin.BatchBuilder(memoryview(arena)[100:200])
    builder.try_append(TIMESTAMP, b"key", b"value")
    parts = builder.close()
    size = len(parts[0])
    assert bytes(arena) == bytes(100) + bytes(parts[0]) + bytes(200 - size)


def test_the_smallest_record_is_written_byte_by_byte_as_specified(twin: ModuleType) -> None:
    data = build_batch([(5, b"k", b"v", [])])
    assert data[HEADER:] == bytes([16, 0, 0, 0, 2, ord("k"), 2, ord("v"), 0])


def test_small_records_fill_what_is_left_of_a_buffer_before_the_next_one(twin: ModuleType) -> None:
    builder = twin.BatchBuilder(bytearray(100))
    builder.try_append(TIMESTAMP, None, b"x" * 20)
    builder.extend([bytearray(100)])
    assert builder.has_room_for(TIMESTAMP, None, b"y" * 60)
    assert not builder.has_room_for(TIMESTAMP, None, b"y" * 100)
    assert builder.try_append(TIMESTAMP, None, b"z") == 1
    assert builder.try_append(TIMESTAMP, None, b"y" * 60) == 2
    parts = builder.close()
    assert len(parts) == 2
    assert [one.value for one in RecordBatch(b"".join(parts)).decode()] == [
        b"x" * 20,
        b"z",
        b"y" * 60,
    ]


def test_buffers_without_a_record_are_given_back_once_sealed(twin: ModuleType) -> None:
    first, second, third = (bytearray(100) for _ in range(3))
    builder = twin.BatchBuilder(first)
    builder.try_append(TIMESTAMP, None, b"x")
    builder.extend([second])
    builder.extend([third])
    assert builder.release_unused() == []
    builder.seal()
    assert [id(one) for one in builder.release_unused()] == [id(second), id(third)]
    third.append(0)  # nothing points into it any more
    assert builder.release_unused() == []
    assert b"".join(builder.close())
    assert [id(one) for one in builder.release()] == [id(first)]
