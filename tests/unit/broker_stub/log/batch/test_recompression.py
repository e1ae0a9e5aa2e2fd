"""Batches in the codec of their topic: the same records, the same header but for the codec."""

import pytest
from hypothesis import given
from hypothesis import strategies as st

from broker_stub.log.batch.header import BatchHeader, read_header
from broker_stub.log.batch.recompression import EXPANDED_BYTES_MAX, recompress
from broker_stub.log.log_config import PRODUCER_CODEC, LogConfig
from pyclient.errors import RecordTooLargeError, UnsupportedCompressionTypeError
from pyclient.records import compression
from pyclient.records.batch import RecordBatch
from pyclient.records.builder import BatchBuilder
from pyclient.records.compression import Codec
from pyclient.records.header import CODEC_MASK, HEADER_SIZE
from tests.support.logs import NOW_MS, batch, config

NAMES = {
    Codec.NONE: "uncompressed",
    Codec.GZIP: "gzip",
    Codec.SNAPPY: "snappy",
    Codec.LZ4: "lz4",
    Codec.ZSTD: "zstd",
}
CHANGED = {"batch_length", "checksum", "attributes"}
every_codec = pytest.mark.parametrize("codec", Codec)


def converted(buffer: bytearray, settings: LogConfig) -> tuple[memoryview, list[BatchHeader]]:
    view = memoryview(buffer)
    return recompress(view, [read_header(view)], settings)


def kept(header: BatchHeader) -> dict[str, int]:
    """What conversion must leave alone."""
    fields = {name: value for name, value in header._asdict().items() if name not in CHANGED}
    return {**fields, "flags": header.attributes & ~CODEC_MASK}


blobs = st.one_of(st.none(), st.binary(max_size=300), st.binary(max_size=4).map(lambda x: x * 500))
records = st.tuples(
    st.integers(NOW_MS - 10**6, NOW_MS + 10**6),
    blobs,
    blobs,
    st.lists(st.tuples(st.text(max_size=5), blobs), max_size=2),
)


@given(
    written=st.lists(records, min_size=1, max_size=20),
    source=st.sampled_from(Codec),
    target=st.sampled_from(Codec),
    producer=st.one_of(st.none(), st.tuples(st.integers(0, 2**40), st.integers(0, 2**31 - 1))),
    transactional=st.booleans(),
)
def test_any_batch_keeps_its_records_and_numbers(written, source, target, producer, transactional):
    numbers = {}
    if producer is not None:
        numbers = {"producer_id": producer[0], "producer_epoch": 3, "base_sequence": producer[1]}
    room = bytearray(HEADER_SIZE + 200_000)
    builder = BatchBuilder(room, codec=source, transactional=transactional, **numbers)
    for timestamp, key, value, headers in written:
        assert builder.try_append(timestamp, key, value, headers) >= 0
    buffer = bytearray(b"".join(builder.close()))
    before = read_header(buffer)
    decoded = list(RecordBatch(memoryview(bytes(buffer))).decode())
    view, (header,) = converted(buffer, config(compression_type=NAMES[target]))
    assert kept(header) == kept(before)
    assert header.attributes & CODEC_MASK == target
    assert header.size == len(view)
    after = RecordBatch(view)
    after.check_crc()
    assert list(after.decode()) == decoded


@every_codec
def test_a_batch_in_the_wanted_codec_is_not_touched(codec):
    buffer = batch(b"a" * 100, b"b" * 100, codec=codec)
    before = bytes(buffer)
    level = {} if codec is not Codec.ZSTD else {"compression_zstd_level": 19}
    view, _ = converted(buffer, config(compression_type=NAMES[codec], **level))
    assert view.obj is buffer
    assert bytes(view) == before


@every_codec
def test_the_producers_codec_is_kept_by_default(codec):
    buffer = batch(b"a" * 100, codec=codec)
    view, _ = converted(buffer, config())
    assert config().compression_type == PRODUCER_CODEC
    assert view.obj is buffer


@pytest.mark.parametrize(
    ("codec", "low", "high"), [("gzip", 1, 9), ("lz4", 1, 12), ("zstd", -7, 19)]
)
def test_levels_have_an_effect(codec, low, high):
    text = b"".join(b"%d squared is %d; " % (n, n * n) for n in range(4000))

    def size(level: int) -> int:
        options = {"compression_type": codec, f"compression_{codec}_level": level}
        return len(converted(batch(text), config(**options))[0])

    assert size(high) < size(low) < len(text)


def test_several_batches_are_converted_each_for_itself():
    buffer = bytearray(batch(b"a" * 100) + batch(b"b" * 100, codec=Codec.GZIP))
    view = memoryview(buffer)
    first = read_header(view)
    headers = [first, read_header(view, first.size)]
    made, made_headers = recompress(view, headers, config(compression_type="gzip"))
    assert [one.attributes & CODEC_MASK for one in made_headers] == [Codec.GZIP] * 2
    assert sum(one.size for one in made_headers) == len(made)
    assert made[made_headers[0].size :] == view[first.size :]  # the second was right already


def test_an_uncompressed_control_batch_stays_so():
    buffer = batch(b"\0\0\0\0\0\0", key=b"\0\0\0\1", transactional=True, control=True)
    assert read_header(buffer).is_control
    view, _ = converted(buffer, config(compression_type="gzip"))
    assert view.obj is buffer


def test_what_is_too_large_in_the_topics_codec_is_refused():
    buffer = batch(b"a" * 10_000, codec=Codec.GZIP)
    small = {"compression_type": "uncompressed", "max_message_bytes": 5000}
    with pytest.raises(RecordTooLargeError, match=r"as uncompressed, max\.message\.bytes is 5000"):
        converted(buffer, config(**small))


def test_what_expands_very_far_is_refused():
    buffer = batch(bytes(EXPANDED_BYTES_MAX + 1), codec=Codec.GZIP)
    with pytest.raises(RecordTooLargeError, match="too large to be compressed as zstd"):
        converted(buffer, config(compression_type="zstd"))


def test_a_codec_without_its_library_is_told(monkeypatch):
    def missing(*_arguments):
        raise ImportError("no zstandard")

    monkeypatch.setitem(compression._COMPRESSORS, Codec.ZSTD, missing)
    with pytest.raises(UnsupportedCompressionTypeError, match="no zstandard"):
        converted(batch(b"a"), config(compression_type="zstd"))
