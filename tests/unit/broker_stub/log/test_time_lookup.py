"""Searching by time agrees with looking at every record."""

from hypothesis import given, settings
from hypothesis import strategies as st

from broker_stub.log import time_lookup
from broker_stub.log.batch.header import put_checksum, put_max_timestamp
from pyclient import _twin
from pyclient.records.compression import Codec
from tests.support.logs import NOW_MS, append, batch, open_log


def test_the_first_record_at_or_after_a_time_is_found_inside_its_batch(tmp_path):
    log = open_log(tmp_path / "orders-0")
    append(log, batch(b"a", b"b", timestamps=[NOW_MS, NOW_MS + 10]), leader_epoch=1)
    append(log, batch(b"c", b"d", timestamps=[NOW_MS + 20, NOW_MS + 30]), leader_epoch=2)
    assert log.lookup_timestamp(0) == (NOW_MS, 0, 1)
    assert log.lookup_timestamp(NOW_MS + 1) == (NOW_MS + 10, 1, 1)
    assert log.lookup_timestamp(NOW_MS + 30) == (NOW_MS + 30, 3, 2)
    assert log.lookup_timestamp(NOW_MS + 31) is None


def test_records_before_the_start_are_not_found(tmp_path):
    log = open_log(tmp_path / "orders-0")
    append(log, batch(b"a", b"b", timestamps=[NOW_MS, NOW_MS + 10]))
    log.delete_records(1)
    assert log.lookup_timestamp(0) == (NOW_MS + 10, 1, 0)


def test_the_latest_timestamp_is_found_wherever_it_is(tmp_path):
    log = open_log(tmp_path / "orders-0", segment_bytes=200)
    assert log.max_timestamp() is None
    for later_ms in (0, 50, 20, 50, 30):
        append(log, batch(b"a", timestamps=[NOW_MS + later_ms]))
    assert log.max_timestamp() == (NOW_MS + 50, 1, 0)


def test_append_times_are_searched_where_the_topic_stamps(tmp_path):
    log = open_log(tmp_path / "orders-0", message_timestamp_type="LogAppendTime")
    for later_ms in (0, 10, 20):
        append(log, batch(b"a", b"b", timestamps=[5, 6]), now_ms=NOW_MS + later_ms)
    assert log.lookup_timestamp(NOW_MS + 1) == (NOW_MS + 10, 2, 0)


@settings(max_examples=60, deadline=None)
@given(
    batches=st.lists(st.lists(st.integers(0, 60), min_size=1, max_size=4), min_size=1, max_size=30),
    restart=st.booleans(),
)
def test_any_search_agrees_with_looking_at_every_record(tmp_path_factory, batches, restart):
    folder = tmp_path_factory.mktemp("log") / "orders-0"
    values = {"segment_bytes": 500, "index_interval_bytes": 100}
    log = open_log(folder, **values)
    timestamps: list[int] = []
    for one in batches:
        append(log, batch(*[b"v"] * len(one), timestamps=[NOW_MS + ms for ms in one]))
        timestamps += [NOW_MS + ms for ms in one]
    if restart:
        log.close()
        log = open_log(folder, clean=True, **values)
    for wanted in range(NOW_MS - 1, NOW_MS + 62):
        expected = next(
            ((ms, offset, 0) for offset, ms in enumerate(timestamps) if ms >= wanted), None
        )
        assert log.lookup_timestamp(wanted) == expected
    latest = max(timestamps)
    assert log.max_timestamp() == (latest, timestamps.index(latest), 0)


def test_a_batch_that_expands_very_far_is_the_answer_as_a_whole(tmp_path, monkeypatch):
    log = open_log(tmp_path / "orders-0")
    append(log, batch(b"old", timestamps=[NOW_MS - 1000]))
    times = [NOW_MS, NOW_MS + 1, NOW_MS + 2]
    append(log, batch(*[b"x" * 2000] * 3, timestamps=times, codec=Codec.GZIP), leader_epoch=3)
    assert log.lookup_timestamp(NOW_MS + 1) == (NOW_MS + 1, 2, 3)
    monkeypatch.setattr(time_lookup, "LOOKED_AT_BYTES", 1000)
    assert log.lookup_timestamp(NOW_MS + 1) == (NOW_MS + 2, 1, 3)
    assert log.max_timestamp() == (NOW_MS + 2, 1, 3)
    log.delete_records(3)
    assert log.lookup_timestamp(NOW_MS + 1) == (NOW_MS + 2, 3, 3)


def test_a_record_far_behind_in_its_batch_is_found(tmp_path):
    log = open_log(tmp_path / "orders-0")
    times = [*[NOW_MS] * 2500, NOW_MS + 1]
    append(log, batch(*[b"a"] * len(times), timestamps=times))
    assert log.lookup_timestamp(NOW_MS + 1) == (NOW_MS + 1, 2500, 0)


def test_a_header_that_lies_about_time_hides_no_record(tmp_path):
    log = open_log(tmp_path / "orders-0")
    buffer = batch(b"a", b"b", timestamps=[NOW_MS, NOW_MS + 1])
    put_max_timestamp(buffer, 0, 5)
    put_checksum(buffer, 0, _twin.crc32c(memoryview(buffer)[21:]))
    append(log, buffer)
    assert log.segments[0].search.max_timestamp == (NOW_MS + 1, 1)
    assert log.lookup_timestamp(NOW_MS + 1) == (NOW_MS + 1, 1, 0)
