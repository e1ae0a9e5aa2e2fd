"""The options as types: generated from the rows, and what mypy says of programs that use them."""

import subprocess
import sys
from pathlib import Path

import pytest

from pyclient.config import admin, consumer, option_types, options, producer
from pyclient.config.definition import ConfigDefinition
from tests.support.source_tree import ROOT

FILE = Path(options.__file__)


def test_the_file_in_the_repository_is_the_one_that_the_rows_give() -> None:
    assert FILE.read_text(encoding="utf-8") == option_types.module(), "run `make docs`"


@pytest.mark.parametrize(
    ("typed", "definition"),
    [
        (options.ProducerOptions, producer.DEFINITION),
        (options.ConsumerOptions, consumer.DEFINITION),
        (options.AdminOptions, admin.DEFINITION),
    ],
)
def test_every_option_has_a_type(typed: type, definition: ConfigDefinition) -> None:
    names = {key.replace(".", "_") for key in definition.keys}
    assert names <= set(typed.__annotations__)


GOOD = """
import json
from typing import Any

from pyclient import (
    ConsumerRebalanceListener,
    KafkaAdminClient,
    KafkaConsumer,
    KafkaProducer,
    OffsetAndMetadata,
    TopicPartition,
)
from pyclient.admin import NewTopic
from pyclient.consumer.fetcher import ConsumerRecord
from pyclient.producer.future import RecordMetadata
from pyclient.structs import OffsetAndTimestamp


class Listener(ConsumerRebalanceListener):
    def on_partitions_revoked(self, revoked: set[TopicPartition]) -> None:
        print(sorted(revoked))

    def on_partitions_assigned(self, assigned: set[TopicPartition]) -> None:
        print(sorted(assigned))


def produce(servers: list[str]) -> int:
    producer = KafkaProducer(
        bootstrap_servers=servers,
        acks="all",
        linger_ms=5,
        compression_type="zstd",
        retries=3,
        key_serializer=str.encode,
        value_serializer=lambda value: json.dumps(value).encode(),
    )
    metadata: RecordMetadata = producer.send("orders", {"n": 1}, key="a").get(timeout=10)
    producer.flush()
    return metadata.offset


def dotted(configuration: dict[str, Any]) -> KafkaProducer:
    return KafkaProducer(**configuration)


def consume(servers: str) -> list[ConsumerRecord]:
    consumer = KafkaConsumer(
        bootstrap_servers=servers,
        group_id="kitchen",
        enable_auto_commit=False,
        value_deserializer=json.loads,
    )
    consumer.subscribe(["orders"], listener=Listener())
    found: list[ConsumerRecord] = []
    for partition, records in consumer.poll(timeout_ms=100).items():
        found += records
        consumer.commit({partition: OffsetAndMetadata(records[-1].offset + 1, "", -1)})
        times: dict[TopicPartition, OffsetAndTimestamp | None]
        times = consumer.offsets_for_times({partition: 0})
        print(times)
        number: int | None = consumer.committed(partition)
        whole: OffsetAndMetadata | None = consumer.committed(partition, metadata=True)
        print(number, whole)
    return found


def manage(servers: str) -> None:
    with KafkaAdminClient(bootstrap_servers=servers, client_id="office") as admin:
        admin.create_topics([NewTopic("orders", num_partitions=3, replication_factor=1)])
"""

WRONG = {
    "a misspelt option": ("linger_ms=5", "lingr_ms=5", 'did you mean "linger_ms"'),
    "an option of another type": ("linger_ms=5", 'linger_ms="soon"', 'expected "int"'),
    "a positional dict": (
        "KafkaProducer(**configuration)",
        "KafkaProducer(configuration)",
        "Never",
    ),
    "a wrong argument of a method": (
        'send("orders", {"n": 1}',
        "send(7, {}",
        'expected "str"',
    ),
    "a method that is not there": (
        "producer.flush()",
        "producer.produce()",
        'no attribute "produce"',
    ),
    "an admin option": ('client_id="office"', "client_id=7", 'expected "str | None"'),
    "a consumer option": ('group_id="kitchen"', 'groupid="kitchen"', 'did you mean "group_id"'),
}


def mypy(tmp_path: Path, *programs: str) -> str:
    names = []
    for number, program in enumerate(programs):
        file = tmp_path / f"program_{number}.py"
        file.write_text(program, encoding="utf-8")
        names.append(str(file))
    done = subprocess.run(
        [sys.executable, "-m", "mypy", "--strict", "--config-file=", *names],
        cwd=ROOT,
        capture_output=True,
        text=True,
        check=False,
    )
    return done.stdout + done.stderr


def test_mypy_passes_a_typed_program_and_finds_the_mistakes_in_others(tmp_path: Path) -> None:
    wrong = [GOOD.replace(right, mistake, 1) for right, mistake, _ in WRONG.values()]
    assert GOOD not in wrong
    told = mypy(tmp_path, GOOD, *wrong)
    assert "program_0.py" not in told, told
    for number, (name, (*_, said)) in enumerate(WRONG.items(), 1):
        lines = [line for line in told.splitlines() if f"program_{number}.py" in line]
        assert any(said in line for line in lines), (name, lines)
