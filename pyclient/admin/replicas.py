"""Replicas of partitions: which one leads, and on which brokers they are."""

from collections.abc import Iterable, Mapping, Sequence
from enum import IntEnum
from typing import Any

from pyclient.admin.sending.calls import AdminCalls
from pyclient.admin.sending.partition_keys import by_topic, in_topics, partition_name, topics_of
from pyclient.admin.sending.topic_metadata import metadata_request, topics_in
from pyclient.admin.sending.work import Work
from pyclient.admin.types.enums import member_of
from pyclient.admin.types.topics import (
    Elections,
    PartitionElection,
    PartitionReassignment,
    TopicElections,
)
from pyclient.errors import ElectionNotNeededError, KafkaError, for_code
from pyclient.protocol.messages.alter_partition_reassignments import (
    AlterPartitionReassignmentsRequest,
    AlterPartitionReassignmentsResponse,
    ReassignablePartition,
    ReassignableTopic,
)
from pyclient.protocol.messages.elect_leaders import (
    ElectLeadersRequest,
    ElectLeadersResponse,
    TopicPartitions,
)
from pyclient.protocol.messages.list_partition_reassignments import (
    ListPartitionReassignmentsRequest,
    ListPartitionReassignmentsResponse,
    ListPartitionReassignmentsTopics,
)
from pyclient.protocol.messages.metadata import MetadataResponse
from pyclient.timers import Deadline
from pyclient.types import TopicPartition


class ElectionType(IntEnum):
    """Which replica may become leader: the preferred one, or any, even if records are lost."""

    PREFERRED = 0
    UNCLEAN = 1


