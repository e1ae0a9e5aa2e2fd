"""Topics: create, delete, list, describe."""

from collections.abc import Iterable
from typing import Any, Final

from pyclient.admin.sending.calls import AdminCalls
from pyclient.admin.sending.results import as_dict
from pyclient.admin.sending.topic_metadata import Topic, metadata_request, topics_in
from pyclient.admin.sending.work import Work, raise_first_error
from pyclient.admin.types.configs import described_entry
from pyclient.admin.types.new_topic import NewTopics, new_topics_of
from pyclient.errors import KafkaError, LeaderNotAvailableError, for_code
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
    ) -> dict[str, Any]:
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
        return {"topics": [_created(one.result) for one in outcomes.values()]}

    def delete_topics(
        self, topics: Iterable[Topic], timeout_ms: float | None = None, raise_errors: bool = True
    ) -> dict[str, Any]:
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
        ids = {one.bytes: one for one in asked if not isinstance(one, str)}
        deadline = self._requests.deadline(timeout_ms)

        def key_of(result: DeletableTopicResult) -> Topic:
            return ids.get(result.topic_id) or result.name or ""

        outcomes = self._requests.settle(
            Work(
                asked,
                lambda pending: _delete_request(pending, deadline),
                lambda response: ((key_of(one), one) for one in response.responses),
                _name,
                self._requests.to_controller,
                deadline,
            )
        )
        if raise_errors:
            raise_first_error(outcomes)
        return {"topics": [as_dict(one.result) for one in outcomes.values()]}

    def list_topics(self) -> list[str]:
        """The names of all topics."""
        return [topic["name"] for topic in self.describe_topics()]

    def describe_topics(self, topics: Iterable[Topic] | None = None) -> list[dict[str, Any]]:
        """Topics with their partitions, leaders and replicas; by default all of them.

        A topic that does not exist has an `error_code` in its description.

        Args:
            topics: their names, or their ids as `uuid.UUID` (Kafka 3.1 and later).
        """
        response = self._requests.ask(metadata_request(topics), self._requests.deadline())
        assert isinstance(response, MetadataResponse)
        described = [as_dict(topic) for topic in response.topics]
        for topic in described:
            del topic["topic_authorized_operations"]  # not asked for
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
        response = self._requests.ask(metadata_request(names), deadline)
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


def _created(result: CreatableTopicResult) -> dict[str, Any]:
    described = as_dict(result)
    described["configs"] = {
        entry["name"]: described_entry(entry) for entry in described["configs"] or ()
    }
    return described


def _delete_request(topics: list[Topic], deadline: Deadline) -> DeleteTopicsRequest:
    timeout_ms = int(deadline.remaining_ms())
    names = [one for one in topics if isinstance(one, str)]
    if len(names) == len(topics):  # as brokers of any age know it
        return DeleteTopicsRequest(topic_names=names, timeout_ms=timeout_ms)
    states = [
        DeleteTopicState(name=one) if isinstance(one, str) else DeleteTopicState(topic_id=one.bytes)
        for one in topics
    ]
    return DeleteTopicsRequest(topics=states, timeout_ms=timeout_ms)
