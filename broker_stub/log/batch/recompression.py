"""Recompresses batches with their topic's `compression.type`, as Apache Kafka's broker does.

A batch with the right codec stays as it is, at any level, and so does an uncompressed control
batch. Any other is expanded and compressed again; its header fields and the bytes of its records do
not change. Memory is bounded by `EXPANDED_BYTES_MAX`. No state; any thread.
"""

from collections.abc import Sequence
from typing import Final

from broker_stub.log.batch.header import BatchHeader, read_header
from broker_stub.log.batch.rewriting import with_header
from broker_stub.log.log_config import PRODUCER_CODEC, UNCOMPRESSED, LogConfig
from pyclient.errors import (
    CorruptRecordError,
    InvalidRecordError,
    RecordTooLargeError,
    UnsupportedCodecError,
    UnsupportedCompressionTypeError,
)
from pyclient.records.batch import RecordBatch
from pyclient.records.compression import Buffer, Codec, ExpandsTooFarError, compress, decompress
from pyclient.records.header import CODEC_MASK, HEADER_SIZE

EXPANDED_BYTES_MAX: Final = 32 << 20


def target_codec(config: LogConfig) -> Codec | None:
    """The codec of a topic's batches; None if batches keep the codec of their producer."""
    if config.compression_type == PRODUCER_CODEC:
        return None
    if config.compression_type == UNCOMPRESSED:
        return Codec.NONE
    return Codec[config.compression_type.upper()]


def recompress(
    batches: memoryview, headers: Sequence[BatchHeader], config: LogConfig
) -> tuple[memoryview, list[BatchHeader]]:
    """The batches in the topic's codec, with their headers; the same buffer if none changes.

    Raises:
        RecordTooLargeError: a batch exceeds `max.message.bytes` afterwards, or expands too far.
        UnsupportedCompressionTypeError: a codec's library is not installed.
        InvalidRecordError: the records are damaged.
    """
    target = target_codec(config)
    if target is None or all(_stays(header, target) for header in headers):
        return batches, list(headers)
    pieces: list[Buffer] = []
    position = 0
    for header in headers:
        batch = batches[position : position + header.size]
        pieces.append(batch if _stays(header, target) else _converted(batch, target, config))
        position += header.size
    made = memoryview(bytearray(b"".join(pieces)))
    position = 0
    made_headers = []
    for piece in pieces:
        made_headers.append(read_header(made, position))
        position += len(piece)
    return made, made_headers


def _stays(header: BatchHeader, target: Codec) -> bool:
    codec = header.attributes & CODEC_MASK
    return codec == target or (codec == Codec.NONE and header.is_control)


def _converted(content: memoryview, target: Codec, config: LogConfig) -> bytes:
    batch = RecordBatch(content)
    try:
        records: Buffer = content[HEADER_SIZE:]
        if batch.codec:
            records = decompress(batch.codec, content[HEADER_SIZE:], EXPANDED_BYTES_MAX)
        if target is not Codec.NONE:
            records = compress(target, [records], config.compression_level(target))
    except ExpandsTooFarError as error:
        raise RecordTooLargeError(
            f"the batch is too large to be compressed as {config.compression_type}: {error}",
            limit=EXPANDED_BYTES_MAX,
        ) from error
    except UnsupportedCodecError as error:
        raise UnsupportedCompressionTypeError(str(error)) from error
    except CorruptRecordError as error:
        # Not CORRUPT_MESSAGE: clients retry that, and a retry would fail too.
        raise InvalidRecordError(str(error)) from error
    size = HEADER_SIZE + len(records)
    if size > config.max_message_bytes:
        raise RecordTooLargeError(
            f"the batch has {size} bytes as {config.compression_type}, max.message.bytes is "
            f"{config.max_message_bytes}",
            size=size,
            limit=config.max_message_bytes,
        )
    return with_header(
        batch,
        batch.attributes & ~CODEC_MASK | target,
        batch.base_timestamp,
        batch.max_timestamp,
        batch.record_count,
        [records],
    )
