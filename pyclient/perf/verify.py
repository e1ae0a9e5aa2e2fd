"""Sends numbered records and reads them back, through whatever happens to the brokers meanwhile."""

from collections.abc import Callable
from functools import partial
from typing import Any, Final

from pyclient import KafkaConsumer, KafkaProducer, TopicPartition
from pyclient.clock import Clock, SystemClock
from pyclient.entropy import Entropy
from pyclient.errors import KafkaTimeoutError
from pyclient.perf.ledger import Ledger
from pyclient.perf.pacing import Pacer, Schedule

UNREAD_MAX: Final = 10_000
"""Sending waits while as many records are acknowledged and not read: memory stays bounded."""

PROGRESS_EVERY: Final = 100
_POLL_MS: Final = 100


def verify_delivery(
    producer_options: dict[str, Any],
    consumer_options: dict[str, Any],
    topic: str,
    records: int,
    *,
    schedule: Schedule | None = None,
    timeout_ms: float = 60_000,
    clock: Clock | None = None,
    on_progress: Callable[[Ledger, int], None] | None = None,
) -> Ledger:
    """Send `records` records round the topic's partitions, read them, and compare.

    Ctrl-C stops sending; what was sent is still verified. `on_progress` is called on this thread
    every 100 records.

    Raises:
        KafkaTimeoutError: the topic could not be read to its end, and nothing came for
            `timeout_ms`.
    """
    ledger = Ledger(Entropy().random_bytes(8))
    with (
        KafkaProducer(**producer_options) as producer,
        KafkaConsumer(**{**consumer_options, "group_id": None}) as consumer,
    ):
        # The producer's metadata request creates the topic, where brokers do so.
        numbers = sorted(producer.partitions_for(topic))
        partitions = [TopicPartition(topic, number) for number in numbers]
        consumer.assign(partitions)
        consumer.seek_to_end(*partitions)
        for each in partitions:
            consumer.position(each)
        pacer = Pacer(schedule, clock=clock)
        try:
            for number in range(records):
                pacer.wait()
                _send(producer, ledger, partitions[number % len(partitions)])
                if number % PROGRESS_EVERY == 0:
                    if on_progress is not None:
                        on_progress(ledger, number)
                    _read(consumer, ledger, 0)
                    while ledger.unread >= UNREAD_MAX:
                        _read(consumer, ledger, _POLL_MS)
        except KeyboardInterrupt:
            pass
        producer.flush()
        _read_to_the_end(consumer, ledger, partitions, timeout_ms, clock or SystemClock())
    ledger.finish()
    return ledger


def _send(producer: KafkaProducer, ledger: Ledger, target: TopicPartition) -> None:
    sequence, value = ledger.next_value(target.partition)
    future = producer.send(target.topic, value, partition=target.partition)
    future.add_callback(partial(_acked, ledger, target.partition, sequence))
    future.add_errback(lambda _error: ledger.on_failed())


def _acked(ledger: Ledger, partition: int, sequence: int, metadata: Any) -> None:
    ledger.on_acked(partition, sequence, metadata.offset)


def _read(consumer: KafkaConsumer, ledger: Ledger, timeout_ms: int) -> int:
    count = 0
    for partition, found in consumer.poll(timeout_ms=timeout_ms).items():
        count += len(found)
        for record in found:
            ledger.on_read(partition.partition, record.offset, record.value)
    return count


def _read_to_the_end(
    consumer: KafkaConsumer,
    ledger: Ledger,
    partitions: list[TopicPartition],
    timeout_ms: float,
    clock: Clock,
) -> None:
    ends = consumer.end_offsets(partitions)
    deadline_ms = clock.monotonic_ms() + timeout_ms
    while any(consumer.position(each) < ends[each] for each in partitions):
        if _read(consumer, ledger, _POLL_MS):
            deadline_ms = clock.monotonic_ms() + timeout_ms
        elif clock.monotonic_ms() > deadline_ms:
            raise KafkaTimeoutError(
                f"{ledger.unread} acknowledged records are unread, and nothing came for "
                f"{timeout_ms:.0f} ms: is a broker down?"
            )
