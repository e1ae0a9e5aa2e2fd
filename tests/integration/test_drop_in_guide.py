"""The examples of docs/drop-in.md run, and do what they promise."""

import re
from pathlib import Path
from typing import Any

import confluent_kafka
import pytest

from broker_stub import Broker
from pyclient import KafkaProducer

GUIDE = (Path(__file__).parents[2] / "docs" / "drop-in.md").read_text(encoding="utf-8")
EXAMPLES = re.findall(r"```python\n(.*?)```", GUIDE, re.DOTALL)
KEYS = [b"%d" % number for number in range(100)]


def run_example(number: int, broker: Broker) -> dict[str, Any]:
    namespace: dict[str, Any] = {}
    exec(EXAMPLES[number].replace("localhost:9092", broker.bootstrap_servers), namespace)
    return namespace


@pytest.mark.parametrize("number", range(len(EXAMPLES)))
def test_an_example_runs(kafka_broker: Broker, number: int) -> None:
    run_example(number, kafka_broker)


def test_its_partitioner_sends_keys_where_librdkafka_does(kafka_broker: Broker) -> None:
    kafka_broker.create_topic("orders", partitions=7)
    theirs: dict[bytes, int] = {}
    peer = confluent_kafka.Producer({"bootstrap.servers": kafka_broker.bootstrap_servers})
    for key in KEYS:
        peer.produce(
            "orders",
            key=key,
            on_delivery=lambda _, message: theirs.update({message.key(): message.partition()}),
        )
    assert peer.flush(20) == 0

    partitioner = run_example(-1, kafka_broker)["consistent_random"]
    with KafkaProducer(
        bootstrap_servers=kafka_broker.bootstrap_servers, partitioner=partitioner
    ) as producer:
        ours = {key: producer.send("orders", b"v", key=key).get(20).partition for key in KEYS}
        producer.send("orders", b"v").get(20)
    assert ours == theirs


def test_what_is_sent_in_a_coroutine_comes_to_the_consumer_in_its_thread(
    kafka_broker: Broker,
) -> None:
    (number,) = [n for n, example in enumerate(EXAMPLES) if "asyncio" in example]
    found = run_example(number, kafka_broker)
    assert found["metadata"].offset == 0
    ((record,),) = found["records"].values()
    assert record.value == b"one espresso"
