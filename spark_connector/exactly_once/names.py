"""The names of transactional ids and groups, and what tasks tell the driver.

Everything belongs to a key: `prefix:queryId` of a stream, the prefix alone of a batch write.
"""

import re
from dataclasses import dataclass
from typing import Final, NamedTuple

from pyspark.sql.datasource import WriterCommitMessage

from pyclient import PreparedTransaction

GENERATIONS: Final = 8
_ATTEMPTS: Final = 8


class Attempt(NamedTuple):
    """One attempt of a task.

    Attributes:
        key: of the query, or of the batch write.
        number: of the batch.
        partition: the task's number in Spark.
        attempt: 0, or more for retries and speculative copies.
        generation: drawn by the driver for each batch.
    """

    key: str
    number: int
    partition: int
    attempt: int
    generation: int

    @property
    def transactional_id(self) -> str:
        """Of a bounded ring for each task.

        Attempts of one batch never share an id: initializing it aborts what its last user left
        open, which may be the finished winner. A zombie of another driver shares it by chance.
        """
        slot = self.generation % GENERATIONS * _ATTEMPTS + self.attempt % _ATTEMPTS
        return f"{self.key}:task:{self.partition}:{slot}"


class TaskTransaction(NamedTuple):
    """A transaction that a task has left open.

    Attributes:
        partition: the task's number in Spark.
        token: stands in the proof that the transaction commits along with its records.
    """

    partition: int
    token: str
    prepared: PreparedTransaction


@dataclass
class PreparedTask(WriterCommitMessage):
    """What a task tells the driver; no transaction if it had no rows to write."""

    key: str
    number: int
    transaction: TaskTransaction | None
    count: int = 0


def stream_key(prefix: str, query_id: str) -> str:
    return f"{prefix}:{query_id}"


def driver_id(key: str) -> str:
    """The transactional id of the driver."""
    return f"{key}:driver"


def decided_group(key: str) -> str:
    """The group whose committed offset is the number of the next batch to decide."""
    return f"{key}:decided"


def proof_group(key: str, partition: int) -> str:
    """The group whose committed offset proves that a task's transaction was committed."""
    return f"{key}:proof:{partition}"


def is_task_id(key: str, transactional_id: str) -> bool:
    return re.fullmatch(f"{re.escape(key)}:task:[0-9]+:[0-9]+", transactional_id) is not None
