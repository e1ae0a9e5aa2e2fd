"""Checks a topic's rules for single records, and names the records that break them.

A compacted topic needs keys; timestamps must be near the broker's clock. The invalid records are
named, so that a producer can fail those and send the others again. No state; any thread.
"""

from collections.abc import Sequence
from typing import Final, NamedTuple

from broker_stub.log.batch.header import NO_TIMESTAMP, BatchHeader
from broker_stub.log.log_config import LogConfig
from pyclient.errors import (
    BrokerResponseError,
    CorruptRecordError,
    InvalidRecordError,
    InvalidTimestampError,
    UnsupportedCodecError,
)
from pyclient.records.batch import RecordBatch
from pyclient.records.record import ConsumerRecord

RECORD_ERRORS_MAX: Final = 1000
"""How many invalid records of a batch are named; the rest are only counted."""

_RECORDS_AT_ONCE: Final = 1000
_SHOWN_MAX: Final = 3


class RecordError(NamedTuple):
    """An invalid record, by its index in the batch."""

    batch_index: int
    message: str


class RefusedRecordsError(BrokerResponseError):
    """A batch was refused because some of its records are invalid.

    Attributes:
        record_errors: the invalid records, at most `RECORD_ERRORS_MAX`.
    """

    def __init__(self, *args: object, record_errors: Sequence[RecordError] = ()) -> None:
        super().__init__(*args)
        self.record_errors = record_errors


class InvalidRecordsError(RefusedRecordsError, InvalidRecordError):
    """Records break a rule of their topic."""


class InvalidTimestampsError(RefusedRecordsError, InvalidTimestampError):
    """Records have timestamps that their topic does not allow; some may break other rules too."""


def check_records(
    batch: memoryview, config: LogConfig, now_ms: int, partition: str, max_expanded: int
) -> None:
    """Decode all records of a batch, and refuse it if some break a rule of the topic.

    Raises:
        InvalidRecordsError: a record has no key, and the topic is compacted.
        InvalidTimestampsError: a record is too far from the broker's clock.
        InvalidRecordError: the records cannot be decoded.
    """
    faults = _Faults(config, now_ms, partition)
    try:
        decoder = RecordBatch(batch).decoder(max_expanded=max_expanded)
        while decoder.remaining:
            faults.look_at(decoder.read(_RECORDS_AT_ONCE))
    except (CorruptRecordError, UnsupportedCodecError) as error:
        # Not CORRUPT_MESSAGE: clients retry that, and a retry would fail too.
        raise InvalidRecordError(
            f"the topic has rules for single records, and these cannot be decoded: {error}"
        ) from error
    faults.check()


def refuse_append_time(header: BatchHeader) -> None:
    """Refuse a client's batch that claims LogAppendTime, with an error for each record.

    Raises:
        InvalidTimestampsError: always.
    """
    message = (
        "Invalid timestamp type in message. Producer should not set timestamp type to "
        "LogAppendTime."
    )
    named = range(min(header.record_count, RECORD_ERRORS_MAX))
    raise _invalid_timestamps([RecordError(index, message) for index in named])


class _Faults:
    """Collects the records of one batch that break a rule."""

    def __init__(self, config: LogConfig, now_ms: int, partition: str) -> None:
        self._needs_keys = config.is_compacted
        self._checks_times = not config.uses_append_time
        self._oldest_ms = now_ms - config.message_timestamp_before_max_ms
        self._latest_ms = now_ms + config.message_timestamp_after_max_ms
        self._partition = partition
        self._seen = 0
        self._total = 0
        self._has_bad_time = False
        self._named: list[RecordError] = []

    def look_at(self, records: Sequence[ConsumerRecord]) -> None:
        for record in records:
            message = self._fault(record)
            if message is not None:
                self._total += 1
                if len(self._named) < RECORD_ERRORS_MAX:
                    self._named.append(RecordError(self._seen, message))
            self._seen += 1

    def _fault(self, record: ConsumerRecord) -> str | None:
        if self._needs_keys and record.key is None:
            return (
                "Compacted topic cannot accept message without key in topic partition "
                f"{self._partition}"
            )
        if not self._checks_times or record.timestamp == NO_TIMESTAMP:
            return None
        if self._oldest_ms <= record.timestamp <= self._latest_ms:
            return None
        self._has_bad_time = True
        return (
            f"Timestamp {record.timestamp} of message with offset {self._seen} is out of range. "
            f"The timestamp should be within [{self._oldest_ms}, {self._latest_ms}]"
        )

    def check(self) -> None:
        if self._has_bad_time:
            raise _invalid_timestamps(self._named)
        if self._total:
            shown = ", ".join(
                f"RecordError(batchIndex={one.batch_index}, message='{one.message}')"
                for one in self._named[:_SHOWN_MAX]
            )
            raise InvalidRecordsError(
                f"One or more records have been rejected due to {self._total} record errors in "
                f"total, and only showing the first three errors at most: [{shown}]",
                record_errors=self._named,
            )


def _invalid_timestamps(record_errors: Sequence[RecordError]) -> InvalidTimestampsError:
    return InvalidTimestampsError(
        "One or more records have been rejected due to invalid timestamp",
        record_errors=record_errors,
    )
