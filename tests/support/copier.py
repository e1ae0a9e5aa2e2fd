"""A read-process-write program, exactly once: run as `python -m tests.support.copier`, and killed.

It copies topic `in` to `out`, each value with its origin: the offsets go into the transactions. It
prints a line when it is ready, and ends when its standard input does.
"""

import sys
import threading
from typing import Any

from pyclient import KafkaConsumer, KafkaProducer, OffsetAndMetadata, TopicPartition
from pyclient.errors import CommitFailedError, KafkaTimeoutError, TransactionAbortableError


def offsets_of(records: dict[TopicPartition, list[Any]]) -> dict[TopicPartition, OffsetAndMetadata]:
    """The offsets behind these records."""
    return {
        partition: OffsetAndMetadata(batch[-1].offset + 1, "", -1)
        for partition, batch in records.items()
    }


def rewind(consumer: KafkaConsumer) -> None:
    """Read again from what is committed, after an abort."""
    for partition in consumer.assignment():
        committed = consumer.committed(partition)
        if committed is None:
            consumer.seek_to_beginning(partition)
        else:
            consumer.seek(partition, committed)


def copy(consumer: KafkaConsumer, producer: KafkaProducer, is_over: threading.Event) -> None:
    """Copy until told to end."""
    while not is_over.is_set():
        records = consumer.poll(timeout_ms=200, max_records=50)
        if not records:
            continue
        producer.begin_transaction()
        try:
            for partition, batch in records.items():
                for record in batch:
                    origin = b"%d-%d:" % (partition.partition, record.offset)
                    producer.send("out", origin + record.value, key=record.key)
            producer.send_offsets_to_transaction(offsets_of(records), consumer.group_metadata())
            commit(producer)
        except (CommitFailedError, TransactionAbortableError):
            producer.abort_transaction()
            rewind(consumer)


def commit(producer: KafkaProducer) -> None:
    """Commit, however long it takes: a timeout does not tell what became of it."""
    while True:
        try:
            producer.commit_transaction()
            return
        except KafkaTimeoutError:
            print("a commit takes long", file=sys.stderr, flush=True)


def main() -> None:
    servers, transactional_id = sys.argv[1:]
    is_over = threading.Event()

    def watch() -> None:
        sys.stdin.read()
        is_over.set()

    threading.Thread(target=watch, daemon=True).start()
    with (
        KafkaConsumer(
            "in",
            bootstrap_servers=servers,
            group_id="copiers",
            isolation_level="read_committed",
            auto_offset_reset="earliest",
            enable_auto_commit=False,
            session_timeout_ms=6_000,
        ) as consumer,
        KafkaProducer(
            bootstrap_servers=servers,
            transactional_id=transactional_id,
            transaction_timeout_ms=10_000,
            linger_ms=1,
        ) as producer,
    ):
        producer.init_transactions()
        print("ready", flush=True)
        copy(consumer, producer, is_over)


if __name__ == "__main__":
    main()
