"""A worker that processes orders at least once, written for kafka-python.

It commits by hand after each batch of records, retries a failing order, and gives up on it after
three attempts: the order goes to a dead-letter topic and the offset moves on.
"""

import argparse
import json
import logging
import sys
import time

from kafka import KafkaConsumer, KafkaProducer
from kafka.consumer.subscription_state import ConsumerRebalanceListener
from kafka.errors import CommitFailedError, KafkaError
from kafka.structs import OffsetAndMetadata, TopicPartition

log = logging.getLogger("worker")
ATTEMPTS = 3


class CannotProcess(Exception):
    pass


class Rebalances(ConsumerRebalanceListener):
    def __init__(self, worker):
        self.worker = worker

    def on_partitions_revoked(self, revoked):
        if revoked:
            self.worker.commit()
            self.worker.events.append(["revoked", len(revoked)])

    def on_partitions_assigned(self, assigned):
        if assigned:
            self.worker.events.append(["assigned", sorted(one.partition for one in assigned)])


class Worker:
    def __init__(self, servers, prefix, limit):
        self.topic = prefix + "orders"
        self.dead_letters = prefix + "orders.dead"
        self.limit = limit
        self.offsets = {}
        self.events = []
        self.processed = []
        self.attempts = {}
        self.consumer = KafkaConsumer(
            bootstrap_servers=servers,
            group_id=prefix + "order-workers",
            enable_auto_commit=False,
            auto_offset_reset="earliest",
            max_poll_records=10,
            session_timeout_ms=10000,
            heartbeat_interval_ms=1000,
            key_deserializer=lambda key: key.decode() if key else None,
            value_deserializer=lambda value: json.loads(value.decode("utf-8")),
        )
        self.producer = KafkaProducer(
            bootstrap_servers=servers,
            value_serializer=lambda value: json.dumps(value).encode("utf-8"),
        )
        self.consumer.subscribe([self.topic], listener=Rebalances(self))

    def process(self, record):
        order = record.value
        count = self.attempts[order["id"]] = self.attempts.get(order["id"], 0) + 1
        if order["kind"] == "poison" or (order["kind"] == "flaky" and count < ATTEMPTS):
            raise CannotProcess(order["kind"])
        self.processed.append(order["id"])

    def handle(self, record):
        for attempt in range(1, ATTEMPTS + 1):
            try:
                self.process(record)
                return
            except CannotProcess as error:
                log.info("attempt %d of order %s failed: %s", attempt, record.value["id"], error)
                time.sleep(0.001 * attempt)
        letter = {"order": record.value, "partition": record.partition, "offset": record.offset}
        self.producer.send(self.dead_letters, letter, headers=[("reason", b"poison")]).get(30)

    def commit(self):
        if not self.offsets:
            return
        try:
            self.consumer.commit(
                {
                    partition: OffsetAndMetadata(offset, "worker", -1)
                    for partition, offset in self.offsets.items()
                }
            )
        except CommitFailedError:
            log.warning("the partitions have gone to another worker")
        self.offsets = {}

    def run(self):
        deadline = time.monotonic() + 60
        done = 0
        while done < self.limit and time.monotonic() < deadline:
            for partition, records in self.consumer.poll(timeout_ms=500).items():
                for record in records:
                    self.handle(record)
                    self.offsets[partition] = record.offset + 1
                    done += 1
            self.commit()

    def close(self):
        partitions = sorted(self.consumer.assignment())
        committed = [self.consumer.committed(one) or 0 for one in partitions]
        notes = [self.consumer.committed(one, metadata=True) for one in partitions]
        self.consumer.close()
        self.producer.close()
        return committed, sorted({note.metadata for note in notes if note is not None})


def fill(servers, topic):
    producer = KafkaProducer(
        bootstrap_servers=servers, value_serializer=lambda v: json.dumps(v).encode()
    )
    kinds = {7: "flaky", 13: "poison", 29: "poison"}
    try:
        for number in range(60):
            order = {"id": number, "kind": kinds.get(number, "plain")}
            producer.send(topic, order, key=b"table-%d" % (number % 9))
        producer.flush()
    except KafkaError:
        log.exception("cannot fill the topic")
        raise
    finally:
        producer.close()


def read_all(servers, topic):
    consumer = KafkaConsumer(
        topic,
        bootstrap_servers=[servers],
        auto_offset_reset="earliest",
        consumer_timeout_ms=3000,
        value_deserializer=json.loads,
    )
    found = []
    for message in consumer:
        found.append([message.value, [[name, value.decode()] for name, value in message.headers]])
        if len(found) == 2:
            break
    consumer.close()
    return found


def main():
    parser = argparse.ArgumentParser()
    parser.add_argument("--servers", required=True)
    parser.add_argument("--prefix", default="")
    arguments = parser.parse_args()
    fill(arguments.servers, arguments.prefix + "orders")
    outcome = []
    seen = 0
    for limit in (25, 60):  # two lives of the worker: the second goes on where the first stopped
        worker = Worker(arguments.servers, arguments.prefix, limit - seen)
        worker.run()
        committed, notes = worker.close()
        seen = sum(committed)
        outcome.append([worker.events[0], notes])
        outcome.append(worker.attempts.get(7, 0) in (0, ATTEMPTS))
    letters = sorted(read_all(arguments.servers, arguments.prefix + "orders.dead"), key=str)
    for letter, _ in letters:
        assert TopicPartition(arguments.prefix + "orders", letter["partition"])
    json.dump({"lives": outcome, "committed": committed, "letters": letters}, sys.stdout)


if __name__ == "__main__":
    main()
