"""Topics for the connector's tests: filled by our producer, or written into the broker's log."""

from collections.abc import Iterable

from broker_stub import Broker
from broker_stub.log.batch.append_info import AppendOrigin
from pyclient import KafkaProducer
from tests.support.logs import append, marker, transactional_batch

FIRST_MS = 1_700_000_000_000


def fill(
    broker: Broker,
    topic: str,
    count: int,
    partitions: Iterable[int] = (0,),
    first_ms: int = FIRST_MS,
) -> None:
    """`count` records for each partition, a millisecond apart."""
    with KafkaProducer(bootstrap_servers=broker.bootstrap_servers) as producer:
        for number in range(count):
            for partition in partitions:
                producer.send(
                    topic, b"v%d" % number, partition=partition, timestamp_ms=first_ms + number
                )


def write_transaction(broker: Broker, topic: str, *values: bytes, committed: bool = True) -> None:
    """Records of a transaction, and its marker."""

    def write(node):
        log = node.replicas.partition(topic, 0).log
        append(log, transactional_batch(*values, producer_id=7), origin=AppendOrigin.COORDINATOR)
        append(log, marker(committed=committed, producer_id=7), origin=AppendOrigin.COORDINATOR)

    broker.call(write)


def delete_records(broker: Broker, topic: str, before: int, partition: int = 0) -> None:
    """As retention does: the log starts at `before`."""
    broker.call(lambda node: node.replicas.partition(topic, partition).log.delete_records(before))
