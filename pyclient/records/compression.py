"""The codecs of record batches: which there are, how to compress, how to expand within a limit.

A leaf. The libraries are imported on first use, so that a program without compression never loads
one; all of them release the GIL. Nothing is shared between threads but immutable tables: zstd
contexts are per thread, because a shared one crashes.
"""

import importlib
import struct
import threading
import zlib
from collections.abc import Callable, Sequence
from enum import IntEnum
from functools import cache
from typing import Any, Final

from pyclient.errors import CorruptRecordError, UnsupportedCodecError

Buffer = bytes | bytearray | memoryview

MAX_EXPANDED: Final = 256 * 1024 * 1024
"""What a batch may expand to unless the caller says otherwise."""


class ExpandsTooFarError(CorruptRecordError):
    """Records expand to more than the limit; the rest was not expanded."""


class Codec(IntEnum):
    """The codec bits of a batch's attributes."""

    NONE = 0
    GZIP = 1
    SNAPPY = 2
    LZ4 = 3
    ZSTD = 4


LEVELS: Final[dict[int, Sequence[int]]] = {
    Codec.GZIP: (-1, *range(1, 10)),
    Codec.LZ4: range(1, 18),
    Codec.ZSTD: range(-131072, 23),
}
"""The levels that Kafka allows per codec; the others have none."""

_CHUNK: Final = 1 << 20  # how much is expanded between two checks of the limit
_XERIAL_MAGIC: Final = b"\x82SNAPPY\x00"
_XERIAL_HEADER: Final = _XERIAL_MAGIC + struct.pack(">ii", 1, 1)
_XERIAL_BLOCK: Final = 32 * 1024
# A snappy copy of three bytes makes 64 bytes, so a ratio above 22 to 1 is impossible.
_SNAPPY_MAX_RATIO: Final = 22
_LZ4_DEFAULT_LEVEL: Final = 9
_LZ4_MAGIC: Final = b"\x04\x22\x4d\x18"


def compress(codec: int, pieces: Sequence[Buffer], level: int | None = None) -> Buffer:
    """Compress `pieces` as one stream, in order; `level` None is the codec's default.

    Raises:
        UnsupportedCodecError: the codec is unknown, or its library is not installed.
        ValueError: the codec does not have this level.
    """
    if level is not None and level not in LEVELS.get(codec, ()):
        raise ValueError(f"codec {codec} has no level {level}")
    # Joined, because each call releases the GIL, and waiting to get it back takes long.
    data = pieces[0] if len(pieces) == 1 else b"".join(pieces)
    try:
        return _COMPRESSORS[codec](data, level)
    except KeyError:
        raise UnsupportedCodecError(f"there is no compression codec {codec}") from None
    except ImportError as error:
        raise UnsupportedCodecError(f"codec {Codec(codec).name.lower()}: {error}") from error


def decompress(
    codec: int, data: memoryview, max_expanded: int = MAX_EXPANDED, *, magic: int = 2
) -> Buffer:
    """Expand `data`, never to more than `max_expanded` bytes.

    Raises:
        CorruptRecordError: the data is damaged.
        ExpandsTooFarError: it expands to more than the limit.
        UnsupportedCodecError: the codec's library is not installed.
    """
    try:
        expand = _EXPANDERS[codec]
    except KeyError:
        raise CorruptRecordError(f"there is no compression codec {codec}") from None
    try:
        if codec == Codec.LZ4 and magic == 0:
            data = _with_right_lz4_checksum(data)
        return expand(data, max_expanded)
    except ImportError as error:
        raise UnsupportedCodecError(f"codec {Codec(codec).name.lower()}: {error}") from error


def _too_large(max_expanded: int) -> ExpandsTooFarError:
    return ExpandsTooFarError(f"the records expand to more than {max_expanded} bytes")


def _damaged(codec: str, error: object) -> CorruptRecordError:
    return CorruptRecordError(f"the {codec} data is damaged: {error}")


# --- gzip ----------------------------------------------------------------------------------------


@cache  # a failed import takes longer than expanding a batch
def _zlib() -> Any:
    try:
        from isal import isal_zlib
    except ImportError:
        return zlib
    return isal_zlib


def _gzip(data: Buffer, level: int | None) -> Buffer:
    return zlib.compress(data, -1 if level is None else level, 31)


