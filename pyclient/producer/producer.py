"""`KafkaProducer`: publish records, with kafka-python's arguments and Kafka's behaviour."""

from __future__ import annotations

import itertools
import re
import warnings
from typing import TYPE_CHECKING, Any, Final

from pyclient import _twin, interceptors
from pyclient.config import producer as producer_config
from pyclient.errors import (
    BrokerResponseError,
    BufferExhaustedError,
    KafkaError,
    KafkaTimeoutError,
    RecordTooLargeError,
)
from pyclient.producer.batch_result import BatchResult
from pyclient.producer.core import ProducerCore
from pyclient.producer.delivery import FutureRecordMetadata
from pyclient.producer.interceptors import ProducerInterceptors
from pyclient.producer.partition_queue import TopicQueues
from pyclient.producer.partitioner import custom_partitioner
from pyclient.serialization import Headers, serializer
from pyclient.timers import Deadline
from pyclient.types import ProducerRecord, TopicPartition

if TYPE_CHECKING:
    from pyclient.net.environment import Environment

_client_ids = itertools.count(1)
_PAYLOAD_TYPES: Final = frozenset((bytes, bytearray, memoryview, type(None)))
_TOPIC_NAME: Final = re.compile(r"(?!\.{1,2}$)[a-zA-Z0-9._-]{1,249}")


