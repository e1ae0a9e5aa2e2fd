"""What a batch must be before it is written; every rule, kept and broken."""

import pytest
from hypothesis import given
from hypothesis import strategies as st

from broker_stub.log.batch import validation as batch_validation
from broker_stub.log.batch.append_info import AppendOrigin
from broker_stub.log.batch.header import read_header
from broker_stub.log.batch.record_rules import (
    RECORD_ERRORS_MAX,
    InvalidRecordsError,
    InvalidTimestampsError,
)
from broker_stub.log.batch.validation import validate
from pyclient import _twin
from pyclient.errors import (
    CorruptRecordError,
    InvalidRecordError,
    InvalidTimestampError,
    RecordTooLargeError,
    UnsupportedCodecError,
    UnsupportedCompressionTypeError,
)
from pyclient.records.batch import RecordBatch
from pyclient.records.compression import Codec
from pyclient.records.header import HEADER
from tests.support.logs import NOW_MS, batch, config


def check(batches: bytes, origin: AppendOrigin = AppendOrigin.CLIENT, **values):
    return validate(memoryview(bytearray(batches)), config(**values), origin, NOW_MS, "orders", 0)


def changed(**fields: int) -> bytearray:
    """A batch with other header fields, and a checksum that is right again."""
    buffer = batch(b"a", b"b")
    HEADER.pack_into(buffer, 0, *read_header(buffer)._replace(**fields))
    checksum = _twin.crc32c(memoryview(buffer)[21:])
    HEADER.pack_into(buffer, 0, *read_header(buffer)._replace(checksum=checksum))
    return buffer


def restamped(max_timestamp: int, **values) -> bytearray:
    """A batch of two records whose header claims another latest timestamp."""
    buffer = batch(b"a", b"b", **values)
    HEADER.pack_into(buffer, 0, *read_header(buffer)._replace(max_timestamp=max_timestamp))
    return sealed(buffer)


def test_a_good_batch_passes_and_gives_its_header():
    buffer = batch(b"a", b"b")
    assert check(buffer) == [read_header(buffer)]


@pytest.mark.parametrize("at", [17, 21, 35, 60, -1])
def test_a_flipped_bit_behind_the_checksum_is_found(at):
    buffer = batch(b"a", b"b")
    buffer[at] ^= 0x10
    with pytest.raises(CorruptRecordError, match="checksum"):
        check(buffer)


@pytest.mark.parametrize("size", [1, 60, 61, 70])
def test_a_cut_batch_is_corrupt(size):
    with pytest.raises(CorruptRecordError):
        check(batch(b"a" * 100)[:size])


def test_bytes_after_the_batch_are_corrupt():
    with pytest.raises(CorruptRecordError, match="3 bytes are too few for a batch"):
        check(batch(b"a") + b"xyz")


@pytest.mark.parametrize("length", [-2147483648, -1, 0, 48, 2147483647])
def test_a_length_that_cannot_be_is_corrupt(length):
    with pytest.raises(CorruptRecordError, match="claims"):
        check(changed(batch_length=length))


def test_no_batch_at_all_is_invalid():
    with pytest.raises(InvalidRecordError, match="no batch"):
        check(b"")


@pytest.mark.parametrize("magic", [0, 1, 3])
def test_another_format_is_invalid(magic):
    with pytest.raises(InvalidRecordError, match=f"format {magic}"):
        check(changed(magic=magic))


def test_a_client_sends_one_batch_per_partition():
    with pytest.raises(InvalidRecordError, match="one batch per partition, not 2"):
        check(batch() + batch())
    assert len(check(batch() + batch(), AppendOrigin.COORDINATOR)) == 2


def test_a_batch_above_max_message_bytes_is_too_large_and_says_by_how_much():
    buffer = batch(bytes(100))
    with pytest.raises(RecordTooLargeError) as caught:
        check(buffer, max_message_bytes=len(buffer) - 1)
    assert (caught.value.size, caught.value.limit) == (len(buffer), len(buffer) - 1)
    assert check(buffer, max_message_bytes=len(buffer))


