"""Exports a time window of a topic as a report, written for kafka-python.

No group and no commits: the script assigns all partitions, looks up where the window begins and
ends, seeks there, and reads to the end.
"""

import argparse
import collections
import json
import sys

from kafka import KafkaAdminClient, KafkaConsumer, KafkaProducer, TopicPartition
from kafka.admin import NewTopic
from kafka.errors import TopicAlreadyExistsError

START_MS = 1_700_000_000_000
STEP_MS = 1_000


def create(servers, topic):
    admin = KafkaAdminClient(bootstrap_servers=servers)
    created = []
    for _ in range(2):  # a second run of the job finds the topic
        try:
            admin.create_topics([NewTopic(topic, num_partitions=4, replication_factor=1)])
            created.append("created")
        except TopicAlreadyExistsError:
            created.append("exists")
    admin.close()
    return created


def fill(servers, topic):
    producer = KafkaProducer(bootstrap_servers=servers, compression_type="lz4", linger_ms=5)
    for number in range(400):
        producer.send(
            topic,
            key=b"sensor-%d" % (number % 11),
            value=b"%d" % number,
            timestamp_ms=START_MS + number * STEP_MS,
        )
    producer.flush()
    producer.close()


def partitions_of(consumer, topic):
    found = consumer.partitions_for_topic(topic)
    assert found, "no such topic"
    return [TopicPartition(topic, number) for number in sorted(found)]


def export(consumer, topic, begin_ms, end_ms):
    partitions = partitions_of(consumer, topic)
    consumer.assign(partitions)
    last = consumer.end_offsets(partitions)
    begin = consumer.offsets_for_times(dict.fromkeys(partitions, begin_ms))
    end = consumer.offsets_for_times(dict.fromkeys(partitions, end_ms))
    stops = {}
    for one in partitions:
        stops[one] = end[one].offset if end[one] else last[one]
        consumer.seek(one, begin[one].offset if begin[one] else last[one])
    sums = collections.Counter()
    counts = collections.Counter()
    open_partitions = {one for one in partitions if consumer.position(one) < stops[one]}
    while open_partitions:
        for partition, records in consumer.poll(timeout_ms=1000).items():
            for record in records:
                if record.offset >= stops[partition]:
                    break
                counts[record.key.decode()] += 1
                sums[record.key.decode()] += int(record.value)
            if consumer.position(partition) >= stops[partition]:
                open_partitions.discard(partition)
    return {
        "rows": sorted([key, counts[key], sums[key]] for key in counts),
        "begin": [begin[one].offset if begin[one] else None for one in partitions],
        "times": [begin[one].timestamp if begin[one] else None for one in partitions],
        "end": [stops[one] for one in partitions],
    }


def main():
    parser = argparse.ArgumentParser()
    parser.add_argument("--servers", required=True)
    parser.add_argument("--prefix", default="")
    arguments = parser.parse_args()
    topic = arguments.prefix + "readings"
    created = create(arguments.servers, topic)
    fill(arguments.servers, topic)
    consumer = KafkaConsumer(
        bootstrap_servers=arguments.servers,
        group_id=None,
        enable_auto_commit=False,
        max_poll_records=50,
    )
    windows = [(100, 200), (390, 1000), (5000, 6000)]
    report = [
        export(consumer, topic, START_MS + low * STEP_MS, START_MS + high * STEP_MS)
        for low, high in windows
    ]
    partitions = partitions_of(consumer, topic)
    beginnings = consumer.beginning_offsets(partitions)
    consumer.seek_to_beginning(*partitions)
    positions = [consumer.position(one) for one in partitions]
    consumer.close()
    json.dump(
        {
            "created": created,
            "windows": report,
            "beginnings": [beginnings[one] for one in partitions],
            "positions": positions,
        },
        sys.stdout,
    )


if __name__ == "__main__":
    main()