def _gunzip(data: memoryview, max_expanded: int) -> Buffer:
    library = _zlib()
    out = []
    room = max_expanded
    pending: Buffer = data
    try:
        while pending:  # Java reads concatenated members as one stream
            member = library.decompressobj(31)
            while not member.eof:
                expanded = member.decompress(pending, min(room + 1, _CHUNK))
                room -= len(expanded)
                if room < 0:
                    raise _too_large(max_expanded)
                pending = member.unconsumed_tail
                if not expanded and not pending and not member.eof:
                    raise _damaged("gzip", "it ends early")
                out.append(expanded)
            pending = member.unused_data
    except library.error as error:
        raise _damaged("gzip", error) from error
    return out[0] if len(out) == 1 else b"".join(out)


# --- snappy: raw blocks in the xerial framing that Kafka writes ----------------------------------


def _snappy(data: Buffer, _level: int | None) -> Buffer:
    from cramjam import snappy

    out: list[Buffer] = [_XERIAL_HEADER]
    view = memoryview(data)
    for start in range(0, len(view), _XERIAL_BLOCK):
        block = memoryview(snappy.compress_raw(view[start : start + _XERIAL_BLOCK]))
        out += (len(block).to_bytes(4, "big"), block)
    return b"".join(out)


def _unsnappy(data: memoryview, max_expanded: int) -> Buffer:
    if bytes(data[:8]) != _XERIAL_MAGIC:
        return _unsnappy_block(data, max_expanded, max_expanded)
    out = []
    position = len(_XERIAL_HEADER)
    room = max_expanded
    if len(data) < position:
        raise _damaged("snappy", "its header is cut off")
    while position < len(data):
        size = int.from_bytes(data[position : position + 4], "big")
        position += 4
        if size == 0 or size > len(data) - position:
            raise _damaged("snappy", f"a block of {size} bytes, with {len(data) - position} left")
        block = _unsnappy_block(data[position : position + size], room, max_expanded)
        room -= len(block)
        position += size
        out.append(block)
    return out[0] if len(out) == 1 else b"".join(out)


def _unsnappy_block(block: memoryview, room: int, max_expanded: int) -> Buffer:
    from cramjam import DecompressionError, snappy

    # cramjam allocates the announced size, so that is checked first.
    announced = _snappy_length(block)
    if announced > room:
        raise _too_large(max_expanded)
    if announced > len(block) * _SNAPPY_MAX_RATIO:
        raise _damaged("snappy", f"{len(block)} bytes cannot hold {announced}")
    try:
        return memoryview(snappy.decompress_raw(block))
    except DecompressionError as error:
        raise _damaged("snappy", error) from error


def _snappy_length(block: memoryview) -> int:
    length = 0
    for index, byte in enumerate(block[:5]):
        length |= (byte & 0x7F) << (7 * index)
        if byte < 0x80:
            return length
    raise _damaged("snappy", "a block without its length")


# --- lz4 -----------------------------------------------------------------------------------------


def _lz4(data: Buffer, level: int | None) -> Buffer:
    from lz4 import frame

    compressed: bytes = frame.compress(
        data,
        store_size=False,
        block_linked=False,  # Apache Kafka refuses linked blocks
        block_size=frame.BLOCKSIZE_MAX256KB,  # a fifth faster than 64 KB
        # Java's client takes the fast variant at its default level, the other one at the rest.
        compression_level=0 if level in (None, _LZ4_DEFAULT_LEVEL) else level,
    )
    return compressed


def _unlz4(data: memoryview, max_expanded: int) -> Buffer:
    from lz4 import frame

    out = []
    room = max_expanded
    pending: Buffer | None = data
    try:
        while pending:
            decompressor = frame.LZ4FrameDecompressor()
            while not decompressor.eof:
                expanded = decompressor.decompress(pending or b"", min(room + 1, _CHUNK))
                pending = b""
                room -= len(expanded)
                if room < 0:
                    raise _too_large(max_expanded)
                if not expanded and decompressor.needs_input:
                    raise _damaged("lz4", "it ends early")
                out.append(expanded)
            pending = decompressor.unused_data
    except RuntimeError as error:
        raise _damaged("lz4", error) from error
    return out[0] if len(out) == 1 else b"".join(out)


def _with_right_lz4_checksum(data: memoryview) -> memoryview:
    """Correct the header checksum of producers of the first message format.

    They included the frame's magic in it."""
    if len(data) < 7 or bytes(data[:4]) != _LZ4_MAGIC:
        return data
    end = 14 if data[4] & 0x08 else 6  # with or without a content size
    fixed = bytearray(data)
    if end < len(fixed):
        fixed[end] = _xxhash32(bytes(data[4:end])) >> 8 & 0xFF
    return memoryview(fixed)


