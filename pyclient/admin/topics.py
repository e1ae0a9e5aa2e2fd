"""Topics: create, delete, list, describe."""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from typing import Any, TypeAlias

from pyclient.admin.requests import AdminRequests
from pyclient.admin.results import as_dict
from pyclient.protocol.messages.create_topics import (
    CreatableReplicaAssignment,
    CreatableTopic,
    CreatableTopicConfig,
    CreatableTopicResult,
    CreateTopicsRequest,
)
from pyclient.protocol.messages.delete_topics import DeletableTopicResult, DeleteTopicsRequest
from pyclient.protocol.messages.metadata import (
    MetadataRequest,
    MetadataRequestTopic,
    MetadataResponse,
)

BROKER_DEFAULT = -1


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


def create_topics(
    requests: AdminRequests, new_topics: NewTopics, timeout_ms: float | None, validate_only: bool
) -> dict[str, CreatableTopicResult]:
    """Have topics made; the outcome by name."""
    topics = _new_topics(new_topics)
    deadline = requests.deadline(timeout_ms)
    return requests.settle(
        {topic.name: topic.to_message() for topic in topics},
        lambda pending: CreateTopicsRequest(
            topics=pending,
            timeout_ms=int(deadline.remaining_ms()),
            validate_only=validate_only,
        ),
        lambda response: ((one.name, one) for one in response.topics),
        deadline,
    )


def _new_topics(new_topics: NewTopics) -> list[NewTopic]:
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


def delete_topics(
    requests: AdminRequests, topics: Iterable[str], timeout_ms: float | None
) -> dict[str, DeletableTopicResult]:
    """Have topics deleted; the outcome by name."""
    names = {name: name for name in topics}
    if not names:
        raise ValueError("there is no topic to delete")
    deadline = requests.deadline(timeout_ms)
    return requests.settle(
        names,
        lambda pending: DeleteTopicsRequest(
            topic_names=pending, timeout_ms=int(deadline.remaining_ms())
        ),
        lambda response: ((one.name, one) for one in response.responses),
        deadline,
    )


def describe_topics(requests: AdminRequests, topics: Iterable[str] | None) -> list[dict[str, Any]]:
    """Topics with their partitions, as dictionaries; None means all topics."""
    request = MetadataRequest(
        topics=None if topics is None else [MetadataRequestTopic(name=name) for name in topics],
        allow_auto_topic_creation=False,
    )
    response = requests.ask(request, requests.deadline(None))
    assert isinstance(response, MetadataResponse)
    described = [as_dict(topic) for topic in response.topics]
    for topic in described:
        del topic["topic_authorized_operations"]  # not asked for
    return described
