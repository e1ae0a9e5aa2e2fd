"""Topics: create, delete, list, describe."""

from collections.abc import Callable, Iterable, Mapping
from typing import Final

from pyclient.admin.sending.calls import AdminCalls
from pyclient.admin.sending.results import Outcome
from pyclient.admin.sending.topic_metadata import Topic, metadata_request, topics_in
from pyclient.admin.sending.work import Work, raise_first_error
from pyclient.admin.types.acls import operation_names
from pyclient.admin.types.configs import described_entry
from pyclient.admin.types.new_topic import NewTopics, new_topics_of
from pyclient.admin.types.topics import (
    CreatedTopic,
    CreatedTopics,
    DeletedTopic,
    DeletedTopics,
    TopicDescription,
)
from pyclient.errors import (
    KafkaError,
    LeaderNotAvailableError,
    UnsupportedVersionError,
    for_code,
)
from pyclient.protocol.messages.create_topics import CreatableTopicResult, CreateTopicsRequest
from pyclient.protocol.messages.delete_topics import (
    DeletableTopicResult,
    DeleteTopicsRequest,
    DeleteTopicState,
)
from pyclient.protocol.messages.metadata import MetadataResponse
from pyclient.timers import Deadline
from pyclient.types import format_uuid

_WAIT_TIMEOUT_MS: Final = 10_000


