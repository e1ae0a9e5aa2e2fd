"""The codecs: round trips, levels, foreign framings, damage, and bombs."""

import gzip
import importlib
import struct
import sys
import threading
import tracemalloc
import zlib

import cramjam
import lz4.frame
import pytest
import zstandard

from pyclient.errors import CorruptRecordError, UnsupportedCodecError
from pyclient.records import compression
from pyclient.records.compression import LEVELS, Codec, compress, decompress

COMPRESSED = [codec for codec in Codec if codec]
TEXT = b"the quick brown fox jumps over the lazy dog " * 5000
PIECES = [memoryview(TEXT)[:1], memoryview(TEXT)[1:100_000], memoryview(TEXT)[100_000:]]
LIMIT = 1 << 20

# What Python 3.14 brings along; earlier ones have it from a package of the same interface.
STANDARD_ZSTD = "compression.zstd" if sys.version_info >= (3, 14) else "backports.zstd"


@pytest.fixture(autouse=True, params=["zstandard", "the standard library"])
def zstd_library(request: pytest.FixtureRequest, monkeypatch: pytest.MonkeyPatch) -> None:
    """Run every test with both libraries for zstd."""
    if request.param != "zstandard":
        library = importlib.import_module(STANDARD_ZSTD)
        monkeypatch.setitem(sys.modules, "zstandard", None)
        monkeypatch.setitem(sys.modules, "compression.zstd", library)
    monkeypatch.setattr(compression, "_standard_zstd", compression._standard_zstd.__wrapped__)
    used = compression._standard_zstd()
    assert (used is None) == (request.param == "zstandard")


def pack(codec: int, data: bytes, level: int | None = None) -> memoryview:
    return memoryview(compress(codec, [data], level))


@pytest.mark.parametrize("codec", COMPRESSED)
@pytest.mark.parametrize("data", [b"x", TEXT, bytes(range(256)) * 1000])
def test_what_was_compressed_expands_to_the_same(codec: Codec, data: bytes) -> None:
    assert bytes(decompress(codec, pack(codec, data))) == data


@pytest.mark.parametrize("codec", COMPRESSED)
def test_pieces_expand_to_their_sum(codec: Codec) -> None:
    packed = memoryview(compress(codec, PIECES))
    assert bytes(decompress(codec, packed)) == TEXT


@pytest.mark.parametrize(("codec", "lowest"), [(Codec.GZIP, 1), (Codec.LZ4, 1), (Codec.ZSTD, -50)])
def test_levels_change_the_bytes_and_not_the_content(codec: Codec, lowest: int) -> None:
    data = b"".join(b"%d:%d " % (number, number**3) for number in range(10_000))
    low, high = pack(codec, data, lowest), pack(codec, data, LEVELS[codec][-1])
    assert low != high
    assert bytes(decompress(codec, low)) == bytes(decompress(codec, high)) == data


@pytest.mark.parametrize(
    ("codec", "level"),
    [(Codec.GZIP, 10), (Codec.GZIP, 0), (Codec.LZ4, 18), (Codec.ZSTD, 23), (Codec.SNAPPY, 1)],
)
def test_a_level_that_a_codec_does_not_have_is_refused(codec: Codec, level: int) -> None:
    with pytest.raises(ValueError, match=f"no level {level}"):
        compress(codec, [b"x"], level)


def test_the_default_level_of_lz4_is_the_fast_variant_as_in_java() -> None:
    data = b"".join(b"%d:%d " % (number, number**3) for number in range(10_000))
    assert pack(Codec.LZ4, data, 9) == pack(Codec.LZ4, data) != pack(Codec.LZ4, data, 8)


def test_lz4_blocks_are_independent_beyond_one_block() -> None:
    # Apache Kafka refuses linked blocks, which show only where a frame has several.
    for packed in (pack(Codec.LZ4, TEXT), compress(Codec.LZ4, PIECES)):
        assert not lz4.frame.get_frame_info(bytes(packed))["block_linked"]


def test_snappy_is_written_in_xerial_framing() -> None:
    packed = pack(Codec.SNAPPY, TEXT)
    assert packed[:16] == b"\x82SNAPPY\0" + struct.pack(">ii", 1, 1)
    (size,) = struct.unpack_from(">i", packed, 16)
    assert bytes(cramjam.snappy.decompress_raw(packed[20 : 20 + size])) == TEXT[: 32 * 1024]


def test_raw_snappy_is_read_too() -> None:
    assert (
        bytes(decompress(Codec.SNAPPY, memoryview(bytes(cramjam.snappy.compress_raw(TEXT)))))
        == TEXT
    )


def test_gzip_members_in_a_row_are_one_stream() -> None:
    packed = gzip.compress(b"one ") + gzip.compress(b"") + gzip.compress(b"two")
    assert bytes(decompress(Codec.GZIP, memoryview(packed))) == b"one two"


def test_zstd_and_lz4_frames_in_a_row_are_one_stream() -> None:
    zstd = zstandard.compress(b"one ") + zstandard.compress(b"two")
    assert bytes(decompress(Codec.ZSTD, memoryview(zstd))) == b"one two"
    lz4_frames = lz4.frame.compress(b"one ") + lz4.frame.compress(b"two")
    assert bytes(decompress(Codec.LZ4, memoryview(lz4_frames))) == b"one two"


def test_a_zstd_frame_without_its_size_is_read() -> None:
    packed = zstandard.ZstdCompressor(write_content_size=False).compress(TEXT)
    assert bytes(decompress(Codec.ZSTD, memoryview(packed))) == TEXT


