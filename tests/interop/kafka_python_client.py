"""kafka-python, as a `ForeignClient`."""

from contextlib import closing

from tests.interop.foreign_records import TIMEOUT_SECONDS, Record, by_partition


class KafkaPython:
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
            futures = [producer.send(topic, **one.send_arguments()) for one in records]
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
