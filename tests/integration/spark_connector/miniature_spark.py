"""Spark's side of the Python Data Source API in a few lines: plans and tasks without a JVM.

Everything between driver and tasks goes through pickle, every offset through JSON text, as with
Spark. The order of the calls is that of Spark 4.3 (facts seen there: `initialOffset` twice before
the first batch, none after a restart; `commit` one batch late).
"""

import json
import pickle
from collections.abc import Iterator
from typing import Any

import pyarrow as pa
from pyspark.sql.datasource import InputPartition
from pyspark.sql.types import StructType

from broker_stub import Broker
from spark_connector.data_source import KafkaDataSource

Row = dict[str, Any]


def options_of(broker: Broker | str, options: dict[str, Any]) -> dict[str, str]:
    servers = broker if isinstance(broker, str) else broker.bootstrap_servers
    given = {name: str(value) for name, value in options.items()}
    return {"kafka.bootstrap.servers": servers, "kafkaConsumer.pollTimeoutMs": "20000", **given}


def plan(broker: Broker | str, **options: Any) -> tuple[Any, list[Any]]:
    """A batch query's reader, and its tasks."""
    reader: Any = KafkaDataSource(options_of(broker, options)).reader(StructType())
    return reader, list(reader.partitions())


def read(broker: Broker | str, **options: Any) -> list[Row]:
    """The rows of a batch query."""
    reader, tasks = plan(broker, **options)
    return [row for task in tasks for row in rows_of(reader, task)]


def rows_of(reader: Any, task: InputPartition) -> Iterator[Row]:
    for batch in batches_of(reader, task):
        yield from batch.to_pylist()


def batches_of(reader: Any, task: InputPartition) -> Iterator[pa.RecordBatch]:
    yield from pickle.loads(pickle.dumps(reader)).read(pickle.loads(pickle.dumps(task)))


def offsets_of(rows: list[Row]) -> list[tuple[int, int]]:
    return sorted((row["partition"], row["offset"]) for row in rows)


class StreamQuery:
    """A streaming query, from start to stop; the checkpoint is passed on from one to the next."""

    def __init__(
        self, broker: Broker | str, checkpoint: "list[str] | None" = None, **options: Any
    ) -> None:
        source = KafkaDataSource(options_of(broker, options))
        self.reader: Any = source.streamReader(StructType())
        self._limit = self.reader.getDefaultReadLimit()
        self.checkpoint = checkpoint if checkpoint is not None else []
        """The end of each batch, as the text that Spark keeps."""

    def available_now(self) -> "StreamQuery":
        self.reader.prepareForTriggerAvailableNow()
        return self

    def start_of_next(self) -> str:
        if self.checkpoint:
            return self.checkpoint[-1]
        return json.dumps(self.reader.initialOffset())

    def next_end(self) -> str | None:
        """The end of the next batch; None if there is none to run."""
        start = self.start_of_next()
        end = json.dumps(self.reader.latestOffset(json.loads(start), self._limit))
        return None if self.checkpoint and end == start else end

    def run_batch(self, end: str) -> list[Row]:
        """Plan and read a batch, and keep its end."""
        if len(self.checkpoint) > 1:
            self.reader.commit(json.loads(self.checkpoint[-1]))
        tasks = self.tasks(end)
        rows = [row for task in tasks for row in rows_of(self.reader, task)]
        self.checkpoint.append(end)
        return rows

    def tasks(self, end: str) -> list[InputPartition]:
        return list(self.reader.partitions(json.loads(self.start_of_next()), json.loads(end)))

    def step(self) -> list[Row] | None:
        """The rows of the next batch; None if Spark would not run one."""
        end = self.next_end()
        return None if end is None else self.run_batch(end)

    def drain(self) -> list[list[Row]]:
        """Run batches until there is none."""
        batches = []
        while (rows := self.step()) is not None:
            batches.append(rows)
        return batches

    def __enter__(self) -> "StreamQuery":
        return self

    def __exit__(self, *_: object) -> None:
        self.reader.stop()
