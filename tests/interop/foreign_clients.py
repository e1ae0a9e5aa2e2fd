"""Three clients that are not ours, behind one small face: produce, and read assigned partitions."""

from __future__ import annotations

import asyncio
from collections.abc import Iterable, Sequence
from contextlib import closing
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


def by_partition(records: Iterable[Record], partitions: int) -> dict[int, list[Record]]:
    """The records of each partition, in their order."""
    found: dict[int, list[Record]] = {index: [] for index in range(partitions)}
    for one in records:
        found[one.partition].append(one)
    return found


class ForeignClient(Protocol):
    """What every client can do."""

    name: str

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

    def read_since(
        self, bootstrap: str, partition: TopicPartition, timestamp_ms: int, count: int
    ) -> list[Record]:
        """Look up a time, seek to what was found, and read so many records from there on."""


class KafkaPython:
    """kafka-python."""

    name = "kafka-python"

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

        with closing(self._consumer(bootstrap)) as consumer:
            consumer.assign([Theirs(topic, index) for index in range(partitions)])
            return by_partition(self._read(consumer, count), partitions)

    def offset_at(self, bootstrap, partition, timestamp_ms):
        with closing(self._consumer(bootstrap)) as consumer:
            return self._look_up(consumer, partition, timestamp_ms)

    def read_since(self, bootstrap, partition, timestamp_ms, count):
        from kafka import TopicPartition as Theirs

        with closing(self._consumer(bootstrap)) as consumer:
            consumer.assign([Theirs(*partition)])
            consumer.seek(Theirs(*partition), self._look_up(consumer, partition, timestamp_ms))
            return self._read(consumer, count)

    def _look_up(self, consumer, partition, timestamp_ms):
        from kafka import TopicPartition as Theirs

        theirs = Theirs(*partition)
        found = consumer.offsets_for_times({theirs: timestamp_ms})[theirs]
        return -1 if found is None else found.offset

    def _read(self, consumer, count):
        return [
            Record(one.partition, one.key, one.value, tuple(one.headers), one.timestamp)
            for _, one in zip(range(count), consumer, strict=False)
        ]


class Confluent:
    """confluent-kafka, which is librdkafka."""

    name = "confluent-kafka"

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

        with closing(self._consumer(bootstrap)) as consumer:
            consumer.assign([Theirs(topic, index, OFFSET_BEGINNING) for index in range(partitions)])
            return by_partition(self._read(consumer, count), partitions)

    def offset_at(self, bootstrap, partition, timestamp_ms):
        with closing(self._consumer(bootstrap)) as consumer:
            return max(self._look_up(consumer, partition, timestamp_ms).offset, -1)

    def read_since(self, bootstrap, partition, timestamp_ms, count):
        with closing(self._consumer(bootstrap)) as consumer:
            consumer.assign([self._look_up(consumer, partition, timestamp_ms)])
            return self._read(consumer, count)

    def _look_up(self, consumer, partition, timestamp_ms):
        from confluent_kafka import TopicPartition as Theirs

        asked = Theirs(*partition, timestamp_ms)
        (found,) = consumer.offsets_for_times([asked], TIMEOUT_SECONDS)
        return found

    def _read(self, consumer, count):
        found = []
        while len(found) < count:
            one = consumer.poll(TIMEOUT_SECONDS)
            assert one is not None, "nothing came"
            assert one.error() is None, one.error()
            headers = tuple(one.headers() or ())
            timestamp = one.timestamp()[1]
            found.append(Record(one.partition(), one.key(), one.value(), headers, timestamp))
        return found


class Aiokafka:
    """aiokafka."""

    name = "aiokafka"

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
            return by_partition(await self._read(consumer, count), partitions)

        return self._with_consumer(bootstrap, read)

    def offset_at(self, bootstrap, partition, timestamp_ms):
        async def look_up(consumer, theirs):
            return await self._look_up(consumer, theirs(*partition), timestamp_ms)

        return self._with_consumer(bootstrap, look_up)

    def read_since(self, bootstrap, partition, timestamp_ms, count):
        async def read(consumer, theirs):
            offset = await self._look_up(consumer, theirs(*partition), timestamp_ms)
            consumer.seek(theirs(*partition), offset)
            return await self._read(consumer, count)

        return self._with_consumer(bootstrap, read)

    async def _look_up(self, consumer, theirs, timestamp_ms):
        consumer.assign([theirs])
        found = (await consumer.offsets_for_times({theirs: timestamp_ms}))[theirs]
        return -1 if found is None else found.offset

    async def _read(self, consumer, count):
        found = []
        for _ in range(count):
            one = await consumer.getone()
            headers = tuple(one.headers)
            found.append(Record(one.partition, one.key, one.value, headers, one.timestamp))
        return found

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
