"""aiokafka, as a `ForeignClient`."""

import asyncio

from tests.interop.foreign_records import TIMEOUT_SECONDS, Record, by_partition


class Aiokafka:
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
                futures = [await producer.send(topic, **one.send_arguments()) for one in records]
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
