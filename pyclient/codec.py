"""kafka-python's module of compression codecs."""

from pyclient.compat.codec import (
    gzip_decode,
    gzip_encode,
    has_gzip,
    has_lz4,
    has_snappy,
    has_zstd,
    lz4_decode,
    lz4_encode,
    snappy_decode,
    snappy_encode,
    zstd_decode,
    zstd_encode,
)

__all__ = [
    "gzip_decode",
    "gzip_encode",
    "has_gzip",
    "has_lz4",
    "has_snappy",
    "has_zstd",
    "lz4_decode",
    "lz4_encode",
    "snappy_decode",
    "snappy_encode",
    "zstd_decode",
    "zstd_encode",
]