@pytest.mark.parametrize(
    "fields",
    [
        {"record_count": 0},
        {"record_count": -1},
        {"record_count": 3},
        {"last_offset_delta": 5},
        {"last_offset_delta": -1},
        {"base_offset": 4},
        {"producer_id": 7, "producer_epoch": 0, "base_sequence": -1},
        {"producer_id": 7, "producer_epoch": -1, "base_sequence": 0},
        {"attributes": 0x20},
    ],
)
def test_headers_that_contradict_themselves_or_claim_too_much_are_invalid(fields):
    with pytest.raises(InvalidRecordError):
        check(changed(**fields))


def test_an_unknown_codec_is_refused():
    with pytest.raises(UnsupportedCompressionTypeError, match="codec 6"):
        check(changed(attributes=6))


def test_a_transactional_batch_needs_a_producer():
    with pytest.raises(InvalidRecordError, match="needs a producer id"):
        check(changed(attributes=0x10, producer_id=-1))


def test_a_timestamp_too_far_ahead_is_invalid():
    ahead = batch(b"a", timestamps=[NOW_MS + 3_600_001])
    with pytest.raises(InvalidTimestampError, match="invalid timestamp"):
        check(ahead)
    assert check(ahead, message_timestamp_type="LogAppendTime")


def test_a_timestamp_too_far_ahead_is_found_inside_the_batch():
    ahead = restamped(NOW_MS, timestamps=[NOW_MS, NOW_MS + 3_600_001])
    with pytest.raises(InvalidTimestampsError) as refused:
        check(ahead)
    (late,) = refused.value.record_errors
    assert late.batch_index == 1
    assert f"Timestamp {NOW_MS + 3_600_001} of message with offset 1" in late.message


@pytest.mark.parametrize("claimed", [-1, 0, 5, NOW_MS + 10**9, 2**63 - 1])
@pytest.mark.parametrize("codec", [Codec.NONE, Codec.GZIP])
@pytest.mark.parametrize("times", [[NOW_MS, NOW_MS + 7], [NOW_MS + 7, NOW_MS], [-1, -1]])
def test_the_header_gets_the_latest_timestamp_of_the_records(claimed, codec, times):
    honest = batch(b"a", b"b", timestamps=times, codec=codec)
    buffer = restamped(claimed, timestamps=times, codec=codec)
    (header,) = validate(memoryview(buffer), config(), AppendOrigin.CLIENT, NOW_MS, "orders", 0)
    assert header == read_header(buffer) == read_header(honest)
    assert header.max_timestamp == max(times)
    assert buffer == honest
    RecordBatch(buffer).check_crc()


def test_a_header_whose_records_nobody_looks_at_is_believed(monkeypatch):
    monkeypatch.setattr(batch_validation, "LOOKED_AT_BYTES", 10)
    buffer = restamped(NOW_MS + 5, timestamps=[NOW_MS, NOW_MS], codec=Codec.GZIP)
    assert check(buffer)[0].max_timestamp == NOW_MS + 5


def test_a_timestamp_too_far_behind_is_found_inside_the_batch():
    old = batch(b"new", b"old", timestamps=[NOW_MS, NOW_MS - 1001])
    assert check(old)
    with pytest.raises(InvalidTimestampsError) as refused:
        check(old, message_timestamp_before_max_ms=1000)
    assert [one.batch_index for one in refused.value.record_errors] == [1]
    assert check(old, message_timestamp_before_max_ms=1001)


def test_a_record_without_a_time_is_never_too_old():
    assert check(batch(b"a", timestamps=[-1]), message_timestamp_before_max_ms=1000)


def test_a_producer_does_not_stamp_batches_as_the_broker_would():
    with pytest.raises(InvalidTimestampsError) as refused:
        check(batch(b"a", b"b", log_append_time_ms=NOW_MS))
    assert [one.batch_index for one in refused.value.record_errors] == [0, 1]


@pytest.mark.parametrize("codec", range(5))
def test_a_compacted_topic_refuses_records_without_a_key(codec):
    with pytest.raises(InvalidRecordError, match="key"):
        check(batch(b"a", key=None, codec=codec), cleanup_policy=["compact"])
    assert check(batch(b"a", codec=codec), cleanup_policy=["compact"])