@pytest.mark.parametrize("codec", COMPRESSED)
def test_exactly_the_limit_is_allowed_and_one_byte_more_is_not(codec: Codec) -> None:
    packed = pack(codec, TEXT)
    assert bytes(decompress(codec, packed, len(TEXT))) == TEXT
    with pytest.raises(CorruptRecordError, match=f"more than {len(TEXT) - 1} bytes"):
        decompress(codec, packed, len(TEXT) - 1)


BOMB = bytes(64 << 20)


@pytest.mark.parametrize("codec", COMPRESSED)
def test_a_bomb_is_stopped_while_it_expands(codec: Codec) -> None:
    packed = pack(codec, BOMB)
    tracemalloc.start()
    try:
        with pytest.raises(CorruptRecordError, match=f"more than {LIMIT} bytes"):
            decompress(codec, packed, LIMIT)
        assert tracemalloc.get_traced_memory()[1] < 8 * LIMIT
    finally:
        tracemalloc.stop()


def test_a_bomb_of_many_frames_is_stopped_too() -> None:
    for codec, frame in (
        (Codec.GZIP, gzip.compress(bytes(LIMIT))),
        (Codec.LZ4, lz4.frame.compress(bytes(LIMIT))),
        (Codec.ZSTD, zstandard.compress(bytes(LIMIT))),
    ):
        with pytest.raises(CorruptRecordError, match="more than"):
            decompress(codec, memoryview(frame * 3), 2 * LIMIT)


@pytest.mark.parametrize("announced", [b"\xff\xff\xff\xff\x07", b"\x80\x80\x40"])
def test_a_snappy_block_that_announces_too_much_allocates_nothing(announced: bytes) -> None:
    with pytest.raises(CorruptRecordError):
        decompress(Codec.SNAPPY, memoryview(announced + bytes(20)))


@pytest.mark.parametrize("codec", COMPRESSED)
def test_every_cut_is_noticed(codec: Codec) -> None:
    packed = pack(codec, TEXT[:5000])
    whole = bytes(decompress(codec, packed))
    for cut in (*range(min(len(packed), 40)), len(packed) - 1):
        try:
            expanded = bytes(decompress(codec, packed[:cut]))
        except CorruptRecordError:
            continue
        # Nothing at all, and xerial's header alone, are empty streams; a cut is never the whole.
        assert expanded == b""
        assert cut in (0, 16)
    assert whole == TEXT[:5000]


@pytest.mark.parametrize("codec", COMPRESSED)
def test_noise_is_corrupt(codec: Codec) -> None:
    with pytest.raises(CorruptRecordError):
        decompress(codec, memoryview(b"\xff" * 50))


def test_an_unknown_codec_is_corrupt_to_read_and_unsupported_to_write() -> None:
    with pytest.raises(CorruptRecordError, match="codec 6"):
        decompress(6, memoryview(b"x"))
    with pytest.raises(UnsupportedCodecError, match="codec 6"):
        compress(6, [b"x"])


def test_a_missing_library_is_named(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setitem(sys.modules, "lz4", None)
    with pytest.raises(UnsupportedCodecError, match="lz4"):
        compress(Codec.LZ4, [b"x"])
    with pytest.raises(UnsupportedCodecError, match="lz4"):
        decompress(Codec.LZ4, memoryview(b"x"))


def test_zstd_without_any_library_names_the_one_to_install(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setitem(sys.modules, "zstandard", None)
    monkeypatch.setitem(sys.modules, "compression.zstd", None)
    with pytest.raises(UnsupportedCodecError, match="zstandard"):
        compress(Codec.ZSTD, [b"x"])
    with pytest.raises(UnsupportedCodecError, match="zstandard"):
        decompress(Codec.ZSTD, memoryview(b"x"))


def test_the_libraries_for_zstd_read_each_others_frames() -> None:
    theirs = importlib.import_module(STANDARD_ZSTD)
    ours = pack(Codec.ZSTD, TEXT)
    assert theirs.decompress(ours) == zstandard.decompress(ours) == TEXT
    assert theirs.get_frame_info(ours).decompressed_size == len(TEXT)
    assert bytes(decompress(Codec.ZSTD, memoryview(theirs.compress(TEXT)))) == TEXT


def test_isal_is_used_where_it_is_installed(monkeypatch: pytest.MonkeyPatch) -> None:
    used = []

    class Isal:
        error = zlib.error

        @staticmethod
        def decompressobj(wbits: int) -> object:
            used.append(wbits)
            return zlib.decompressobj(wbits)

    class Package:
        isal_zlib = Isal

    monkeypatch.setitem(sys.modules, "isal", Package)
    compression._zlib.cache_clear()
    try:
        assert bytes(decompress(Codec.GZIP, memoryview(gzip.compress(b"x")))) == b"x"
    finally:
        compression._zlib.cache_clear()
    assert used == [31]


@pytest.mark.parametrize("zstd_library", ["zstandard"], indirect=True)
def test_every_thread_has_its_own_zstd_contexts() -> None:
    contexts = []

    def use() -> None:
        packed = pack(Codec.ZSTD, TEXT)
        assert bytes(decompress(Codec.ZSTD, packed)) == TEXT
        contexts.append(compression._zstd_contexts.compressor(3))

    threads = [threading.Thread(target=use) for _ in range(4)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    assert len({id(context) for context in contexts}) == 4