class ReplicaCalls(AdminCalls):
    """The calls that elect leaders and move partitions between brokers."""

    def elect_leaders(
        self,
        election_type: ElectionType | str | int,
        topic_partitions: Mapping[str, Iterable[int]] | Iterable[str] | None = None,
        timeout_ms: float | None = None,
        raise_errors: bool = True,
    ) -> Elections:
        """Have leaders elected; a partition whose leader is the right one already is no error.

        Args:
            election_type: `preferred` or `unclean`.
            topic_partitions: partitions by topic, or topics with all their partitions; by
                default everything.
            timeout_ms: how long the call may take; by default `default_api_timeout_ms`.
            raise_errors: raise the first error; otherwise they are in the result.

        Raises:
            KafkaError: a leader could not be elected, as in `PreferredLeaderNotAvailableError`.
        """
        election = member_of(ElectionType, election_type)
        deadline = self._requests.deadline(timeout_ms)
        partitions = self._partitions(topic_partitions, deadline)
        outcomes = self._requests.settle(
            Work(
                {key: (key, key.partition) for key in partitions},
                lambda pending: ElectLeadersRequest(
                    election_type=election,
                    topic_partitions=[
                        TopicPartitions(topic=name, partitions=of)
                        for name, of in by_topic(pending).items()
                    ],
                    timeout_ms=int(deadline.remaining_ms()),
                ),
                _elected,
                partition_name,
                self._requests.to_controller,
                deadline,
            )
        )
        for outcome in outcomes.values():
            if raise_errors and not isinstance(outcome.error, ElectionNotNeededError | None):
                raise outcome.error
        results = by_topic((key, PartitionElection.of(one.result)) for key, one in outcomes.items())
        return Elections(
            replica_election_results=[
                TopicElections(topic=topic, partition_result=of) for topic, of in results.items()
            ]
        )

    def perform_leader_election(
        self,
        election_type: ElectionType | str | int,
        topic_partitions: Mapping[str, Iterable[int]] | None = None,
        timeout_ms: float | None = None,
    ) -> Elections:
        """Have leaders elected: kafka-python 2's `elect_leaders`."""
        return self.elect_leaders(election_type, topic_partitions, timeout_ms)

    def _partitions(
        self, asked: Mapping[str, Iterable[int]] | Iterable[str] | None, deadline: Deadline
    ) -> list[TopicPartition]:
        if isinstance(asked, Mapping):
            return [TopicPartition(topic, one) for topic, of in asked.items() for one in of]
        response = self._requests.ask(metadata_request(asked), MetadataResponse, deadline)
        return [key for key, _ in in_topics(topics_in(response))]

    def alter_partition_reassignments(
        self,
        reassignments: Mapping[TopicPartition, Sequence[int] | None],
        timeout_ms: float | None = None,
    ) -> dict[TopicPartition, type[KafkaError] | None]:
        """Start to move partitions; by partition the class of the error, None if it moves.

        Args:
            reassignments: the brokers for the replicas of each partition, the preferred leader
                first; None calls a move off.
            timeout_ms: how long the call may take; by default `default_api_timeout_ms`.

        Raises:
            ValueError: a partition would be on no broker.
            KafkaError: no move could be started.
        """
        for key, brokers in reassignments.items():
            if brokers is not None and not brokers:
                raise ValueError(f"{partition_name(key)} has to be on a broker; None calls it off")
        deadline = self._requests.deadline(timeout_ms)
        outcomes = self._requests.settle(
            Work(
                {
                    key: (
                        key,
                        ReassignablePartition(
                            partition_index=key.partition,
                            replicas=None if brokers is None else list(brokers),
                        ),
                    )
                    for key, brokers in reassignments.items()
                },
                lambda pending: AlterPartitionReassignmentsRequest(
                    topics=topics_of(ReassignableTopic, pending),
                    timeout_ms=int(deadline.remaining_ms()),
                ),
                _reassigned,
                partition_name,
                self._requests.to_controller,
                deadline,
            )
        )
        return {
            key: None if outcome.error is None else type(outcome.error)
            for key, outcome in outcomes.items()
        }

    def list_partition_reassignments(
        self,
        topic_partitions: Mapping[str, Iterable[int]] | Iterable[TopicPartition] | None = None,
        timeout_ms: float | None = None,
    ) -> dict[TopicPartition, PartitionReassignment]:
        """The partitions that are on the move, with the brokers they leave and go to.

        Args:
            topic_partitions: partitions by topic, or a list of them; by default all.
            timeout_ms: how long the call may take; by default `default_api_timeout_ms`.
        """
        deadline = self._requests.deadline(timeout_ms)
        topics = None
        if topic_partitions is not None:
            if not isinstance(topic_partitions, Mapping):
                topic_partitions = by_topic((key, key.partition) for key in topic_partitions)
            topics = [
                ListPartitionReassignmentsTopics(name=name, partition_indexes=list(of))
                for name, of in topic_partitions.items()
            ]

        def list_once() -> ListPartitionReassignmentsResponse:
            request = ListPartitionReassignmentsRequest(
                topics=topics, timeout_ms=int(deadline.remaining_ms())
            )
            return self._requests.ask_once(
                request, ListPartitionReassignmentsResponse, deadline, self._requests.controller()
            )

        response = self._requests.repeat(list_once, deadline)
        moves = {key: PartitionReassignment.of(one) for key, one in in_topics(response.topics)}
        for move in moves.values():
            del move["partition_index"]
        return moves


def _elected(response: ElectLeadersResponse) -> Iterable[tuple[TopicPartition, Any]]:
    _raise_error_of(response)
    return (
        (TopicPartition(topic.topic, one.partition_id), one)
        for topic in response.replica_election_results
        for one in topic.partition_result
    )


def _reassigned(
    response: AlterPartitionReassignmentsResponse,
) -> Iterable[tuple[TopicPartition, Any]]:
    _raise_error_of(response)
    return in_topics(response.responses)


def _raise_error_of(response: Any) -> None:
    """Raise the error of a whole response; a retriable one is retried."""
    if response.error_code:
        message = getattr(response, "error_message", None)
        error = for_code(response.error_code)
        raise error(message) if message else error()
