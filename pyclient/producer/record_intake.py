"""`send` on the caller's thread: checks, serializers, partitioner, accumulator.

This is the slow path: the native twin (`_native/send.pyx`) handles ordinary records itself.
Thread-safe.
"""

from __future__ import annotations

import operator
import re
from typing import TYPE_CHECKING, Any, Final

from pyclient import _twin
from pyclient.cluster import ClusterMetadata
from pyclient.errors import (
    BrokerResponseError,
    BufferExhaustedError,
    KafkaError,
    KafkaTimeoutError,
    RecordTooLargeError,
)
from pyclient.producer.batch_result import BatchResult
from pyclient.producer.delivery import FutureRecordMetadata
from pyclient.producer.partition_queue import TopicQueues
from pyclient.producer.partitioner import custom_partitioner
from pyclient.serialization import Bytes, Headers, serializer
from pyclient.timers import Deadline
from pyclient.types import TopicPartition

if TYPE_CHECKING:
    from pyclient.config.definition import Config
    from pyclient.producer.core import ProducerCore

_PAYLOAD_TYPES: Final = frozenset((bytes, bytearray, type(None)))
_TIMESTAMP_MAX: Final = 2**63 - 1
_TOPIC_NAME: Final = re.compile(r"(?!\.{1,2}$)[a-zA-Z0-9._-]{1,249}")


class RecordIntake:
    """Accepts the records of one producer.

    Attributes:
        is_plain: no serializers, no custom partitioner: the native fast path applies.
    """

    def __init__(self, config: Config, core: ProducerCore) -> None:
        self._serialize_key = serializer(config["key.serializer"])
        self._serialize_value = serializer(config["value.serializer"])
        self._partitioner = custom_partitioner(config["partitioner"])
        self._ignores_keys: bool = config["partitioner.ignore.keys"]
        self._max_block_ms: int = config["max.block.ms"]
        self._core = core
        self._clock = core.engine.clock
        self.accumulator = core.accumulator
        self.is_plain = (
            self._serialize_key is None
            and self._serialize_value is None
            and self._partitioner is None
            and not self._ignores_keys
        )

    def send(
        self,
        topic: str,
        value: Any,
        key: Any,
        headers: Headers | None,
        partition: int | None,
        timestamp_ms: int | None,
    ) -> FutureRecordMetadata:
        """Publish a record; see `KafkaProducer.send`."""
        if not self._core.is_usable:
            self._core.check_usable("send()")
        if self._core.transactions is not None:
            self._core.transactions.check_may_send()
        if value is None and key is None:
            raise ValueError("a record needs a key or a value")
        key_bytes, value_bytes = key, value
        if self._serialize_key is not None:
            try:
                key_bytes = self._serialize_key(topic, headers or (), key)
            except Exception as error:
                _note(error, "key", key, topic)
                raise
        if self._serialize_value is not None:
            try:
                value_bytes = self._serialize_value(topic, headers or (), value)
            except Exception as error:
                _note(error, "value", value, topic)
                raise
        if key_bytes.__class__ not in _PAYLOAD_TYPES:
            key_bytes = _to_bytes("key", key_bytes, self._serialize_key is not None)
        if value_bytes.__class__ not in _PAYLOAD_TYPES:
            value_bytes = _to_bytes("value", value_bytes, self._serialize_value is not None)
        headers_size = -1 if not headers else _headers_size(headers)
        timestamp_ms = self.timestamp(timestamp_ms)

        max_block_ms: float = self._max_block_ms
        try:
            queues = self.accumulator.topics.get(topic)
            if queues is None:
                queues, max_block_ms = self._find_topic(topic)
            if partition is None:
                if self._partitioner is not None:
                    cluster = ClusterMetadata(self._core.engine.metadata.snapshot)
                    partition = self._partitioner(
                        topic, key, key_bytes, value, value_bytes, cluster
                    )
                    if partition is None:
                        raise ValueError(f"the partitioner returned None for topic {topic!r}")
                    partition = self._checked_partition(queues, partition)
                elif key_bytes is not None and not self._ignores_keys:
                    partition = _twin.partition_for_key(key_bytes, queues.partition_count)
            else:
                partition = self._checked_partition(queues, partition)
            result, index = self.accumulator.append(
                queues, partition, timestamp_ms, key_bytes, value_bytes, headers or (), max_block_ms
            )
        except KafkaError as error:
            result, index = self.refuse(error, topic, partition), 0
        return FutureRecordMetadata(
            result,
            index,
            timestamp_ms,
            -1 if key_bytes is None else len(key_bytes),
            -1 if value_bytes is None else len(value_bytes),
            headers_size,
        )

    def check_may_send(self) -> None:
        """Raise where a transactional producer has no open transaction.

        Raises:
            KafkaError: it has none; says what to do.
        """
        if self._core.transactions is not None:
            self._core.transactions.check_may_send()

    def timestamp(self, timestamp_ms: int | None) -> int:
        """The given timestamp, checked; by default now.

        Raises:
            TypeError: it is not an integer.
            ValueError: it is negative, or does not fit in 64 bits.
        """
        if timestamp_ms is None:
            return self._clock.now_ms()
        timestamp_ms = _integer("timestamp", timestamp_ms)
        if not 0 <= timestamp_ms <= _TIMESTAMP_MAX:
            raise ValueError(f"a timestamp is from 0 to {_TIMESTAMP_MAX}, not {timestamp_ms}")
        return timestamp_ms

    def find_queues(self, topic: str, partition: int | None) -> tuple[TopicQueues, float]:
        """A topic's queues, and how much waiting time is left; checks the partition.

        Raises:
            KafkaError: no metadata of the topic in time, or the producer cannot be used.
            TypeError, ValueError: no such partition, or not a topic name.
        """
        self._core.check_usable("send()")
        queues = self.accumulator.topics.get(topic)
        max_block_ms: float = self._max_block_ms
        if queues is None:
            queues, max_block_ms = self._find_topic(topic)
        if partition is not None:
            self._checked_partition(queues, partition)
        return queues, max_block_ms

    def partitions_for(self, topic: str) -> set[int]:
        """See `KafkaProducer.partitions_for`."""
        self._core.check_usable("partitions_for()")
        check_topic_name(topic)
        engine = self._core.engine
        engine.check_may_wait("partitions_for()")
        return set(range(len(engine.metadata.wait_for_topic(topic, self._max_block_ms).partitions)))

    def _find_topic(self, topic: str) -> tuple[TopicQueues, float]:
        """Wait for a topic's metadata; returns its queues, and how much waiting time is left."""
        check_topic_name(topic)
        engine = self._core.engine
        deadline = Deadline(self._clock, self._max_block_ms)
        while (queues := self.accumulator.add_topic(topic)) is None:
            if engine.on_io_thread():
                engine.metadata.add_topic(topic)
                raise KafkaTimeoutError(
                    f"the metadata of topic {topic!r} is not known yet, and a callback must not"
                    " wait: it runs on the thread that fetches it"
                )
            engine.metadata.wait_for_topic(topic, deadline.remaining_ms())
        return queues, deadline.remaining_ms()

    def _checked_partition(self, queues: TopicQueues, partition: int) -> int:
        if partition.__class__ is not int:
            partition = _integer("partition", partition)
        if 0 <= partition < queues.partition_count:
            return partition
        engine = self._core.engine
        if partition >= 0 and not engine.on_io_thread():  # it may be new
            seen = engine.metadata.snapshot
            engine.metadata.request_update()
            engine.metadata.wait_for_update(seen, self._max_block_ms)
        if not 0 <= partition < queues.partition_count:
            raise ValueError(
                f"topic {queues.name!r} has {queues.partition_count} partitions, numbered from 0:"
                f" there is no partition {partition}"
            )
        return partition

    def refuse(self, error: KafkaError, topic: str, partition: int | None) -> BatchResult:
        """Raise the error, or return a failed result: broker errors go into the future."""
        in_callback = self._core.engine.on_io_thread()
        belongs_in_future = isinstance(error, BrokerResponseError) or (
            in_callback and isinstance(error, KafkaTimeoutError)
        )
        if belongs_in_future and not isinstance(error, RecordTooLargeError):
            return self.failed(error, topic, partition)
        raise self._explained(error) from None

    def failed(self, error: KafkaError, topic: str, partition: int | None) -> BatchResult:
        """A failed result, for records that were not accepted."""
        result = BatchResult(
            TopicPartition(topic, -1 if partition is None else partition), self._core.engine
        )
        result.fail(self._explained(error))
        return result

    def _explained(self, error: KafkaError) -> KafkaError:
        if not isinstance(error, BufferExhaustedError):
            return error
        return BufferExhaustedError(
            f"{error}: {self._core.why_waiting()}", buffered=error.buffered, limit=error.limit
        )


