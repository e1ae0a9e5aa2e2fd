"""confluent-kafka's `Message`: what a consumer returns and what a delivery report is about.

Two subclasses hold what they were made from and answer from it, because most programs ask for a
few fields only and a copy of all would cost more than the record did.
"""

from collections.abc import Callable
from typing import Any, Final

from pyclient.compat.confluent.error import MSG_TIMED_OUT, KafkaError, convert
from pyclient.producer.delivery import FutureRecordMetadata
from pyclient.records.record import ConsumerRecord

TIMESTAMP_NOT_AVAILABLE: Final = 0
TIMESTAMP_CREATE_TIME: Final = 1
TIMESTAMP_LOG_APPEND_TIME: Final = 2

Headers = list[tuple[str, bytes | None]]


class Message:
    """A message, or an error in place of one: look at `error()` first."""

    __slots__ = (
        "_error",
        "_headers",
        "_key",
        "_latency",
        "_leader_epoch",
        "_offset",
        "_partition",
        "_source",
        "_timestamp",
        "_topic",
        "_value",
    )

    def __init__(
        self,
        topic: str | None = None,
        partition: int | None = None,
        offset: int | None = None,
        key: Any = None,
        value: Any = None,
        headers: Any = None,
        error: KafkaError | None = None,
        timestamp: tuple[int, int] | None = None,
        latency: float | None = None,
        leader_epoch: int | None = None,
    ) -> None:
        self._source: Any = None
        self._topic = topic
        self._partition = partition
        self._offset = offset
        self._key = key
        self._value = value
        self._headers = headers
        self._error = error
        self._timestamp = timestamp or (TIMESTAMP_NOT_AVAILABLE, 0)
        self._latency = latency
        self._leader_epoch = leader_epoch

    def topic(self) -> str | None:
        """The topic."""
        return self._topic

    def partition(self) -> int | None:
        """The partition."""
        return self._partition

    def offset(self) -> int | None:
        """The offset."""
        return self._offset

    def key(self) -> Any:
        """The key, as bytes."""
        return self._key

    def value(self) -> Any:
        """The value, as bytes; the text of the error if there is one."""
        return self._value if self._error is None else self._error.str().encode()

    def headers(self) -> Headers | None:
        """The headers as (name, bytes) tuples; None if there are none."""
        return self._headers or None

    def error(self) -> KafkaError | None:
        """The error, if this is not a message; or why it was not delivered."""
        return self._error

    def timestamp(self) -> tuple[int, int]:
        """The kind of timestamp (a `TIMESTAMP_` constant), and milliseconds since 1970."""
        return self._timestamp

    def latency(self) -> float | None:
        """Seconds from `produce` to the acknowledgement, in a delivery report."""
        return self._latency

    def leader_epoch(self) -> int | None:
        """The leader's epoch; None if it is not known."""
        return self._leader_epoch

    def set_topic(self, topic: str) -> None:
        """Replace the topic."""
        self._make_own()
        self._topic = topic

    def set_key(self, key: Any) -> None:
        """Replace the key."""
        self._make_own()
        self._key = key

    def set_value(self, value: Any) -> None:
        """Replace the value."""
        self._make_own()
        self._value = value

    def set_headers(self, headers: Any) -> None:
        """Replace the headers."""
        self._make_own()
        self._headers = headers

    def set_error(self, error: KafkaError | None) -> None:
        """Replace the error."""
        self._make_own()
        self._error = error

    def _make_own(self) -> None:
        """Hold the fields here: they are about to change."""

    def __len__(self) -> int:
        value = self.value()
        return 0 if value is None else len(value)

    def __bool__(self) -> bool:
        return True  # also without a value

    def __repr__(self) -> str:
        return (
            f"<Message {self.topic()}-{self.partition()} at {self.offset()}, error={self.error()}>"
        )


class ConsumedMessage(Message):
    """A message that a consumer returns."""

    __slots__ = ()

    _source: ConsumerRecord

    def __init__(self, record: ConsumerRecord) -> None:
        self._source = record

    def topic(self) -> str:
        return self._source.topic

    def partition(self) -> int:
        return self._source.partition

    def offset(self) -> int:
        return self._source.offset

    def key(self) -> Any:
        return self._source.key

    def value(self) -> Any:
        return self._source.value

    def headers(self) -> Headers | None:
        return list(self._source.headers) or None

    def error(self) -> None:
        return None

    def timestamp(self) -> tuple[int, int]:
        kind, timestamp = self._source.timestamp_type, self._source.timestamp
        if timestamp < 0:
            return TIMESTAMP_NOT_AVAILABLE, 0
        return (TIMESTAMP_LOG_APPEND_TIME if kind == 1 else TIMESTAMP_CREATE_TIME), timestamp

    def latency(self) -> None:
        return None

    def leader_epoch(self) -> int | None:
        epoch = self._source.leader_epoch
        return epoch if epoch is not None and epoch >= 0 else None

    def _make_own(self) -> None:
        _copy_fields(self)


OnDelivery = Callable[[KafkaError | None, Message], Any]

Report = tuple[FutureRecordMetadata, OnDelivery | None, bytes | None, bytes | None, Headers | None]
"""A message that was handed over: its future, its callback, key, value and headers."""


class DeliveredMessage(Message):
    """The message of a delivery report."""

    __slots__ = ()

    _source: Report
    _latency: float

    def __init__(self, report: Report, done_ms: float) -> None:
        self._source = report
        self._latency = done_ms

    def topic(self) -> str:
        return self._source[0].topic_partition.topic

    def partition(self) -> int:
        return self._source[0].topic_partition.partition

    def offset(self) -> int | None:
        metadata = self._source[0].value
        return None if metadata is None or metadata.offset < 0 else metadata.offset

    def key(self) -> Any:
        return self._source[2]

    def value(self) -> Any:
        return self._source[3]

    def headers(self) -> Headers | None:
        return self._source[4] or None

    def error(self) -> KafkaError | None:
        error = self._source[0].exception
        return None if error is None else convert(error, timed_out=MSG_TIMED_OUT)

    def timestamp(self) -> tuple[int, int]:
        metadata = self._source[0].value
        sent_ms = self._source[0].timestamp_ms
        if metadata is None or metadata.timestamp == sent_ms:
            return TIMESTAMP_CREATE_TIME, sent_ms
        return TIMESTAMP_LOG_APPEND_TIME, metadata.timestamp

    def latency(self) -> float:
        # Until the fields are copied, the slot has the time at which the batch was done.
        return max(0.0, self._latency - self._source[0].timestamp_ms) / 1000

    def leader_epoch(self) -> None:
        return None

    def _make_own(self) -> None:
        _copy_fields(self)


def _copy_fields(message: Message) -> None:
    """Make it a plain message with fields of its own, so that they can be replaced."""
    fields = {
        "_topic": message.topic(),
        "_partition": message.partition(),
        "_offset": message.offset(),
        "_key": message.key(),
        "_value": message.value(),
        "_headers": message.headers(),
        "_error": message.error(),
        "_timestamp": message.timestamp(),
        "_latency": message.latency(),
        "_leader_epoch": message.leader_epoch(),
    }
    message.__class__ = Message
    message._source = None
    for name, value in fields.items():
        setattr(message, name, value)
