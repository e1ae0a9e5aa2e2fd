"""Java's transactional programs and its `kafka-transactions` tool on our broker.

Java's producer is the one foreign client that speaks transaction version 2.
"""

import json
import re
import subprocess
from collections.abc import Iterator
from pathlib import Path

import pytest

from broker_stub import Broker
from pyclient import KafkaConsumer, KafkaProducer, TopicPartition
from pyclient.protocol.messages.end_txn import EndTxnRequest
from pyclient.protocol.messages.produce import ProduceRequest
from tests.integration.broker_stub.raw_client import RawClient
from tests.interop.apache_kafka import jars, run_tool
from tests.support.broker_load import create_topic
from tests.support.server_process import ServerProcess
from tests.support.transaction_script import Producer, TransactionScript

SOURCE, TARGET = "numbers", "copies"
COUNT = 3000
KILLS = 3
SECONDS = 90

_TOOLS = "org.apache.kafka.tools."

pytestmark = [pytest.mark.timeout(300), pytest.mark.usefixtures("kafka_jars")]


class Copier:
    """Java's TransactionalMessageCopier, which prints what it has left after every transaction."""

    def __init__(self, servers: str) -> None:
        arguments = {
            "broker-list": servers,
            "input-topic": SOURCE,
            "input-partition": "0",
            "output-topic": TARGET,
            "max-messages": str(COUNT),
            "consumer-group": "copiers",
            "transaction-size": "100",
            "transaction-timeout": "60000",
            "transactional-id": "copier",
        }
        options = [text for name, value in arguments.items() for text in (f"--{name}", value)]
        self.process = subprocess.Popen(
            ["java", "-Xmx256m", "-cp", f"{jars()}/*", f"{_TOOLS}TransactionalMessageCopier",
             *options, "--enable-random-aborts"],
            stdout=subprocess.PIPE,
            stderr=subprocess.DEVNULL,
            text=True,
        )  # fmt: skip

    def progress(self) -> Iterator[int]:
        """How many messages are left, once after every transaction."""
        assert self.process.stdout is not None
        for line in self.process.stdout:
            if line.startswith("{"):
                yield json.loads(line)["remaining"]

    def end(self) -> None:
        self.process.kill()
        self.process.communicate()


def write_numbers(servers: str) -> None:
    create_topic(servers, SOURCE, 1)
    create_topic(servers, TARGET, 2)
    with KafkaProducer(bootstrap_servers=servers) as producer:
        for number in range(COUNT):
            producer.send(SOURCE, b"%d" % number)


def read_numbers(servers: str) -> list[int]:
    with KafkaConsumer(
        bootstrap_servers=servers, isolation_level="read_committed", auto_offset_reset="earliest"
    ) as consumer:
        partitions = [TopicPartition(TARGET, 0), TopicPartition(TARGET, 1)]
        consumer.assign(partitions)
        ends = consumer.end_offsets(partitions)
        found: list[int] = []
        while any(consumer.position(one) < ends[one] for one in partitions):
            for records in consumer.poll(1000).values():
                found += [int(record.value) for record in records]
        return found


def test_the_copier_copies_every_record_once_though_the_broker_is_killed(tmp_path: Path):
    with ServerProcess("--data-dir", tmp_path) as server:
        write_numbers(server.bootstrap_servers)
        copier = Copier(server.bootstrap_servers)
        try:
            kills = [COUNT - COUNT * number // (KILLS + 1) for number in range(1, KILLS + 1)]
            for remaining in copier.progress():
                if kills and remaining <= kills[0]:
                    kills.pop(0)
                    server.kill()
                    server.start()
            assert copier.process.wait(SECONDS) == 0
        finally:
            copier.end()
        assert not kills
        assert sorted(read_numbers(server.bootstrap_servers)) == list(range(COUNT))


@pytest.mark.parametrize(("level", "end", "produce"), [(1, 4, 11), (2, 5, 13)])
def test_java_speaks_the_version_that_is_configured(level: int, end: int, produce: int):
    with Broker(config={"transaction.version": level}) as broker:
        write_numbers(broker.bootstrap_servers)
        broker.requests.clear()
        copier = Copier(broker.bootstrap_servers)
        try:
            list(copier.progress())
            assert copier.process.wait(SECONDS) == 0
        finally:
            copier.end()
        assert sorted(read_numbers(broker.bootstrap_servers)) == list(range(COUNT))
        ends = {one.api_version for one in broker.requests.received(EndTxnRequest)}
        produces = {one.api_version for one in broker.requests.received(ProduceRequest)}
        assert (ends, produces) == ({end}, {produce})


def columns(printed: str) -> list[list[str]]:
    """The words of a table's rows, without its head."""
    lines = [line for line in printed.splitlines() if line.strip() and "WARN" not in line]
    return [line.split() for line in lines[1:]]


def test_the_transactions_tool_lists_describes_finds_and_aborts():
    with Broker() as broker, RawClient(broker.port) as client:
        server = ["--bootstrap-server", broker.bootstrap_servers]
        broker.create_topic("transfers", partitions=1)
        script = TransactionScript(client.ask, "clerk")
        script.find()
        producer = script.started()
        script.produce(producer, b"a")
        # An open transaction that no coordinator knows, as older brokers left some.
        lost = Producer(producer.id + 500, 3)
        old = build(lost)
        broker.call(lambda node: node.replicas.append(
            node.replicas.partition("transfers", 0), bytearray(old)
        ))  # fmt: skip
        tool = f"{_TOOLS}TransactionsCommand"

        listed = columns(run_tool(tool, [*server, "list"]))
        assert listed == [["clerk", "1", str(producer.id), "Ongoing"]]
        described = run_tool(tool, [*server, "describe", "--transactional-id", "clerk"])
        assert re.search(rf"\b{producer.id}\b.*Ongoing.*transfers-0", described)
        producers = columns(
            run_tool(
                tool, [*server, "describe-producers", "--topic", "transfers", "--partition", "0"]
            )
        )
        assert {row[0] for row in producers} == {str(producer.id), str(lost.id)}
        hanging = columns(
            run_tool(
                tool, [*server, "find-hanging", "--topic", "transfers", "--partition", "0",
                       "--max-transaction-timeout", "0"]
            )
        )  # fmt: skip
        (row,) = hanging
        assert row[:3] == ["transfers", "0", str(lost.id)]
        start = row[5]
        run_tool(
            tool, [*server, "abort", "--topic", "transfers", "--partition", "0",
                   "--start-offset", start]
        )  # fmt: skip
        assert script.end(producer).error == 0
        assert script.read() == [b"a"]
        assert script.end_offset() == script.end_offset(committed_only=False)


def build(producer: Producer) -> bytes:
    """A batch in a transaction of long ago."""
    from tests.support.node_harness import batch

    return batch(
        b"lost",
        transactional=True,
        producer_id=producer.id,
        producer_epoch=producer.epoch,
        base_sequence=0,
        timestamp_ms=1_700_000_000_000,
    )