def check_topic_name(topic: object) -> None:
    """Refuse an invalid topic name before a broker is asked about it.

    Raises:
        TypeError, ValueError: it is invalid.
    """
    if not isinstance(topic, str):
        raise TypeError(f"a topic's name is a str, not {type(topic).__name__}")
    if not _TOPIC_NAME.fullmatch(topic):
        raise ValueError(
            f"{topic!r} is not a topic's name: those have up to 249 letters, digits, '.', '_'"
            " and '-'"
        )


def _note(error: Exception, name: str, content: object, topic: str) -> None:
    """Note on a serializer's error which one failed, and on what; tracebacks show it."""
    kind = "None" if content is None else f"a {type(content).__name__}"
    error.add_note(f"{name}_serializer failed; the {name} of the record for {topic!r} is {kind}")


def _integer(name: str, number: object) -> int:
    """An int from any integer type, such as NumPy's."""
    try:
        return operator.index(number)  # type: ignore[arg-type]
    except TypeError:
        raise TypeError(f"a {name} is an int, not {type(number).__name__}") from None


def _to_bytes(name: str, content: object, is_serialized: bool) -> Bytes:
    """The bytes of a key or a value that is not simply `bytes`."""
    if isinstance(content, memoryview):
        plain = content.c_contiguous and content.ndim == content.itemsize == 1
        return content if plain else content.tobytes()
    if isinstance(content, bytes | bytearray):  # a subclass
        return bytes(content)
    kind = type(content).__name__
    if is_serialized:
        raise TypeError(f"{name}_serializer made a {kind} of the {name}, not bytes")
    raise TypeError(f"the {name} is a {kind}, not bytes: encode it, or set {name}_serializer")


def _headers_size(headers: Headers) -> int:
    """Check headers, and count their bytes as `RecordMetadata.serialized_header_size` does."""
    if not isinstance(headers, list | tuple):
        raise TypeError(f"headers are a list of (str, bytes) tuples, not {headers!r}")
    size = 0
    for header in headers:
        if not (isinstance(header, tuple) and len(header) == 2 and isinstance(header[0], str)):
            raise TypeError(f"a header is a (str, bytes) tuple, not {header!r}")
        name, data = header
        if data is not None and not isinstance(data, bytes | bytearray | memoryview):
            raise TypeError(f"the value of header {name!r} is a {type(data).__name__}, not bytes")
        size += len(name.encode()) + (0 if data is None else memoryview(data).nbytes)
    return size
