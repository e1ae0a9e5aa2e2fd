"""Members of a consumer group by three foreign clients, each on its own thread."""

import asyncio
from abc import ABC, abstractmethod
from threading import Event, Thread
from typing import Any, Self

POLL_SECONDS = 0.1
HEARTBEAT_MS = 300  # by which a member learns of a rebalance
STALLED_SECONDS = 5


class Member(ABC):
    """Reads what it is assigned until it leaves, and commits at once what it read."""

    def __init__(self, bootstrap: str, group: str, topic: str) -> None:
        self.bootstrap = bootstrap
        self.group = group
        self.topic = topic
        self.values: list[bytes] = []
        self.assigned: frozenset[int] = frozenset()
        self.failure: BaseException | None = None
        self._leaving = Event()
        self._thread = Thread(target=self._run_guarded, daemon=True)

    def __enter__(self) -> Self:
        self._thread.start()
        return self

    def __exit__(self, *_: object) -> None:
        self.leave()

    def leave(self) -> None:
        """Close, and raise what went wrong on the way."""
        self._leaving.set()
        self._thread.join()
        if self.failure is not None:
            raise self.failure

    @property
    def is_leaving(self) -> bool:
        return self._leaving.is_set()

    def _run_guarded(self) -> None:
        try:
            self.run()
        except BaseException as error:  # noqa: BLE001  raised again by `leave`
            self.failure = error

    @property
    def options(self) -> dict[str, Any]:
        """What kafka-python and aiokafka call their options."""
        return {
            "bootstrap_servers": self.bootstrap,
            "group_id": self.group,
            "auto_offset_reset": "earliest",
            "enable_auto_commit": False,
            "heartbeat_interval_ms": HEARTBEAT_MS,
        }

    @abstractmethod
    def run(self) -> None:
        """Subscribe and poll until `is_leaving`."""


class KafkaPythonMember(Member):
    """kafka-python.

    Its consumer (3.0.12) forgets a join that completes just between two polls, and then waits
    for ever: seen on Apache Kafka, too. One that has got nothing for long is replaced.
    """

    def run(self) -> None:
        while not self.is_leaving:
            consumer = self._consumer()
            try:
                self._poll(consumer)
            finally:
                consumer.close()

    def _consumer(self) -> Any:
        from kafka import KafkaConsumer

        return KafkaConsumer(self.topic, **self.options)

    def _poll(self, consumer: Any) -> None:
        """Read until it is time to leave, or nothing was assigned for too long."""
        in_vain = 0
        while not self.is_leaving and in_vain < STALLED_SECONDS / POLL_SECONDS:
            found = consumer.poll(timeout_ms=int(POLL_SECONDS * 1000))
            if found:
                consumer.commit()
            for records in found.values():
                self.values += [one.value for one in records]
            self.assigned = frozenset(one.partition for one in consumer.assignment())
            in_vain = 0 if self.assigned else in_vain + 1


class ConfluentMember(Member):
    """confluent-kafka, which is librdkafka."""

    def run(self) -> None:
        from confluent_kafka import Consumer

        consumer = Consumer(
            {
                "bootstrap.servers": self.bootstrap,
                "group.id": self.group,
                "auto.offset.reset": "earliest",
                "enable.auto.commit": False,
                "heartbeat.interval.ms": HEARTBEAT_MS,
            }
        )
        consumer.subscribe([self.topic])
        try:
            while not self.is_leaving:
                message = consumer.poll(POLL_SECONDS)
                if message is not None:
                    assert message.error() is None, message.error()
                    consumer.commit(message=message, asynchronous=False)
                    self.values.append(message.value())
                self.assigned = frozenset(one.partition for one in consumer.assignment())
        finally:
            consumer.close()


class AiokafkaMember(Member):
    def run(self) -> None:
        asyncio.run(self._run())

    async def _run(self) -> None:
        from aiokafka import AIOKafkaConsumer

        consumer: Any = AIOKafkaConsumer(self.topic, **self.options)
        await consumer.start()
        try:
            while not self.is_leaving:
                found = await consumer.getmany(timeout_ms=int(POLL_SECONDS * 1000))
                if found:
                    await consumer.commit()
                for records in found.values():
                    self.values += [one.value for one in records]
                self.assigned = frozenset(one.partition for one in consumer.assignment())
        finally:
            await consumer.stop()


MEMBERS: tuple[type[Member], ...] = (KafkaPythonMember, ConfluentMember, AiokafkaMember)
