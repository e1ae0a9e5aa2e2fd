"""Three foreign clients behind one interface: produce, and read assigned partitions."""

from collections.abc import Sequence
from typing import Protocol

from pyclient.types import TopicPartition
from tests.interop.aiokafka_client import Aiokafka
from tests.interop.confluent_client import Confluent
from tests.interop.foreign_records import Record
from tests.interop.kafka_python_client import KafkaPython


class ForeignClient(Protocol):
    """What every client can do."""

    name: str

    def produce(
        self,
        bootstrap: str,
        topic: str,
        records: Sequence[Record],
        *,
        codec: str | None = None,
        acks: int | str = "all",
        idempotent: bool = False,
    ) -> list[int]:
        """Send the records; returns their offsets in order (meaningless with acks=0)."""

    def consume(
        self, bootstrap: str, topic: str, partitions: int, count: int
    ) -> dict[int, list[Record]]:
        """Read `count` records of the assigned partitions, from the start."""

    def offset_at(self, bootstrap: str, partition: TopicPartition, timestamp_ms: int) -> int:
        """The first offset at or after a time; -1 if there is none."""

    def read_since(
        self, bootstrap: str, partition: TopicPartition, timestamp_ms: int, count: int
    ) -> list[Record]:
        """Look up a time, seek to the offset found, and read `count` records from there."""


FOREIGN_CLIENTS: tuple[ForeignClient, ...] = (KafkaPython(), Confluent(), Aiokafka())
