"""kafka-python's functions for Kafka's compression codecs, over `pyclient.records`."""

from pyclient.errors import UnsupportedCodecError
from pyclient.records.compression import Codec, compress, decompress


def _is_there(codec: Codec) -> bool:
    try:
        compress(codec, [b""])
    except UnsupportedCodecError:
        return False
    return True


def has_gzip() -> bool:
    """Whether gzip can be used."""
    return _is_there(Codec.GZIP)


def has_snappy() -> bool:
    """Whether snappy can be used."""
    return _is_there(Codec.SNAPPY)


def has_lz4() -> bool:
    """Whether lz4 can be used."""
    return _is_there(Codec.LZ4)


def has_zstd() -> bool:
    """Whether zstd can be used."""
    return _is_there(Codec.ZSTD)


def gzip_encode(payload: bytes, compresslevel: int | None = None) -> bytes:
    """Compress as gzip."""
    return bytes(compress(Codec.GZIP, [payload], compresslevel))


def gzip_decode(payload: bytes) -> bytes:
    """Expand gzip."""
    return bytes(decompress(Codec.GZIP, memoryview(payload)))


def snappy_encode(payload: bytes) -> bytes:
    """Compress as snappy, in the framing that Kafka's clients use."""
    return bytes(compress(Codec.SNAPPY, [payload]))


def snappy_decode(payload: bytes) -> bytes:
    """Expand snappy, with or without that framing."""
    return bytes(decompress(Codec.SNAPPY, memoryview(payload)))


def lz4_encode(payload: bytes) -> bytes:
    """Compress as an lz4 frame."""
    return bytes(compress(Codec.LZ4, [payload]))


def lz4_decode(payload: bytes) -> bytes:
    """Expand an lz4 frame."""
    return bytes(decompress(Codec.LZ4, memoryview(payload)))


def zstd_encode(payload: bytes) -> bytes:
    """Compress as zstd."""
    return bytes(compress(Codec.ZSTD, [payload]))


def zstd_decode(payload: bytes) -> bytes:
    """Expand zstd."""
    return bytes(decompress(Codec.ZSTD, memoryview(payload)))
