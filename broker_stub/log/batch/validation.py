"""Checks a batch before it is written: whole, undamaged, and within the topic's rules.

A client's records are parsed, because a batch that no consumer can read would block every consumer,
and because the header's max timestamp may be wrong. They are decoded only if the topic has rules
for single records: compaction needs keys, a bound on timestamps needs timestamps. No state; any
thread.
"""

from typing import Final

from broker_stub.log.batch.append_info import AppendOrigin
from broker_stub.log.batch.header import (
    CODEC_MAX,
    BatchHeader,
    put_append_time,
    put_checksum,
    put_max_timestamp,
    read_header,
)
from broker_stub.log.batch.record_rules import check_records, refuse_append_time
from broker_stub.log.log_config import INT64_MAX, LogConfig
from pyclient import _twin
from pyclient.errors import (
    CorruptRecordError,
    InvalidRecordError,
    RecordTooLargeError,
    UnsupportedCodecError,
    UnsupportedCompressionTypeError,
)
from pyclient.records.compression import ExpandsTooFarError, decompress
from pyclient.records.header import CODEC_MASK, CRC_FROM, HEADER_SIZE, LOG_APPEND_TIME, MAGIC

# Records that expand to more are not parsed: one batch must not take that much memory or time.
LOOKED_AT_BYTES: Final = 32 << 20


def split_batches(batches: memoryview) -> list[BatchHeader]:
    """The headers of the batches in a buffer, which must hold nothing else.

    Raises:
        CorruptRecordError: a batch is cut off or fails its checksum.
        InvalidRecordError: a batch is of an old format.
    """
    crc32c = _twin.crc32c
    headers = []
    position, end = 0, len(batches)
    while position < end:
        left = end - position
        if left < HEADER_SIZE:
            raise CorruptRecordError(f"{left} bytes are too few for a batch", position=position)
        header = read_header(batches, position)
        if header.magic != MAGIC:
            raise InvalidRecordError(
                f"the batch has format {header.magic}; only format {MAGIC} is supported"
            )
        size = header.size
        if not HEADER_SIZE <= size <= left:
            raise CorruptRecordError(
                f"the batch claims {size} of {left} bytes",
                base_offset=header.base_offset,
                position=position,
            )
        if crc32c(batches[position + CRC_FROM : position + size]) != header.checksum:
            raise CorruptRecordError(
                "the batch fails its checksum", base_offset=header.base_offset, position=position
            )
        headers.append(header)
        position += size
    if not headers:
        raise InvalidRecordError("the request has no batch to append")
    return headers


def check_batch(header: BatchHeader, config: LogConfig, origin: AppendOrigin) -> None:
    """Refuse a batch whose header breaks a rule.

    Raises:
        RecordTooLargeError: it is larger than `max.message.bytes`.
        InvalidRecordError: its fields contradict each other, or a client may not write it.
        UnsupportedCompressionTypeError: its codec is unknown.
    """
    if header.size > config.max_message_bytes:
        raise RecordTooLargeError(
            f"the batch has {header.size} bytes, max.message.bytes is {config.max_message_bytes}",
            size=header.size,
            limit=config.max_message_bytes,
        )
    if header.attributes & CODEC_MASK > CODEC_MAX:
        raise UnsupportedCompressionTypeError(
            f"unknown compression codec {header.attributes & CODEC_MASK}"
        )
    if header.record_count <= 0 or header.record_count != header.last_offset_delta + 1:
        raise InvalidRecordError(
            f"the batch has {header.record_count} records and a last offset delta of "
            f"{header.last_offset_delta}"
        )
    if origin is not AppendOrigin.CLIENT:
        return
    if header.producer_id >= 0 and (header.producer_epoch < 0 or header.base_sequence < 0):
        raise InvalidRecordError(
            f"producer {header.producer_id} sends epoch {header.producer_epoch} and sequence "
            f"{header.base_sequence}"
        )
    if header.is_control:
        raise InvalidRecordError("clients may not write control records")
    if header.is_transactional and header.producer_id < 0:
        raise InvalidRecordError("a transactional batch needs a producer id")
    if header.base_offset != 0:
        raise InvalidRecordError(f"the batch has base offset {header.base_offset}, not 0")


def check_structure(batch: memoryview, header: BatchHeader) -> int:
    """Refuse a batch whose records do not match its header; returns their latest timestamp.

    The header is trusted if the codec's library is not installed, or if the records expand too far.

    Raises:
        InvalidRecordError: the records are damaged, or do not match the header.
    """
    codec = header.attributes & CODEC_MASK
    try:
        records = batch[HEADER_SIZE:]
        if codec:
            records = memoryview(decompress(codec, records, LOOKED_AT_BYTES))
        decoder = _twin.RecordDecoder(records, header.record_count, 0, header.base_timestamp)
        return decoder.verify_produced()
    except (UnsupportedCodecError, ExpandsTooFarError):
        return header.max_timestamp
    except CorruptRecordError as error:
        # Not CORRUPT_MESSAGE: clients retry that, and a retry would fail too.
        raise InvalidRecordError(str(error)) from error


def set_times(
    batches: memoryview,
    position: int,
    header: BatchHeader,
    latest_ms: int,
    config: LogConfig,
    now_ms: int,
) -> BatchHeader:
    """Apply the topic's timestamp type, and return the header.

    LogAppendTime stamps the batch. With CreateTime, a wrong max timestamp in the header is
    corrected, because lookups by time and retention rely on it.
    """
    if config.uses_append_time:
        put_append_time(batches, position, header.attributes, now_ms)
        return _sealed_again(batches, position, header.size)
    if latest_ms != header.max_timestamp:
        put_max_timestamp(batches, position, latest_ms)
        return _sealed_again(batches, position, header.size)
    return header


def _sealed_again(batches: memoryview, position: int, size: int) -> BatchHeader:
    """Update the checksum of a changed batch, and return its header."""
    checksum = _twin.crc32c(batches[position + CRC_FROM : position + size])
    put_checksum(batches, position, checksum)
    return read_header(batches, position)


def validate(
    batches: memoryview,
    config: LogConfig,
    origin: AppendOrigin,
    now_ms: int,
    topic: str,
    partition: int,
) -> list[BatchHeader]:
    """Check all batches of one append before the first is written; returns their headers.

    Raises:
        KafkaError: as the functions above say, and `record_rules`.
    """
    headers = split_batches(batches)
    if origin is AppendOrigin.CLIENT and len(headers) > 1:
        raise InvalidRecordError(f"a request has one batch per partition, not {len(headers)}")
    decodes = origin is AppendOrigin.CLIENT and (
        config.is_compacted or config.message_timestamp_before_max_ms != INT64_MAX
    )
    position = 0
    for index, header in enumerate(headers):
        check_batch(header, config, origin)
        batch = batches[position : position + header.size]
        latest_ms = header.max_timestamp
        if origin is AppendOrigin.CLIENT:
            latest_ms = check_structure(batch, header)
        if header.attributes & LOG_APPEND_TIME:
            refuse_append_time(header)
        is_late = (
            latest_ms - now_ms > config.message_timestamp_after_max_ms
            and not config.uses_append_time
        )
        if decodes or is_late:
            check_records(batch, config, now_ms, f"{topic}-{partition}", LOOKED_AT_BYTES)
        headers[index] = set_times(batches, position, header, latest_ms, config, now_ms)
        position += header.size
    return headers
