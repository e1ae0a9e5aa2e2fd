"""Partitions: more of them, and where they are."""

from collections.abc import Iterable, Mapping
from typing import Any, TypeAlias

from pyclient.admin.sending.calls import AdminCalls
from pyclient.admin.sending.work import Work, raise_first_error
from pyclient.admin.types.acls import operation_names
from pyclient.admin.types.topics import (
    GrownTopic,
    GrownTopics,
    PagedTopicDescription,
    TopicPartitionsCursor,
    TopicPartitionsPage,
)
from pyclient.protocol.messages.create_partitions import (
    CreatePartitionsAssignment,
    CreatePartitionsRequest,
    CreatePartitionsTopic,
)
from pyclient.protocol.messages.describe_topic_partitions import (
    Cursor,
    DescribeTopicPartitionsRequest,
    DescribeTopicPartitionsResponse,
    TopicRequest,
)


class NewPartitions:
    """The new total number of a topic's partitions, and the new ones' brokers."""

    def __init__(self, total_count: int, new_assignments: list[list[int]] | None = None) -> None:
        """Describe the growth.

        Args:
            total_count: the number of partitions afterwards.
            new_assignments: broker ids for each new partition; by default the broker chooses.
        """
        self.total_count = total_count
        self.new_assignments = new_assignments


Growth: TypeAlias = Mapping[str, int | Mapping[str, Any] | NewPartitions]


class PartitionCalls(AdminCalls):
    """The calls that add and describe partitions."""

    def create_partitions(
        self,
        topic_partitions: Growth,
        timeout_ms: float | None = None,
        validate_only: bool = False,
        raise_errors: bool = True,
    ) -> GrownTopics:
        """Give topics more partitions; see `create_topics` for the other arguments.

        Args:
            topic_partitions: by topic the number of partitions afterwards, a `NewPartitions`, or
                a dict of `count` and `assignments`.
            timeout_ms: how long the call may take.
            validate_only: only check whether it could be done.
            raise_errors: raise the first error; otherwise they are in the result.

        Raises:
            KafkaError: a topic could not grow, as in `InvalidPartitionsError`.
        """
        if not topic_partitions:
            raise ValueError("there is no topic to give partitions to")
        deadline = self._requests.deadline(timeout_ms)
        outcomes = self._requests.settle(
            Work(
                {name: _growth(name, wanted) for name, wanted in topic_partitions.items()},
                lambda pending: CreatePartitionsRequest(
                    topics=pending,
                    timeout_ms=int(deadline.remaining_ms()),
                    validate_only=validate_only,
                ),
                lambda response: ((one.name, one) for one in response.results),
                lambda name: f"topic {name!r}",
                self._requests.to_controller,
                deadline,
                repeatable=validate_only,
            )
        )
        if raise_errors:
            raise_first_error(outcomes)
        return GrownTopics(results=[GrownTopic.of(one.result) for one in outcomes.values()])

    def describe_topic_partitions(
        self,
        topics: Iterable[str],
        response_partition_limit: int = 2000,
        cursor: Mapping[str, Any] | None = None,
    ) -> TopicPartitionsPage:
        """Topics with their partitions, page by page: `topics`, and the `next_cursor` if any.

        Needs Kafka 3.7; `describe_topics` works on any. It tells the replicas too that are
        eligible as leaders though not in sync.

        Args:
            topics: their names.
            response_partition_limit: how many partitions a page has at most.
            cursor: where the page starts, from the last one's `next_cursor`.
        """
        request = DescribeTopicPartitionsRequest(
            topics=[TopicRequest(name=name) for name in topics],
            response_partition_limit=response_partition_limit,
            cursor=None if cursor is None else Cursor(**cursor),
        )
        deadline = self._requests.deadline()
        response = self._requests.ask(request, DescribeTopicPartitionsResponse, deadline)
        described = []
        for one in response.topics:
            topic = PagedTopicDescription.of(one)
            topic["topic_authorized_operations"] = operation_names(one.topic_authorized_operations)
            described.append(topic)
        following = response.next_cursor
        return TopicPartitionsPage(
            topics=described,
            next_cursor=None if following is None else TopicPartitionsCursor.of(following),
        )


def _growth(name: str, wanted: int | Mapping[str, Any] | NewPartitions) -> CreatePartitionsTopic:
    if isinstance(wanted, int):
        wanted = NewPartitions(wanted)
    elif isinstance(wanted, Mapping):
        wanted = NewPartitions(wanted["count"], wanted.get("assignments"))
    assignments = None
    if wanted.new_assignments is not None:
        assignments = [
            CreatePartitionsAssignment(broker_ids=list(brokers))
            for brokers in wanted.new_assignments
        ]
    return CreatePartitionsTopic(name=name, count=wanted.total_count, assignments=assignments)
