"""What became of the fetches, for `KafkaConsumer.health`.

Written by the I/O thread. Other threads read single entries, which are replaced whole.
"""

from collections.abc import Collection
from typing import NamedTuple

from pyclient.types import TopicPartition


class FetchEvent(NamedTuple):
    """A fetch that was sent, or answered."""

    at_ms: float
    partitions: Collection[TopicPartition]


class FetchFailure(NamedTuple):
    """A fetch that failed."""

    at_ms: float
    reason: str


class FetchWatch:
    """The last events of each connection and partition.

    Attributes:
        in_flight, answered: by connection.
        node_failures: by connection, since its last answer.
        partition_failures: since the partition's last data.
        mentioned: when a response last said something about a partition.
        is_full: whether fetching pauses until the program reads.
    """

    def __init__(self) -> None:
        self.in_flight: dict[int, FetchEvent] = {}
        self.answered: dict[int, FetchEvent] = {}
        self.node_failures: dict[int, FetchFailure] = {}
        self.partition_failures: dict[TopicPartition, FetchFailure] = {}
        self.mentioned: dict[TopicPartition, float] = {}
        self.is_full = False

    # --- the I/O thread ----------------------------------------------------------------------

    def on_sent(
        self, connection: int, partitions: Collection[TopicPartition], now_ms: float
    ) -> None:
        """A fetch is on its way."""
        self.in_flight[connection] = FetchEvent(now_ms, partitions)

    def on_answered(self, connection: int, now_ms: float) -> None:
        """A response came that can be used."""
        sent = self.in_flight.pop(connection, None)
        if sent is not None:
            self.answered[connection] = sent._replace(at_ms=now_ms)
        self.node_failures.pop(connection, None)

    def on_failed(self, connection: int, reason: str, now_ms: float) -> None:
        """No response came, or one that cannot be used."""
        self.in_flight.pop(connection, None)
        self.node_failures[connection] = FetchFailure(now_ms, reason)

    def on_partition(self, partition: TopicPartition, error: str | None, now_ms: float) -> None:
        """A response has data or an error of this partition."""
        self.mentioned[partition] = now_ms
        if error is not None:
            self.partition_failures[partition] = FetchFailure(now_ms, error)
        elif self.partition_failures:
            self.partition_failures.pop(partition, None)

    def keep(self, partitions: Collection[TopicPartition]) -> None:
        """Forget all other partitions."""
        for entries in (self.mentioned, self.partition_failures):
            for partition in [one for one in entries if one not in partitions]:
                del entries[partition]

    # --- any thread --------------------------------------------------------------------------

    def asked_since_ms(self, partition: TopicPartition) -> tuple[int, float] | None:
        """The connection on which a fetch of it is in flight, and since when."""
        for connection, sent in list(self.in_flight.items()):
            if partition in sent.partitions:
                return connection, sent.at_ms
        return None

    def answered_at_ms(self, partition: TopicPartition) -> float | None:
        """When a fetch of it was last answered without an error."""
        found = [
            event.at_ms for event in list(self.answered.values()) if partition in event.partitions
        ]
        failure = self.partition_failures.get(partition)
        if failure is not None:
            found = [at_ms for at_ms in found if at_ms > failure.at_ms]
        return max(found, default=None)
