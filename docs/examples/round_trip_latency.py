"""From `send` to `poll`, with independent arrivals: `python docs/examples/round_trip_latency.py`.

The scheduled time travels in the record, so that a late send counts as latency.
"""

import struct
import sys
from threading import Thread

from pyclient import KafkaConsumer, KafkaProducer, TopicPartition
from pyclient.perf import Pacer, Poisson, Recorder

RECORDS, RATE = 500, 1000
PARTITION = TopicPartition("round-trip", 0)


def main(servers: str) -> None:
    with (
        KafkaProducer(bootstrap_servers=servers, linger_ms=0) as producer,
        KafkaConsumer(bootstrap_servers=servers, group_id=None) as consumer,
    ):
        producer.partitions_for(PARTITION.topic)  # creates the topic, where brokers do so
        consumer.assign([PARTITION])
        consumer.seek_to_end(PARTITION)
        consumer.position(PARTITION)
        recorder, pacer = Recorder(), Pacer(Poisson(RATE))

        def send() -> None:
            for _ in range(RECORDS):
                producer.send(PARTITION.topic, struct.pack("d", pacer.wait()), partition=0)

        sender = Thread(target=send)
        sender.start()
        received = 0
        while received < RECORDS:
            for record in consumer.poll(timeout_ms=1000).get(PARTITION, ()):
                recorder.record_since(*struct.unpack("d", record.value))
                received += 1
        sender.join()
    histogram = recorder.end()
    print(f"{received} records, 99th percentile {histogram.get_value_at_percentile(99)} us")


if __name__ == "__main__":
    main(sys.argv[1] if len(sys.argv) > 1 else "localhost:9092")
