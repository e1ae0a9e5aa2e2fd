"""confluent-kafka as a client of a load."""

from collections.abc import Callable, Iterable, Mapping, Sequence
from functools import partial
from typing import Any, Final

from pyclient.errors import KafkaConfigurationError, KafkaTimeoutError
from pyclient.perf.clients.interface import OnDone, Outgoing, Polled
from pyclient.perf.pacing import Pacer

_POLL_EVERY: Final = 1_000
_BATCH: Final = 10_000
_FULL_QUEUE_WAIT_SECONDS: Final = 0.01


def producer(_client: str, options: Mapping[str, Any], on_done: OnDone) -> "_Producer":
    import confluent_kafka

    return _Producer(_made(confluent_kafka.Producer, options), on_done)


def consumer(_client: str, options: Mapping[str, Any]) -> "_Consumer":
    import confluent_kafka

    # librdkafka has no consumers without a group's name.
    return _Consumer(_made(confluent_kafka.Consumer, {"group.id": "perf", **_given(options)}))


def _given(options: Mapping[str, Any]) -> dict[str, Any]:
    return {name: value for name, value in options.items() if value is not None}


def _made(make: Callable[..., Any], options: Mapping[str, Any]) -> Any:
    from confluent_kafka import KafkaException

    try:
        return make(_given(options))
    except (KafkaException, TypeError, ValueError) as error:
        raise KafkaConfigurationError(f"confluent-kafka refused its options: {error}") from error


class _Producer:
    def __init__(self, producer: Any, on_done: OnDone) -> None:
        self._producer = producer
        self._on_done = on_done

    def send_all(self, topic: str, records: Iterable[Outgoing], pacer: Pacer) -> None:
        poll, done = self._producer.poll, self._done
        for number, (value, key, is_measured) in enumerate(records):
            due_ms = pacer.wait(self._poll_while_waiting)
            if is_measured:
                self._produce(topic, value, key, partial(done, due_ms, len(value)))
            else:
                self._produce(topic, value, key, None)
            if number % _POLL_EVERY == 0:
                poll(0)

    def _produce(self, topic: str, value: bytes, key: bytes | None, on_delivery: Any) -> None:
        while True:
            try:
                self._producer.produce(topic, value, key, on_delivery=on_delivery)
            except BufferError:
                self._producer.poll(_FULL_QUEUE_WAIT_SECONDS)
            else:
                return

    def _poll_while_waiting(self, wait_ms: float) -> None:
        """Delivery reports are called from `poll`: latencies would grow while they wait."""
        self._producer.poll(wait_ms / 1000)

    def _done(self, due_ms: float, size: int, error: Any, _message: Any) -> None:
        self._on_done(due_ms, size, None if error is None else RuntimeError(error.str()))

    def flush(self, timeout: float | None = None) -> None:
        left = self._producer.flush(-1 if timeout is None else timeout)
        if left:
            raise KafkaTimeoutError(f"{left} records were still in flight after {timeout} s")

    def failures(self) -> int | None:
        return None

    def close(self) -> None:
        self._producer.purge()


class _Consumer:
    def __init__(self, consumer: Any) -> None:
        self._consumer = consumer

    def subscribe(self, topic: str, on_assigned: Callable[[], None]) -> None:
        self._consumer.subscribe([topic], on_assign=lambda _consumer, _partitions: on_assigned())

    def assign_at_end(self, topic: str, partitions: Sequence[int]) -> None:
        from confluent_kafka import TopicPartition

        ends = [
            self._consumer.get_watermark_offsets(TopicPartition(topic, number))[1]
            for number in partitions
        ]
        self._consumer.assign(
            [
                TopicPartition(topic, number, end)
                for number, end in zip(partitions, ends, strict=True)
            ]
        )

    def poll(self, timeout_ms: int) -> Polled:
        found = self._messages(timeout_ms)
        return Polled(
            len(found), sum(len(one.value() or b"") + len(one.key() or b"") for one in found)
        )

    def poll_values(self, timeout_ms: int) -> list[bytes]:
        return [message.value() for message in self._messages(timeout_ms)]

    def _messages(self, timeout_ms: int) -> list[Any]:
        # `consume` waits for the whole number or the whole time: the first alone says that there
        # are more.
        first = self._consumer.poll(timeout_ms / 1000)
        if first is None:
            return []
        found = [first, *self._consumer.consume(_BATCH, 0)]
        for message in found:
            if (error := message.error()) is not None:
                raise KafkaConfigurationError(f"confluent-kafka: {error.str()}")
        return found

    def close(self) -> None:
        self._consumer.close()
