"""Our idempotent producer on Apache Kafka, through connections that break in mid-answer."""

from pathlib import Path

from pyclient import KafkaProducer
from tests.interop.apache_kafka import ApacheKafka
from tests.interop.test_our_producer import read_with_confluent
from tests.support.cutting_proxy import CuttingProxy

RECORDS = 3_000
PARTITIONS = 3


def test_each_record_is_written_once_and_in_order_whatever_breaks(
    kafka_jars: None, tmp_path: Path
) -> None:
    config = {"num.partitions": str(PARTITIONS)}
    node = ApacheKafka(tmp_path, config)
    # Long enough for metadata to pass, and short enough for most answers to Produce not to.
    with CuttingProxy(node.port, (500, 3_000), seed=7) as proxy:
        config["advertised.listeners"] = f"PLAINTEXT://127.0.0.1:{proxy.port}"
        node.start()
        try:
            servers = f"127.0.0.1:{proxy.port}"
            with KafkaProducer(
                bootstrap_servers=servers,
                batch_size=500,
                batch_max_size=500,
                linger_ms=1,
                retry_backoff_ms=5,
                reconnect_backoff_ms=5,
            ) as producer:
                futures = [
                    producer.send("orders", b"%d" % number, partition=number % PARTITIONS)
                    for number in range(RECORDS)
                ]
                producer.flush(timeout=90)
                retries = producer.metrics()["producer-metrics"]["record-retry-total"]
            proxy.is_cutting = False
            found = read_with_confluent(servers, "orders", RECORDS)
        finally:
            node.stop()
    assert proxy.cuts > 3
    assert retries > 0
    expected = {
        (future.get(0).partition, future.get(0).offset): b"%d" % number
        for number, future in enumerate(futures)
    }
    assert {(one.partition(), one.offset()): one.value() for one in found} == expected
    for partition in range(PARTITIONS):
        values = [int(one.value()) for one in found if one.partition() == partition]
        assert values == list(range(partition, RECORDS, PARTITIONS))
