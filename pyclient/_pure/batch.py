"""The pure-Python twin of `pyclient._native.batch`: the same names from several files."""

from pyclient._pure.builder import BatchBuilder
from pyclient._pure.checksums import crc32c, murmur2, partition_for_key
from pyclient._pure.columns import ColumnBuffers
from pyclient._pure.cursor import RecordCursor
from pyclient._pure.decoder import RecordDecoder
from pyclient._pure.layout import batch_size_of
from pyclient._pure.record import ConsumerRecord, deserialized
from pyclient._pure.rows import ArrowRows, ListRows

__all__ = [
    "ArrowRows",
    "BatchBuilder",
    "ColumnBuffers",
    "ConsumerRecord",
    "ListRows",
    "RecordCursor",
    "RecordDecoder",
    "batch_size_of",
    "crc32c",
    "deserialized",
    "murmur2",
    "partition_for_key",
]
