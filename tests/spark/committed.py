"""Reading a topic as `read_committed` readers see it."""

from pyclient import KafkaConsumer, TopicPartition


def committed(servers: str, topic: str) -> list[bytes]:
    """The values that a reader of committed records sees."""
    with KafkaConsumer(bootstrap_servers=servers, isolation_level="read_committed") as consumer:
        numbers = consumer.partitions_for_topic(topic) or set()
        partitions = [TopicPartition(topic, number) for number in sorted(numbers)]
        consumer.assign(partitions)
        consumer.seek_to_beginning(*partitions)
        ends = consumer.end_offsets(partitions)
        values: list[bytes] = []
        while any(consumer.position(one) < ends[one] for one in partitions):
            for records in consumer.poll(timeout_ms=1_000).values():
                values += [record.value or b"" for record in records]
    return sorted(values)
