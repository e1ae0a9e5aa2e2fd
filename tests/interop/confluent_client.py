"""confluent-kafka, which is librdkafka, as a `ForeignClient`."""

from contextlib import closing

from tests.interop.foreign_records import TIMEOUT_SECONDS, Record, by_partition


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