# --- the records inside --------------------------------------------------------------------------


def sealed(buffer: bytearray) -> bytearray:
    """With a checksum that is right, whatever was done to it."""
    checksum = _twin.crc32c(memoryview(buffer)[21:])
    HEADER.pack_into(buffer, 0, *read_header(buffer)._replace(checksum=checksum))
    return buffer


@pytest.mark.parametrize("codec", list(Codec))
def test_records_of_every_codec_are_looked_at(codec):
    buffer = batch(*(b"value %d" % number for number in range(50)), codec=codec)
    assert check(buffer)[0].record_count == 50
    fewer = read_header(buffer)._replace(record_count=49, last_offset_delta=48)
    HEADER.pack_into(buffer, 0, *fewer)
    with pytest.raises(InvalidRecordError, match="bytes lie behind its last record"):
        check(sealed(buffer))


@pytest.mark.parametrize("codec", [codec for codec in Codec if codec])
def test_what_does_not_expand_is_invalid(codec):
    buffer = batch(b"plain")
    HEADER.pack_into(buffer, 0, *read_header(buffer)._replace(attributes=codec))
    with pytest.raises(InvalidRecordError, match="damaged"):
        check(sealed(buffer))


@given(at=st.integers(61, 160), value=st.integers(0, 255))
def test_what_is_accepted_can_be_read(at, value):
    buffer = batch(b"one", b"two", b"three", b"four", b"five", b"six", b"seven")
    buffer[min(at, len(buffer) - 1)] = value
    try:
        check(sealed(buffer))
    except InvalidRecordError:
        return
    assert [record.offset for record in RecordBatch(buffer).decode()] == [*range(7)]


def test_what_expands_very_far_is_believed(monkeypatch):
    monkeypatch.setattr(batch_validation, "LOOKED_AT_BYTES", 1000)
    buffer = batch(b"x" * 2000, codec=Codec.GZIP)
    assert check(buffer)[0].record_count == 1


@pytest.mark.parametrize(
    "rules", [{"cleanup_policy": ["compact"]}, {"message_timestamp_before_max_ms": 1000}]
)
def test_what_expands_very_far_is_refused_for_good_where_each_record_counts(monkeypatch, rules):
    monkeypatch.setattr(batch_validation, "LOOKED_AT_BYTES", 1000)
    with pytest.raises(InvalidRecordError, match="expand to more than 1000 bytes"):
        check(batch(b"x" * 2000, codec=Codec.GZIP), **rules)
    assert check(batch(b"x" * 900, codec=Codec.GZIP), **rules)


def test_every_record_is_looked_at_where_each_counts():
    times = [*[NOW_MS] * 2500, NOW_MS - 1001]
    with pytest.raises(InvalidTimestampsError) as refused:
        check(
            batch(*[b"a"] * len(times), timestamps=times, codec=Codec.GZIP),
            message_timestamp_before_max_ms=1000,
        )
    assert [one.batch_index for one in refused.value.record_errors] == [2500]


def test_the_records_at_fault_are_named_up_to_a_bound():
    with pytest.raises(InvalidRecordsError, match="due to 1500 record errors in total") as refused:
        check(batch(*[b"a"] * 1500, key=None), cleanup_policy=["compact"])
    named = refused.value.record_errors
    assert [one.batch_index for one in named] == list(range(RECORD_ERRORS_MAX))
    assert named[0].message.endswith("without key in topic partition orders-0")


def test_what_no_library_here_expands_is_believed(monkeypatch):
    def without_library(*_: object) -> None:
        raise UnsupportedCodecError("codec snappy: no library")

    buffer = batch(b"x", codec=Codec.SNAPPY)
    monkeypatch.setattr(batch_validation, "decompress", without_library)
    assert check(buffer)[0].record_count == 1


def test_what_the_broker_writes_itself_is_not_looked_at():
    buffer = changed(record_count=1, last_offset_delta=0)
    assert check(buffer, AppendOrigin.COORDINATOR)[0].record_count == 1