def _xxhash32(data: bytes) -> int:
    """XXH32 with seed 0 of fewer than 16 bytes: all that a frame descriptor needs."""
    mask = 0xFFFFFFFF
    hashed = (0x165667B1 + len(data)) & mask
    whole = len(data) // 4 * 4
    for (word,) in struct.iter_unpack("<I", data[:whole]):
        hashed = (hashed + word * 0xC2B2AE3D) & mask
        hashed = (hashed << 17 | hashed >> 15) * 0x27D4EB2F & mask
    for byte in data[whole:]:
        hashed = (hashed + byte * 0x165667B1) & mask
        hashed = (hashed << 11 | hashed >> 21) * 0x9E3779B1 & mask
    hashed = (hashed ^ hashed >> 15) * 0x85EBCA77 & mask
    hashed = (hashed ^ hashed >> 13) * 0xC2B2AE3D & mask
    return hashed ^ hashed >> 16


# --- zstd ----------------------------------------------------------------------------------------


class _ZstdContexts(threading.local):
    """Per thread: one compressor for each level, and one decompressor."""

    def __init__(self) -> None:
        self._compressors: dict[int, Any] = {}
        self._decompressor: Any = None

    def compressor(self, level: int) -> Any:
        if level not in self._compressors:
            from zstandard import ZstdCompressor

            self._compressors[level] = ZstdCompressor(level=level)
        return self._compressors[level]

    def decompressor(self) -> Any:
        if self._decompressor is None:
            from zstandard import ZstdDecompressor

            self._decompressor = ZstdDecompressor()
        return self._decompressor


_zstd_contexts = _ZstdContexts()


@cache
def _standard_zstd() -> Any:
    """Python's own zstd (3.14 and later), where `zstandard` is not installed; else None.

    Raises:
        ImportError: neither is there.
    """
    try:
        import zstandard  # noqa: F401
    except ImportError as error:
        try:
            return importlib.import_module("compression.zstd")
        except ImportError:
            raise error from None  # the library to install
    return None


def _zstd(data: Buffer, level: int | None) -> Buffer:
    level = 3 if level is None else level
    library = _standard_zstd()
    compressed: bytes
    if library is None:
        compressed = _zstd_contexts.compressor(level).compress(data)
    else:
        compressed = library.compress(data, level)
    return compressed


def _unzstd(data: memoryview, max_expanded: int) -> Buffer:
    library = _standard_zstd()
    if library is not None:
        return _unzstd_by_standard_library(library, data, max_expanded)
    from zstandard import ZstdError, frame_content_size

    out = []
    room = max_expanded
    try:
        announced = frame_content_size(data) if data else 0
        if announced > max_expanded:
            raise _too_large(max_expanded)
        with _zstd_contexts.decompressor().stream_reader(data, read_across_frames=True) as reader:
            while expanded := reader.read(min(room + 1, _CHUNK)):
                room -= len(expanded)
                if room < 0:
                    raise _too_large(max_expanded)
                out.append(expanded)
    except ZstdError as error:
        raise _damaged("zstd", error) from error
    # The reader ends silently where its input does. Java announces no size: there, records that
    # are cut off tell.
    if max_expanded - room < announced:
        raise _damaged("zstd", "it ends early")
    return out[0] if len(out) == 1 else b"".join(out)


def _unzstd_by_standard_library(library: Any, data: memoryview, max_expanded: int) -> Buffer:
    out = []
    room = max_expanded
    pending: Buffer = data
    try:
        announced = (library.get_frame_info(data).decompressed_size or 0) if data else 0
        if announced > max_expanded:
            raise _too_large(max_expanded)
        while pending:
            frame = library.ZstdDecompressor()
            while not frame.eof:
                expanded = frame.decompress(pending, min(room + 1, _CHUNK))
                pending = b""
                room -= len(expanded)
                if room < 0:
                    raise _too_large(max_expanded)
                if not expanded and frame.needs_input:
                    break  # it is cut off
                out.append(expanded)
            pending = frame.unused_data if frame.eof else b""
    except library.ZstdError as error:
        raise _damaged("zstd", error) from error
    if max_expanded - room < announced:
        raise _damaged("zstd", "it ends early")
    return out[0] if len(out) == 1 else b"".join(out)


_COMPRESSORS: Final[dict[int, Callable[[Buffer, int | None], Buffer]]] = {
    Codec.GZIP: _gzip,
    Codec.SNAPPY: _snappy,
    Codec.LZ4: _lz4,
    Codec.ZSTD: _zstd,
}
_EXPANDERS: Final[dict[int, Callable[[memoryview, int], Buffer]]] = {
    Codec.GZIP: _gunzip,
    Codec.SNAPPY: _unsnappy,
    Codec.LZ4: _unlz4,
    Codec.ZSTD: _unzstd,
}
