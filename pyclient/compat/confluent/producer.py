"""confluent-kafka's `Producer` over `KafkaProducer`.

Delivery reports and other callbacks run inside `poll` and `flush`, as there. `produce` never waits:
it raises BufferError when the queue is full, and messages for a topic that is not known yet wait
in `unresolved_topics`.
"""

from collections.abc import Callable, Mapping, Sequence
from contextlib import suppress
from typing import Any, NamedTuple, Self

from pyclient.compat.confluent.cluster_metadata import ClusterMetadata, ClusterQueries
from pyclient.compat.confluent.configuration import PRODUCER, refused, translate
from pyclient.compat.confluent.delivery_reports import DeliveryReports
from pyclient.compat.confluent.error import (
    INVALID_ARG,
    MSG_SIZE_TOO_LARGE,
    MSG_TIMED_OUT,
    NOT_IMPLEMENTED,
    QUEUE_FULL,
    KafkaError,
    KafkaException,
    PurgedError,
    convert,
    exception,
    failure,
)
from pyclient.compat.confluent.events import Events
from pyclient.compat.confluent.message import Headers, Message, OnDelivery
from pyclient.compat.confluent.notices import Notices
from pyclient.compat.confluent.partitioners import partitioner
from pyclient.compat.confluent.topic_partition import TopicPartition, ours
from pyclient.compat.confluent.unresolved_topics import UnresolvedTopics
from pyclient.entropy import Entropy
from pyclient.errors import BufferExhaustedError, KafkaConfigurationError, KafkaTimeoutError
from pyclient.errors import KafkaError as ClientError
from pyclient.producer.producer import KafkaProducer
from pyclient.timers import Deadline
from pyclient.types import ConsumerGroupMetadata, OffsetAndMetadata

PURGE_TIMEOUT_MS = 10_000
"""How long `purge` may take; the I/O thread answers at once, unless it is stuck."""

FLUSH_SLICE_MS = 100
"""How long a flush may wait before it serves callbacks again."""

Payload = str | bytes | bytearray | memoryview | None


class _Unsent(NamedTuple):
    """A message as `produce` took it."""

    topic: str
    value: bytes | None
    key: bytes | None
    partition: int
    on_delivery: OnDelivery | None
    timestamp: int | None
    headers: Headers | None