class TopicCalls(AdminCalls):
    """The calls that create, delete and describe topics."""

    def create_topics(
        self,
        new_topics: NewTopics,
        timeout_ms: float | None = None,
        validate_only: bool = False,
        raise_errors: bool = True,
        wait_for_metadata: bool = False,
    ) -> CreatedTopics:
        """Create topics.

        Args:
            new_topics: names, `NewTopic`s, or a dict of options by name: `num_partitions`,
                `replication_factor`, `assignments`, `configs`. Brokers before 2.4 need both
                numbers.
            timeout_ms: how long the call may take; by default `default_api_timeout_ms`.
            validate_only: only check whether they could be created.
            raise_errors: raise the first error; otherwise they are in the result.
            wait_for_metadata: return when they can be used; see `wait_for_topics`.

        Raises:
            KafkaError: a topic could not be created, as in `TopicExistsError`; or none of them,
                as in `KafkaTimeoutError`.
        """
        if validate_only and wait_for_metadata:
            raise ValueError("validate_only creates nothing that wait_for_metadata could see")
        deadline = self._requests.deadline(timeout_ms)
        outcomes = self._requests.settle(
            Work(
                {topic.name: topic.to_message() for topic in new_topics_of(new_topics)},
                lambda pending: CreateTopicsRequest(
                    topics=pending,
                    timeout_ms=int(deadline.remaining_ms()),
                    validate_only=validate_only,
                ),
                lambda response: ((one.name, one) for one in response.topics),
                _name,
                self._requests.to_controller,
                deadline,
                repeatable=validate_only,
            )
        )
        if raise_errors:
            raise_first_error(outcomes)
        if wait_for_metadata:
            created = [name for name, outcome in outcomes.items() if outcome.error is None]
            self._wait_for_topics(created, deadline)
        return CreatedTopics(topics=[_created(one.result) for one in outcomes.values()])

    def delete_topics(
        self, topics: Iterable[Topic], timeout_ms: float | None = None, raise_errors: bool = True
    ) -> DeletedTopics:
        """Delete topics and all their records; see `create_topics` for timeout and errors.

        Args:
            topics: their names, or their ids as `uuid.UUID`.
            timeout_ms: how long the call may take.
            raise_errors: raise the first error; otherwise they are in the result.

        Raises:
            KafkaError: a topic could not be deleted, as in `UnknownTopicOrPartitionError`.
        """
        asked = {one: one for one in topics}
        if not asked:
            raise ValueError("there is no topic to delete")
        deadline = self._requests.deadline(timeout_ms)
        try:
            outcomes = self._delete_topics(asked, _delete_request, deadline)
        except UnsupportedVersionError:  # before Kafka 2.8, which knows names only
            if not all(isinstance(one, str) for one in asked):
                raise
            outcomes = self._delete_topics(asked, _delete_request_by_name, deadline)
        if raise_errors:
            raise_first_error(outcomes)
        return DeletedTopics(topics=[DeletedTopic.of(one.result) for one in outcomes.values()])

    def _delete_topics(
        self,
        asked: Mapping[Topic, Topic],
        make_request: Callable[[list[Topic], int], DeleteTopicsRequest],
        deadline: Deadline,
    ) -> dict[Topic, Outcome[DeletableTopicResult]]:
        ids = {one.bytes: one for one in asked if not isinstance(one, str)}
        return self._requests.settle(
            Work(
                asked,
                lambda pending: make_request(pending, int(deadline.remaining_ms())),
                lambda response: (
                    (ids.get(one.topic_id) or one.name or "", one) for one in response.responses
                ),
                _name,
                self._requests.to_controller,
                deadline,
            )
        )

    def list_topics(self) -> list[str]:
        """The names of all topics."""
        return [topic.name or "" for topic in self.describe_topics()]

    def describe_topics(
        self, topics: Iterable[Topic] | None = None, include_authorized_operations: bool = False
    ) -> list[TopicDescription]:
        """Topics with their partitions, leaders and replicas; by default all of them.

        A topic that does not exist has an `error_code` in its description.

        Args:
            topics: their names, or their ids as `uuid.UUID` (Kafka 3.1 and later).
            include_authorized_operations: tell what this client may do to each (Kafka 2.3 and
                later).
        """
        request = metadata_request(topics, with_operations=include_authorized_operations)
        response = self._requests.ask(request, MetadataResponse, self._requests.deadline())
        described = []
        for one in response.topics:
            topic = TopicDescription.of(one)
            topic["topic_authorized_operations"] = operation_names(one.topic_authorized_operations)
            described.append(topic)
        return described

    def wait_for_topics(
        self, topic_names: Iterable[str], timeout_ms: float = _WAIT_TIMEOUT_MS
    ) -> None:
        """Wait until topics can be used: brokers know them, and each partition has a leader.

        Brokers learn of a new topic a moment after the controller has made it.

        Raises:
            KafkaTimeoutError: some can't be used yet; says why.
        """
        self._wait_for_topics(list(topic_names), self._requests.deadline(timeout_ms))

    def _wait_for_topics(self, names: list[str], deadline: Deadline) -> None:
        attempts = 0
        while (trouble := self._why_not_usable(names, deadline)) is not None:
            self._requests.pause(trouble, attempts, deadline)
            attempts += 1

    def _why_not_usable(self, names: list[str], deadline: Deadline) -> KafkaError | None:
        response = self._requests.ask(metadata_request(names), MetadataResponse, deadline)
        try:
            topics = topics_in(response)
        except KafkaError as error:
            if error.retriable:
                return error
            raise
        for topic in topics:
            for one in topic.partitions:
                name = f"{topic.name}-{one.partition_index}"
                if one.error_code:
                    return for_code(one.error_code)(name)
                if one.leader_id < 0:
                    return LeaderNotAvailableError(name)
        return None


def _name(topic: Topic) -> str:
    if isinstance(topic, str):
        return f"topic {topic!r}"
    return f"the topic of id {format_uuid(topic.bytes)}"


def _created(result: CreatableTopicResult) -> CreatedTopic:
    created = CreatedTopic.of(result)
    created["configs"] = {one.name: described_entry(one) for one in result.configs or ()}
    return created


def _delete_request(topics: list[Topic], timeout_ms: int) -> DeleteTopicsRequest:
    states = [
        DeleteTopicState(name=one) if isinstance(one, str) else DeleteTopicState(topic_id=one.bytes)
        for one in topics
    ]
    return DeleteTopicsRequest(topics=states, timeout_ms=timeout_ms)


def _delete_request_by_name(topics: list[Topic], timeout_ms: int) -> DeleteTopicsRequest:
    names = [one for one in topics if isinstance(one, str)]
    return DeleteTopicsRequest(topic_names=names, timeout_ms=timeout_ms)
