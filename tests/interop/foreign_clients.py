"""Three clients that are not ours, behind one small face: produce, and read assigned partitions."""

from __future__ import annotations

import asyncio
from collections.abc import Sequence
from importlib.util import find_spec
from typing import NamedTuple, Protocol

from pyclient.types import TopicPartition

TIMEOUT_SECONDS = 30


class Record(NamedTuple):
    """What goes in and comes out again."""

    partition: int
    key: bytes | None
    value: bytes | None
    headers: tuple[tuple[str, bytes], ...]
    timestamp_ms: int


class ForeignClient(Protocol):
    """What every client can do."""

    name: str
    lacks: frozenset[str]
    """Codecs whose library the client does not find here."""

    def produce(
        self,
        bootstrap: str,
        topic: str,
        records: Sequence[Record],
        *,
        codec: str | None = None,
        acks: int | str = "all",
        idempotent: bool = False,
    ) -> list[int]:
        """Send the records; their offsets, in the order given (of no meaning with acks=0)."""

    def consume(
        self, bootstrap: str, topic: str, partitions: int, count: int
    ) -> dict[int, list[Record]]:
        """Read so many records of the assigned partitions, from the start."""

    def offset_at(self, bootstrap: str, partition: TopicPartition, timestamp_ms: int) -> int:
        """The first offset at or after a time; -1 if there is none."""


class KafkaPython:
    """kafka-python."""

    name = "kafka-python"
    lacks = frozenset() if find_spec("snappy") else frozenset({"snappy"})

    def __init__(self, **security):
        """`security`: further options, for all it does."""
        self._security = security

    def produce(self, bootstrap, topic, records, *, codec=None, acks="all", idempotent=False):
        from kafka import KafkaProducer

        producer = KafkaProducer(
            bootstrap_servers=bootstrap,
            compression_type=codec,
            acks=acks,
            enable_idempotence=idempotent,
            linger_ms=50,
            **self._security,
        )
        try:
            futures = [
                producer.send(
                    topic,
                    value=one.value,
                    key=one.key,
                    headers=list(one.headers),
                    partition=one.partition,
                    timestamp_ms=one.timestamp_ms,
                )
                for one in records
            ]
            producer.flush(timeout=TIMEOUT_SECONDS)
            return [future.get(timeout=TIMEOUT_SECONDS).offset for future in futures]
        finally:
            producer.close()

    def _consumer(self, bootstrap):
        from kafka import KafkaConsumer

        return KafkaConsumer(
            bootstrap_servers=bootstrap,
            auto_offset_reset="earliest",
            enable_auto_commit=False,
            consumer_timeout_ms=TIMEOUT_SECONDS * 1000,
            **self._security,
        )

    def consume(self, bootstrap, topic, partitions, count):
        from kafka import TopicPartition as Theirs

        consumer = self._consumer(bootstrap)
        try:
            consumer.assign([Theirs(topic, index) for index in range(partitions)])
            found: dict[int, list[Record]] = {index: [] for index in range(partitions)}
            for _, one in zip(range(count), consumer, strict=False):
                headers = tuple((key, value) for key, value in one.headers)
                found[one.partition].append(
                    Record(one.partition, one.key, one.value, headers, one.timestamp)
                )
            return found
        finally:
            consumer.close()

    def offset_at(self, bootstrap, partition, timestamp_ms):
        from kafka import TopicPartition as Theirs

        consumer = self._consumer(bootstrap)
        try:
            theirs = Theirs(*partition)
            found = consumer.offsets_for_times({theirs: timestamp_ms})[theirs]
            return -1 if found is None else found.offset
        finally:
            consumer.close()