class Producer:
    """Produces messages asynchronously. Any number of threads may share one."""

    def __init__(self, *config: Mapping[str, Any], **options: Any) -> None:
        """Take a dict of librdkafka's options, and keywords with underscores for dots."""
        translated = translate(PRODUCER, config, options)
        own = translated.own
        chosen = partitioner(own["partitioner"], Entropy())
        if chosen is None:
            raise failure(INVALID_ARG, f"no partitioner is named {own['partitioner']!r}")
        self._partition_of = chosen
        self._is_sticky = chosen(None, 1) is None  # for messages without a key
        self._max_messages: int = own["queue.buffering.max.messages"]
        self._on_delivery: OnDelivery | None = own["on_delivery"]
        self._resolve_ms: int = own["topic.metadata.propagation.max.ms"]
        memory = own["queue.buffering.max.kbytes"] * 1024
        try:
            self._producer = KafkaProducer(**{**translated.options, "buffer.memory": memory})
        except KafkaConfigurationError as error:
            raise refused(error) from error
        self._send = self._producer.send
        self._max_size: int = self._producer.config["max.request.size"]
        core = self._producer._core
        self._engine = core.engine
        self._clock = core.engine.clock
        self._events = Events(self._clock)
        only_errors = own["delivery.report.only.error"]
        self._reports = DeliveryReports(self._events, self._clock, only_errors)
        self._outstanding = self._reports.outstanding
        self._unresolved = UnresolvedTopics[_Unsent](
            self._resolve, self._hand_over, self._fail, f"{core.client_id}-topics"
        )
        self._resolved = self._unresolved.resolved
        self._queries = ClusterQueries(translated.options)
        self._notices = Notices(
            own, self._engine, self._producer.metrics, "producer", core.client_id, self.__len__
        )
        self._is_closed = False

    def produce(
        self,
        topic: str,
        value: Payload = None,
        key: Payload = None,
        partition: int = -1,
        callback: OnDelivery | None = None,
        on_delivery: OnDelivery | None = None,
        timestamp: int = 0,
        headers: Mapping[str, Any] | Sequence[tuple[str, Any]] | None = None,
    ) -> None:
        """Hand a message over; `poll` calls `on_delivery(error, message)` with its outcome.

        Raises:
            BufferError: the queue is full; call `poll` and try again.
            KafkaException: the message is too large, or the producer is closed.
            TypeError: a key or value is neither bytes nor text.
        """
        if type(value) is not bytes:
            value = _to_bytes(value)
        if type(key) is not bytes:
            key = _to_bytes(key)
        report = callback or on_delivery or self._on_delivery
        if len(self._outstanding) >= self._max_messages:
            raise BufferError("Local: Queue full")
        if topic not in self._resolved and self._has_to_wait(
            topic, value, key, partition, report, timestamp, headers
        ):
            return
        chosen: int | None = partition
        if partition < 0:
            chosen = None if key is None and self._is_sticky else self._choose(topic, key)
        encoded = None if headers is None else _to_headers(headers)
        self._deliver(topic, value, key, encoded, chosen, timestamp or None, report)

    def produce_batch(
        self,
        topic: str,
        messages: Sequence[dict[str, Any]],
        partition: int = -1,
        callback: OnDelivery | None = None,
        on_delivery: OnDelivery | None = None,
    ) -> int:
        """Produce many messages, given as dicts with `produce`'s arguments; returns how many.

        A message that is not taken has its error under the key `_error`.
        """
        taken = 0
        for message in messages:
            arguments = {name: one for name, one in message.items() if not name.startswith("_")}
            arguments.setdefault("partition", partition)
            if "callback" not in arguments:
                arguments.setdefault("on_delivery", callback or on_delivery)
            try:
                self.produce(topic, **arguments)
            except BufferError as error:
                message["_error"] = KafkaError(QUEUE_FULL, str(error))
            except (KafkaException, TypeError, ValueError) as error:
                message["_error"] = _reason(error)
            else:
                taken += 1
        return taken

    def _choose(self, topic: str, key: bytes | None) -> int | None:
        known = self._engine.metadata.snapshot.partitions_for_topic(topic)
        return self._partition_of(key, len(known)) if known else None

    def _has_to_wait(
        self,
        topic: str,
        value: bytes | None,
        key: bytes | None,
        partition: int,
        on_delivery: OnDelivery | None,
        timestamp: int,
        headers: Any,
    ) -> bool:
        """Whether the message waits until the topic's partitions are known."""
        if not isinstance(topic, str):
            raise TypeError(f"a topic is a str, not {type(topic).__name__}")
        size = len(value or b"") + len(key or b"")
        if size > self._max_size:
            raise failure(MSG_SIZE_TOO_LARGE, f"the message has {size} bytes (message.max.bytes)")
        encoded = _to_headers(headers)
        unsent = _Unsent(topic, value, key, partition, on_delivery, timestamp or None, encoded)
        self._reports.expect()
        if self._unresolved.add(topic, unsent):
            return True
        self._reports.unexpect()
        return False

    def _deliver(
        self,
        topic: str,
        value: bytes | None,
        key: bytes | None,
        headers: Headers | None,
        partition: int | None,
        timestamp: int | None,
        on_delivery: OnDelivery | None,
    ) -> None:
        try:
            if value is None and key is None:
                value = b""  # a record without both is no record to this package
            future = self._send(topic, value, key, headers, partition, timestamp)
        except BufferExhaustedError as error:
            raise BufferError(f"Local: Queue full: {error}") from error
        except ValueError as error:
            raise failure(INVALID_ARG, str(error)) from error
        except ClientError as error:
            raise exception(error) from error
        self._reports.add((future, on_delivery, key, value, headers))

    def _resolve(self, topic: str) -> None:
        """Wait until the topic's partitions are known."""
        deadline = Deadline(self._clock, self._resolve_ms)
        while True:
            try:
                self._producer.partitions_for(topic)
            except KafkaTimeoutError:
                if deadline.expired:
                    raise
            else:
                return

    def _hand_over(self, unsent: _Unsent) -> None:
        """Deliver a message that has waited for its topic."""
        topic, value, key, partition, on_delivery, timestamp, headers = unsent
        chosen = partition if partition >= 0 else self._choose(topic, key)
        self._deliver(topic, value, key, headers, chosen, timestamp, on_delivery)
        self._reports.unexpect()

    def _fail(self, unsent: _Unsent, error: Exception) -> None:
        message = Message(
            unsent.topic,
            unsent.partition,
            key=unsent.key,
            value=unsent.value,
            headers=unsent.headers,
            error=_reason(error),
        )
        self._reports.fail(message, unsent.on_delivery)

    def poll(self, timeout: float = -1) -> int:
        """Run callbacks of what has happened, or wait for it; returns how many there were.

        Args:
            timeout: seconds; negative waits until something happens.
        """
        self._notices.collect(self._events)
        return self._events.serve(_timeout_ms(timeout))

    def flush(self, timeout: float = -1) -> int:
        """Deliver everything, running callbacks; returns how many messages are left.

        Args:
            timeout: seconds; negative waits until all are delivered or have failed.
        """
        deadline = Deadline(self._clock, _timeout_ms(timeout))
        while len(self._reports):
            slice_ms = min(deadline.remaining_ms(), FLUSH_SLICE_MS)
            with suppress(KafkaTimeoutError):
                self._producer.flush(slice_ms / 1000)
            self._notices.collect(self._events)
            # What waits for its topic is not in the producer yet: wait for the events instead.
            if self._events.serve(min(deadline.remaining_ms(), 1)) == 0 and deadline.expired:
                break
        else:
            self._events.serve(0)
        return len(self._reports)

    def purge(self, in_queue: bool = True, in_flight: bool = True, blocking: bool = True) -> None:
        """Drop messages that were not sent; their delivery reports say so.

        Messages in flight are reported once their outcome is known: they may be written already.
        """
        del in_flight, blocking
        if not in_queue:
            return
        purged = PurgedError("the message was purged before it was sent")
        for unsent in self._unresolved.drop():
            self._fail(unsent, purged)
        outcomes = self._producer._core.outcomes
        self._engine.call(
            lambda: outcomes.drop_waiting(purged, self._clock.monotonic_ms()), PURGE_TIMEOUT_MS
        )

    # --- transactions ------------------------------------------------------------------------

    def init_transactions(self, timeout: float = -1) -> None:
        """Get ready for transactions, and fence earlier producers with the same id."""
        self._in_time(self._producer.init_transactions, timeout)

    def begin_transaction(self) -> None:
        """Begin a transaction."""
        self._in_time(self._producer.begin_transaction, 0)

    def send_offsets_to_transaction(
        self,
        positions: Sequence[TopicPartition],
        group_metadata: ConsumerGroupMetadata,
        timeout: float = -1,
    ) -> None:
        """Commit a consumer's offsets with the transaction.

        Args:
            positions: partitions with the next offset to read.
            group_metadata: from `Consumer.consumer_group_metadata`.
            timeout: seconds.
        """
        offsets = {
            ours(one): OffsetAndMetadata(one.offset, one.metadata or "") for one in positions
        }
        self._in_time(
            lambda: self._producer.send_offsets_to_transaction(offsets, group_metadata), timeout
        )

    def commit_transaction(self, timeout: float = -1) -> None:
        """Deliver everything, and commit the transaction."""
        self._in_time(self._producer.commit_transaction, timeout)

    def abort_transaction(self, timeout: float = -1) -> None:
        """Abort the transaction; messages that were not sent fail."""
        self._in_time(self._producer.abort_transaction, timeout)

    def _in_time(self, call: Callable[[], None], timeout: float) -> None:
        """Call, and again after a timeout of the producer's, until it is done or time is over."""
        deadline = Deadline(self._clock, _timeout_ms(timeout))
        while True:
            try:
                return call()
            except KafkaTimeoutError as error:
                if deadline.expired:
                    raise exception(error) from error
            except ClientError as error:
                raise exception(error) from error

    # --- the cluster, and the end ------------------------------------------------------------

    def list_topics(self, topic: str | None = None, timeout: float = -1) -> ClusterMetadata:
        """Brokers, topics and their partitions."""
        return self._queries.metadata(topic, timeout)

    def cluster_id(self, timeout: float = -1) -> str | None:
        """The id of the cluster."""
        return self._queries.metadata(None, timeout).cluster_id

    def set_sasl_credentials(self, username: str, password: str) -> None:
        """Not possible: SASL is not supported yet."""
        del username, password
        raise failure(NOT_IMPLEMENTED, "SASL is not supported yet")

    def close(self) -> bool:
        """Deliver what was handed over, run callbacks, and end."""
        if not self._is_closed:
            self.flush()
            self._end()
        return True

    def _end(self) -> None:
        self._is_closed = True
        self._producer.close()
        self._queries.close()
        self._events.serve(0)

    def __len__(self) -> int:
        """How many messages are not delivered, or wait for `poll` to report them."""
        return len(self._reports)

    def __bool__(self) -> bool:
        return True

    def __enter__(self) -> Self:
        return self

    def __exit__(self, *_: object) -> None:
        self.close()


