"""Asks the cluster about partitions and offsets. Runs on the driver only."""

import re
from typing import Any

from pyclient import KafkaConsumer, TopicPartition
from spark_connector.offsets import EARLIEST, LATEST, PartitionOffsets
from spark_connector.options import SourceOptions, Subscription


class UnknownTopicError(ValueError):
    """A subscribed topic does not exist."""


class OffsetReader:
    """One consumer, without a group, for as long as the query plans batches."""

    def __init__(self, options: SourceOptions) -> None:
        self._options = options
        self._consumer: Any = None

    def close(self) -> None:
        """Close the connection; the next query opens a new one."""
        if self._consumer is not None:
            self._consumer.close()
            self._consumer = None

    def partitions(self) -> list[TopicPartition]:
        """The partitions that the subscription means now, sorted."""
        subscription = self._options.subscription
        if subscription.partitions:
            return list(subscription.partitions)
        topics = self._topics(subscription)
        found = []
        for topic in topics:
            numbers = self._open().partitions_for_topic(topic)
            if not numbers and subscription.pattern is None:
                raise UnknownTopicError(
                    f"topic '{topic}' does not exist on {self._options.client['bootstrap.servers']}"
                )
            found += [TopicPartition(topic, number) for number in numbers or ()]
        return sorted(found)

    def _topics(self, subscription: Subscription) -> list[str]:
        if subscription.pattern is None:
            return list(subscription.topics)
        pattern = re.compile(subscription.pattern)
        return sorted(name for name in self._open().topics() if pattern.fullmatch(name))

    def earliest(self, partitions: list[TopicPartition]) -> PartitionOffsets:
        """The first offset that each partition still has."""
        return dict(self._open().beginning_offsets(partitions))

    def latest(self, partitions: list[TopicPartition]) -> PartitionOffsets:
        """The offset after each partition's last record."""
        return dict(self._open().end_offsets(partitions))

    def resolve(
        self, wanted: PartitionOffsets | str, partitions: list[TopicPartition], option: str
    ) -> PartitionOffsets:
        """Turn `earliest`, `latest`, -1 and -2 into numbers.

        Raises:
            ValueError: `wanted` names other partitions than the subscription has.
        """
        if wanted == "earliest":
            return self.earliest(partitions)
        if wanted == "latest":
            return self.latest(partitions)
        assert not isinstance(wanted, str)
        if set(wanted) != set(partitions):
            missing = sorted(set(partitions) - set(wanted))
            unknown = sorted(set(wanted) - set(partitions))
            raise ValueError(
                f"Option '{option}' must name every partition of the subscription and no other "
                f"(use -1 for latest, -2 for earliest): missing {_names(missing)}, "
                f"not subscribed {_names(unknown)}"
            )
        earliest = self.earliest([one for one in partitions if wanted[one] == EARLIEST])
        latest = self.latest([one for one in partitions if wanted[one] == LATEST])
        return {**wanted, **earliest, **latest}

    def _open(self) -> Any:
        if self._consumer is None:
            client = {key: v for key, v in self._options.client.items() if key != "group.id"}
            self._consumer = KafkaConsumer(**client, enable_auto_commit=False)
        return self._consumer


def _names(partitions: list[TopicPartition]) -> str:
    return ", ".join(f"{one.topic}-{one.partition}" for one in partitions) or "none"
