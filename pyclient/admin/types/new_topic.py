"""Topics that do not exist yet, in all the forms that kafka-python takes."""

from collections.abc import Iterable, Mapping
from typing import Any, Final, TypeAlias

from pyclient.protocol.messages.create_topics import (
    CreatableReplicaAssignment,
    CreatableTopic,
    CreatableTopicConfig,
)

BROKER_DEFAULT: Final = -1


class NewTopic:
    """A topic to be made; -1 leaves a count to the broker's defaults."""

    def __init__(
        self,
        name: str,
        num_partitions: int = BROKER_DEFAULT,
        replication_factor: int = BROKER_DEFAULT,
        replica_assignments: Mapping[int, list[int]] | None = None,
        topic_configs: Mapping[str, str] | None = None,
    ) -> None:
        """Describe a topic.

        Args:
            name: the topic's name.
            num_partitions: how many; -1 too when `replica_assignments` says it.
            replication_factor: how many replicas each has; -1 as above.
            replica_assignments: broker ids by partition, the preferred leader first.
            topic_configs: configuration entries, as in `{"retention.ms": "60000"}`.
        """
        self.name = name
        self.num_partitions = num_partitions
        self.replication_factor = replication_factor
        self.replica_assignments = dict(replica_assignments or {})
        self.topic_configs = dict(topic_configs or {})

    def to_message(self) -> CreatableTopic:
        """The topic as the request carries it."""
        return CreatableTopic(
            name=self.name,
            num_partitions=self.num_partitions,
            replication_factor=self.replication_factor,
            assignments=[
                CreatableReplicaAssignment(partition_index=partition, broker_ids=list(brokers))
                for partition, brokers in self.replica_assignments.items()
            ],
            configs=[
                CreatableTopicConfig(name=key, value=None if value is None else str(value))
                for key, value in self.topic_configs.items()
            ],
        )


NewTopics: TypeAlias = Iterable[str | NewTopic] | Mapping[str, Mapping[str, Any]]


def new_topics_of(new_topics: NewTopics) -> list[NewTopic]:
    """The topics that a program asks for, whatever form it uses.

    Raises:
        ValueError: there are none.
    """
    if isinstance(new_topics, Mapping):
        topics = [
            NewTopic(
                name,
                num_partitions=options.get("num_partitions", BROKER_DEFAULT),
                replication_factor=options.get("replication_factor", BROKER_DEFAULT),
                replica_assignments=options.get("assignments"),
                topic_configs=options.get("configs"),
            )
            for name, options in new_topics.items()
        ]
    else:
        topics = [NewTopic(one) if isinstance(one, str) else one for one in new_topics]
    if not topics:
        raise ValueError("there is no topic to create")
    return topics