class Confluent:
    """confluent-kafka, which is librdkafka."""

    name = "confluent-kafka"
    lacks: frozenset[str] = frozenset()

    def __init__(self, **security):
        """`security`: further options, for all it does."""
        self._security = security

    def produce(self, bootstrap, topic, records, *, codec=None, acks="all", idempotent=False):
        from confluent_kafka import Producer

        producer = Producer(
            {
                "bootstrap.servers": bootstrap,
                "compression.codec": codec or "none",
                "acks": acks,
                "enable.idempotence": idempotent,
                "linger.ms": 50,
                **self._security,
            }
        )
        offsets: dict[int, int] = {}

        def delivered(index):
            def callback(error, message):
                assert error is None, error
                offset = message.offset()
                offsets[index] = -1 if offset is None or offset < 0 else offset

            return callback

        for index, one in enumerate(records):
            producer.produce(
                topic,
                value=one.value,
                key=one.key,
                headers=list(one.headers),
                partition=one.partition,
                timestamp=one.timestamp_ms,
                on_delivery=delivered(index),
            )
        assert producer.flush(TIMEOUT_SECONDS) == 0
        return [offsets[index] for index in range(len(records))]

    def _consumer(self, bootstrap):
        from confluent_kafka import Consumer

        return Consumer(
            {
                "bootstrap.servers": bootstrap,
                "group.id": "assigned",
                "auto.offset.reset": "earliest",
                "enable.auto.commit": False,
                **self._security,
            }
        )

    def consume(self, bootstrap, topic, partitions, count):
        from confluent_kafka import OFFSET_BEGINNING
        from confluent_kafka import TopicPartition as Theirs

        consumer = self._consumer(bootstrap)
        try:
            consumer.assign([Theirs(topic, index, OFFSET_BEGINNING) for index in range(partitions)])
            found: dict[int, list[Record]] = {index: [] for index in range(partitions)}
            while sum(map(len, found.values())) < count:
                one = consumer.poll(TIMEOUT_SECONDS)
                assert one is not None, "nothing came"
                assert one.error() is None, one.error()
                found[one.partition()].append(
                    Record(
                        one.partition(),
                        one.key(),
                        one.value(),
                        tuple(one.headers() or ()),
                        one.timestamp()[1],
                    )
                )
            return found
        finally:
            consumer.close()

    def offset_at(self, bootstrap, partition, timestamp_ms):
        from confluent_kafka import TopicPartition as Theirs

        consumer = self._consumer(bootstrap)
        try:
            (found,) = consumer.offsets_for_times(
                [Theirs(*partition, timestamp_ms)], TIMEOUT_SECONDS
            )
            return max(found.offset, -1)
        finally:
            consumer.close()


class Aiokafka:
    """aiokafka."""

    name = "aiokafka"
    lacks: frozenset[str] = frozenset()

    def __init__(self, **security):
        """`security`: further options, for all it does."""
        self._security = security

    def produce(self, bootstrap, topic, records, *, codec=None, acks="all", idempotent=False):
        from aiokafka import AIOKafkaProducer

        async def send():
            producer = AIOKafkaProducer(
                bootstrap_servers=bootstrap,
                compression_type=codec,
                acks=acks,
                enable_idempotence=idempotent,
                linger_ms=50,
                **self._security,
            )
            await producer.start()
            try:
                futures = [
                    await producer.send(
                        topic,
                        value=one.value,
                        key=one.key,
                        headers=list(one.headers),
                        partition=one.partition,
                        timestamp_ms=one.timestamp_ms,
                    )
                    for one in records
                ]
                await producer.flush()
                done = [await future for future in futures]
                return [-1 if one is None else one.offset for one in done]
            finally:
                await producer.stop()

        return asyncio.run(asyncio.wait_for(send(), TIMEOUT_SECONDS))

    def consume(self, bootstrap, topic, partitions, count):
        async def read(consumer, theirs):
            consumer.assign([theirs(topic, index) for index in range(partitions)])
            found: dict[int, list[Record]] = {index: [] for index in range(partitions)}
            for _ in range(count):
                one = await consumer.getone()
                found[one.partition].append(
                    Record(one.partition, one.key, one.value, tuple(one.headers), one.timestamp)
                )
            return found

        return self._with_consumer(bootstrap, read)

    def offset_at(self, bootstrap, partition, timestamp_ms):
        async def look_up(consumer, theirs):
            consumer.assign([theirs(*partition)])
            found = (await consumer.offsets_for_times({theirs(*partition): timestamp_ms}))[
                theirs(*partition)
            ]
            return -1 if found is None else found.offset

        return self._with_consumer(bootstrap, look_up)

    def _with_consumer(self, bootstrap, use):
        from aiokafka import AIOKafkaConsumer
        from aiokafka import TopicPartition as Theirs

        async def run():
            consumer = AIOKafkaConsumer(
                bootstrap_servers=bootstrap,
                auto_offset_reset="earliest",
                enable_auto_commit=False,
                **self._security,
            )
            await consumer.start()
            try:
                return await use(consumer, Theirs)
            finally:
                await consumer.stop()

        return asyncio.run(asyncio.wait_for(run(), TIMEOUT_SECONDS))


FOREIGN_CLIENTS: tuple[ForeignClient, ...] = (KafkaPython(), Confluent(), Aiokafka())
