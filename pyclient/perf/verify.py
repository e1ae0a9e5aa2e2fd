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
        KafkaTimeoutError: acknowledged records were unread, and nothing came for `timeout_ms`.
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
        reader = _Reader(consumer, ledger, timeout_ms, clock or SystemClock())
        try:
            for number in range(records):
                pacer.wait()
                _send(producer, ledger, partitions[number % len(partitions)])
                if number % PROGRESS_EVERY == 0:
                    if on_progress is not None:
                        on_progress(ledger, number)
                    reader.read(0)
                    reader.read_while(lambda: ledger.unread >= UNREAD_MAX)
        except KeyboardInterrupt:
            pass
        producer.flush()
        ends = consumer.end_offsets(partitions)
        reader.read_while(lambda: any(consumer.position(each) < ends[each] for each in partitions))
    ledger.finish()
    return ledger


def _send(producer: KafkaProducer, ledger: Ledger, target: TopicPartition) -> None:
    sequence, value = ledger.next_value(target.partition)
    future = producer.send(target.topic, value, partition=target.partition)
    future.add_callback(partial(_acked, ledger, target.partition, sequence))
    future.add_errback(lambda _error: ledger.on_failed())


def _acked(ledger: Ledger, partition: int, sequence: int, metadata: Any) -> None:
    ledger.on_acked(partition, sequence, metadata.offset)


class _Reader:
    """Reads into the ledger, and gives up when nothing comes."""

    def __init__(
        self, consumer: KafkaConsumer, ledger: Ledger, timeout_ms: float, clock: Clock
    ) -> None:
        self._consumer = consumer
        self._ledger = ledger
        self._timeout_ms = timeout_ms
        self._clock = clock

    def read(self, wait_ms: int) -> int:
        """Read what there is, or comes within `wait_ms`; the number of records."""
        count = 0
        for partition, found in self._consumer.poll(timeout_ms=wait_ms).items():
            count += len(found)
            for record in found:
                self._ledger.on_read(partition.partition, record.offset, record.value)
        return count

    def read_while(self, is_open: Callable[[], bool]) -> None:
        """Read until `is_open` is false."""
        deadline_ms = self._clock.monotonic_ms() + self._timeout_ms
        while is_open():
            if self.read(_POLL_MS):
                deadline_ms = self._clock.monotonic_ms() + self._timeout_ms
            elif self._clock.monotonic_ms() > deadline_ms:
                raise KafkaTimeoutError(
                    f"{self._ledger.unread} acknowledged records are unread, and nothing came for "
                    f"{self._timeout_ms:.0f} ms: is a broker down?"
                )