class KafkaProducer:
    """Publishes records to a Kafka cluster. Any number of threads may share one.

    `send` hands a record over and returns a future at once; a thread of the producer's own sends
    batches, retries, and runs callbacks. By default every record is acknowledged by all in-sync
    replicas and written once and in order (`acks="all"`, `enable_idempotence=True`).

        with KafkaProducer(bootstrap_servers="localhost:9092") as producer:
            future = producer.send("orders", b"espresso", key=b"table-7")
            print(future.get(timeout=10).offset)

    The options are kafka-python's and Java's: see docs/configuration.md.
    """

    def __init__(self, *, environment: Environment | None = None, **configs: Any) -> None:
        """Connect to the cluster.

        Args:
            environment: another world for the client to live in, for tests and simulation.
            configs: options, as in `linger_ms=20` or `**{"linger.ms": 20}`.

        Raises:
            KafkaConfigurationError: an option is unknown, wrong, or contradicts another.
            NoBrokersAvailable: no broker answered within `bootstrap_timeout_ms`.
        """
        config = producer_config.parse(configs)
        self.config = config
        self._serializers: tuple[Any, ...] = (config["key.serializer"], config["value.serializer"])
        self._serialize_key = serializer(config["key.serializer"])
        self._serialize_value = serializer(config["value.serializer"])
        self._partitioner = custom_partitioner(config["partitioner"])
        self._max_block_ms: int = config["max.block.ms"]
        client_id = config["client.id"] or f"pyclient-producer-{next(_client_ids)}"
        self._interceptors: ProducerInterceptors | None = None
        if config["interceptor.classes"]:
            configs = {**config, "client.id": client_id}
            self._interceptors = ProducerInterceptors(
                interceptors.create(config["interceptor.classes"], configs)
            )
        self._core = ProducerCore(config, client_id, environment)
        self._clock = self._core.engine.clock
        self._accumulator = self._core.accumulator
        self._topics = self._core.accumulator.topics
        self._core.start()
        if config["api.version"] is None:
            try:
                self._core.engine.bootstrap(config["bootstrap.timeout.ms"])
            except BaseException:
                self._core.close(1)  # nothing is under way but attempts to connect
                self._close_plugins()
                raise

    def send(
        self,
        topic: str,
        value: Any = None,
        key: Any = None,
        headers: Headers | None = None,
        partition: int | None = None,
        timestamp_ms: int | None = None,
    ) -> FutureRecordMetadata:
        """Publish a record: hand it over to be sent, in the background, with others.

        Blocks only while the topic's metadata is not known or the buffer is full, at most
        `max_block_ms`. In a callback it never blocks; the future fails instead.

        Args:
            topic: where to.
            value: bytes, or what `value_serializer` takes; None marks a key as deleted.
            key: bytes, or what `key_serializer` takes. Records with equal keys go to the same
                partition.
            headers: a list of (str, bytes) tuples.
            partition: by default the partitioner chooses.
            timestamp_ms: milliseconds since 1970; by default now.

        Returns:
            A future of the record's `RecordMetadata`.

        Raises:
            KafkaTimeoutError: no metadata or no memory within `max_block_ms`; says why.
            RecordTooLargeError: the record is larger than `max_request_size` or `buffer_memory`.
            IllegalStateError: the producer is closed, or this is a forked child.
            TypeError: key or value are not bytes after serialization; headers are malformed.
            ValueError: neither key nor value; no such partition; not a topic's name.
        """
        if self._interceptors is not None:
            record = ProducerRecord(topic, value, key, headers, partition, timestamp_ms)
            return self._interceptors.send(self._send, record)
        return self._send(topic, value, key, headers, partition, timestamp_ms)

    def _send(
        self,
        topic: str,
        value: Any,
        key: Any,
        headers: Headers | None,
        partition: int | None,
        timestamp_ms: int | None,
    ) -> FutureRecordMetadata:
        """Publish a record that has passed the interceptors."""
        if not self._core.is_usable:
            self._core.check_usable("send()")
        if value is None and key is None:
            raise ValueError("a record needs a key or a value")
        key_bytes, value_bytes = key, value
        if self._serialize_key is not None:
            key_bytes = self._serialize_key(topic, headers or (), key)
        if self._serialize_value is not None:
            value_bytes = self._serialize_value(topic, headers or (), value)
        if key_bytes.__class__ not in _PAYLOAD_TYPES or value_bytes.__class__ not in _PAYLOAD_TYPES:
            raise _not_bytes(key_bytes, value_bytes)
        headers_size = -1 if not headers else _headers_size(headers)
        if timestamp_ms is None:
            timestamp_ms = self._clock.now_ms()
        elif timestamp_ms < 0:
            raise ValueError(f"a timestamp cannot be negative: {timestamp_ms}")

        max_block_ms: float = self._max_block_ms
        queues = self._topics.get(topic)
        try:
            if queues is None:
                queues, max_block_ms = self._find_topic(topic)
            if partition is None:
                if self._partitioner is not None:
                    snapshot = self._core.engine.metadata.snapshot
                    partition = self._partitioner(
                        topic, key, key_bytes, value, value_bytes, snapshot
                    )
                    self._check_partition(queues, partition)
                elif key_bytes is not None:
                    hashed = _twin.murmur2(key_bytes) & 0x7FFF_FFFF
                    partition = hashed % queues.partition_count
            else:
                self._check_partition(queues, partition)
            result, index = self._accumulator.append(
                queues, partition, timestamp_ms, key_bytes, value_bytes, headers or (), max_block_ms
            )
        except KafkaError as error:
            result, index = self._refuse(error, topic, partition), 0
        return FutureRecordMetadata(
            result,
            index,
            timestamp_ms,
            (
                -1 if key_bytes is None else len(key_bytes),
                -1 if value_bytes is None else len(value_bytes),
                headers_size,
            ),
        )

    def flush(self, timeout: float | None = None) -> None:
        """Block until every record sent before this call is delivered or has failed.

        Their callbacks have run, too. Records that other threads send meanwhile are not waited
        for. Without a timeout this ends at the latest when `delivery_timeout_ms` is over.

        Raises:
            KafkaTimeoutError: records were still in flight after `timeout` seconds.
            IllegalStateError: called in a callback, or in a forked child.
        """
        self._core.flush(timeout)

    def close(self, timeout: float | None = None) -> None:
        """Send what was handed over, at most for `timeout` seconds, then end.

        Records that are not acknowledged by then fail. Without a timeout this ends at the latest
        when `delivery_timeout_ms` is over. Closing twice does no harm.

        Raises:
            IllegalStateError: called in a callback.
            ValueError: the timeout is negative.
        """
        self._core.close(timeout)
        self._close_plugins()

    def _close_plugins(self) -> None:
        if self._interceptors is not None:
            self._interceptors.close()
        for one in self._serializers:
            close = getattr(one, "close", None)
            if callable(close):
                close()
        self._serializers = ()

    def partitions_for(self, topic: str) -> set[int]:
        """The partitions of a topic; waits for its metadata, at most `max_block_ms`.

        Raises:
            KafkaTimeoutError: there is no metadata; says why.
            IllegalStateError: the producer cannot be used, or this is a callback.
        """
        self._core.check_usable("partitions_for()")
        engine = self._core.engine
        engine.check_may_wait("partitions_for()")
        return set(range(len(engine.metadata.wait_for_topic(topic, self._max_block_ms).partitions)))

    def metrics(self) -> dict[str, dict[str, float]]:
        """The producer's figures, by group and Kafka's name."""
        return self._core.metrics.snapshot()

    def bootstrap_connected(self) -> bool:
        """Whether a broker has answered so far."""
        return self._core.engine.metadata.snapshot.version > 0

    def _find_topic(self, topic: str) -> tuple[TopicQueues, float]:
        """Wait for a topic's metadata; its queues, and how long the caller may still wait."""
        if not isinstance(topic, str):
            raise TypeError(f"a topic's name is a str, not {type(topic).__name__}")
        if not _TOPIC_NAME.fullmatch(topic):
            raise ValueError(
                f"{topic!r} is not a topic's name: those have up to 249 letters, digits, '.', '_'"
                " and '-'"
            )
        engine = self._core.engine
        deadline = Deadline(self._clock, self._max_block_ms)
        while (queues := self._accumulator.add_topic(topic)) is None:
            if engine.on_io_thread():
                engine.metadata.add_topic(topic)
                raise KafkaTimeoutError(
                    f"the metadata of topic {topic!r} is not known yet, and a callback must not"
                    " wait: it runs on the thread that fetches it"
                )
            engine.metadata.wait_for_topic(topic, deadline.remaining_ms())
        return queues, deadline.remaining_ms()

    def _check_partition(self, queues: TopicQueues, partition: int) -> None:
        if 0 <= partition < queues.partition_count:
            return
        engine = self._core.engine
        if not engine.on_io_thread():  # it may be new: look once more
            seen = engine.metadata.snapshot
            engine.metadata.request_update()
            engine.metadata.wait_for_update(seen, self._max_block_ms)
        if not 0 <= partition < queues.partition_count:
            raise ValueError(
                f"topic {queues.name!r} has {queues.partition_count} partitions, from 0 on:"
                f" there is no partition {partition}"
            )

    def _refuse(self, error: KafkaError, topic: str, partition: int | None) -> BatchResult:
        """Raise, or return a failed result: what the brokers say belongs into the future."""
        in_callback = self._core.engine.on_io_thread()
        if isinstance(error, RecordTooLargeError) or not (
            isinstance(error, BrokerResponseError)
            or (in_callback and isinstance(error, KafkaTimeoutError))
        ):
            if isinstance(error, BufferExhaustedError):
                raise BufferExhaustedError(
                    f"{error}: {self._core.why_waiting()}",
                    buffered=error.buffered,
                    limit=error.limit,
                ) from None
            raise error
        result = BatchResult(
            TopicPartition(topic, -1 if partition is None else partition), self._core.engine
        )
        result.fail(error)
        return result

    def __enter__(self) -> KafkaProducer:
        return self

    def __exit__(self, *_: object) -> None:
        self.close()

    def __del__(self) -> None:
        core = getattr(self, "_core", None)  # not if the configuration was refused
        if core is not None and core.is_usable:
            warnings.warn(f"{self!r} was not closed", ResourceWarning, source=self, stacklevel=2)
            core.close_in_background()

    def __repr__(self) -> str:
        return f"<KafkaProducer client_id={self._core.client_id}>"


def _not_bytes(key: object, value: object) -> TypeError:
    name, found = ("value", value) if key.__class__ in _PAYLOAD_TYPES else ("key", key)
    return TypeError(
        f"the {name} is a {type(found).__name__}, not bytes: encode it, or set {name}_serializer"
    )


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
        size += len(name.encode()) + (0 if data is None else len(data))
    return size
