"""pyclient and kafka-python as clients of a load: one interface, two packages."""

from collections.abc import Callable, Collection, Iterable, Iterator, Mapping, Sequence
from functools import partial
from typing import Any

from pyclient.errors import KafkaConfigurationError, KafkaTimeoutError
from pyclient.perf.clients.interface import OnDone, Outgoing, Polled, counted, plain_values
from pyclient.perf.pacing import Pacer


def producer(client: str, options: Mapping[str, Any], on_done: OnDone) -> "_Producer":
    if client == "pyclient":
        from pyclient import KafkaProducer

        return _Producer(KafkaProducer(**options), on_done, KafkaTimeoutError)
    import kafka
    from kafka.errors import KafkaTimeoutError as TheirTimeout

    return _Peer(_peer(kafka.KafkaProducer, options), on_done, TheirTimeout)


def consumer(client: str, options: Mapping[str, Any]) -> "_Consumer":
    if client == "pyclient":
        import pyclient

        return _Consumer(pyclient, pyclient.KafkaConsumer(**options))
    import kafka

    return _Consumer(kafka, _peer(kafka.KafkaConsumer, options))


def _peer(make: Callable[..., Any], options: Mapping[str, Any]) -> Any:
    options = plain_values(options)
    if options.get("acks") == -1:
        options["acks"] = "all"
    try:
        return make(**options)
    except (AssertionError, TypeError, ValueError) as error:
        raise KafkaConfigurationError(f"kafka-python refused its options: {error}") from error


class _Producer:
    def __init__(self, producer: Any, on_done: OnDone, timed_out: type[Exception]) -> None:
        self._producer = producer
        self._on_done = on_done
        self._timed_out = timed_out

    def send_all(self, topic: str, records: Iterable[Outgoing], pacer: Pacer) -> None:
        send, on_done = self._producer.send, self._on_done
        for value, key, is_measured in records:
            due_ms = pacer.wait()
            future = send(topic, value, key)
            if is_measured:
                future.add_callback(partial(_delivered, on_done, due_ms, len(value)))
                future.add_errback(partial(on_done, due_ms, len(value)))  # and the error

    def flush(self, timeout: float | None = None) -> None:
        try:
            self._producer.flush(timeout=timeout)
        except self._timed_out as error:
            raise KafkaTimeoutError(str(error)) from error

    def failures(self) -> int | None:
        return int(self._producer.metrics()["producer-metrics"]["record-error-total"])

    def close(self) -> None:
        self._producer.close()


class _Peer(_Producer):
    def failures(self) -> int | None:
        return None


def _delivered(on_done: OnDone, due_ms: float, size: int, _metadata: Any) -> None:
    on_done(due_ms, size, None)


class _Consumer:
    def __init__(self, package: Any, consumer: Any) -> None:
        self._package = package
        self._consumer = consumer

    def subscribe(self, topic: str, on_assigned: Callable[[], None]) -> None:
        class Listener(self._package.ConsumerRebalanceListener):  # type: ignore[name-defined,misc]
            def on_partitions_assigned(self, assigned: Collection[Any]) -> None:  # noqa: ARG002
                on_assigned()

            def on_partitions_revoked(self, revoked: Collection[Any]) -> None:
                pass

        self._consumer.subscribe([topic], listener=Listener())

    def assign_at_end(self, topic: str, partitions: Sequence[int]) -> None:
        assigned = [self._package.TopicPartition(topic, number) for number in partitions]
        self._consumer.assign(assigned)
        self._consumer.seek_to_end(*assigned)
        for each in assigned:
            self._consumer.position(each)

    def poll(self, timeout_ms: int) -> Polled:
        return counted(self._batches(timeout_ms))

    def poll_values(self, timeout_ms: int) -> list[bytes]:
        return [record.value for batch in self._batches(timeout_ms) for record in batch]

    def _batches(self, timeout_ms: int) -> Iterator[list[Any]]:
        yield from self._consumer.poll(timeout_ms=timeout_ms).values()

    def close(self) -> None:
        self._consumer.close()