def _reason(error: Exception) -> KafkaError:
    """What to report of a message that was not taken."""
    reason = error.args[0] if error.args else None
    if isinstance(reason, KafkaError):
        return reason
    if isinstance(error, TypeError | ValueError):
        return KafkaError(INVALID_ARG, str(error))
    if isinstance(error, BufferError):
        return KafkaError(QUEUE_FULL, str(error))
    return convert(error, timed_out=MSG_TIMED_OUT)


def _timeout_ms(timeout: float) -> float:
    return float("inf") if timeout is None or timeout < 0 else timeout * 1000


def _to_bytes(payload: Payload) -> bytes | None:
    if payload is None or isinstance(payload, bytes):
        return payload
    if isinstance(payload, str):
        return payload.encode()
    try:
        return bytes(memoryview(payload))
    except TypeError:
        kind = type(payload).__name__
        raise TypeError(f"a bytes-like object is required, not {kind!r}") from None


def _to_headers(headers: Any) -> Headers | None:
    if headers is None:
        return None
    pairs = headers.items() if isinstance(headers, Mapping) else headers
    made: Headers = []
    for name, value in pairs:
        if not isinstance(name, str):
            raise TypeError(f"a header's name is a str, not {type(name).__name__}")
        made.append((name, _to_bytes(value)))
    return made
