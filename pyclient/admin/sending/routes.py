"""Routes that need a lookup: the leaders of partitions, the coordinators of groups.

They are looked up again with every attempt, so that a request finds its broker after a change.
"""

from collections.abc import Mapping, Sequence
from typing import Final

from pyclient.admin.sending.requests import AdminRequests
from pyclient.admin.sending.topic_metadata import metadata_request, topics_in
from pyclient.errors import (
    KafkaError,
    LeaderNotAvailableError,
    UnknownTopicOrPartitionError,
    for_code,
)
from pyclient.protocol.messages.find_coordinator import (
    FindCoordinatorRequest,
    FindCoordinatorResponse,
)
from pyclient.timers import Deadline
from pyclient.types import TopicPartition

_GROUP: Final = 0


class LeaderRoute:
    """Routes partitions to their leaders."""

    def __init__(self, requests: AdminRequests) -> None:
        self._requests = requests

    def __call__(
        self, keys: Sequence[TopicPartition], deadline: Deadline
    ) -> Mapping[int | None, Sequence[TopicPartition]]:
        """The partitions of each leader.

        Raises:
            UnknownTopicOrPartitionError: one does not exist.
            LeaderNotAvailableError: one has no leader now.
        """
        leaders = self._leaders(dict.fromkeys(key.topic for key in keys), deadline)
        grouped: dict[int | None, list[TopicPartition]] = {}
        for key in keys:
            leader = leaders.get(key)
            if leader is None:
                raise UnknownTopicOrPartitionError(f"{key.topic}-{key.partition}")
            if leader < 0:
                raise LeaderNotAvailableError(f"{key.topic}-{key.partition}")
            grouped.setdefault(leader, []).append(key)
        return grouped

    def _leaders(self, topics: Mapping[str, None], deadline: Deadline) -> dict[TopicPartition, int]:
        response = self._requests.ask_once(metadata_request(topics), deadline, None)
        return {
            TopicPartition(topic.name or "", one.partition_index): one.leader_id
            for topic in topics_in(response)
            for one in topic.partitions
        }


class CoordinatorRoute:
    """Routes groups to their coordinators."""

    def __init__(self, requests: AdminRequests) -> None:
        self._requests = requests

    def __call__(
        self, keys: Sequence[str], deadline: Deadline
    ) -> Mapping[int | None, Sequence[str]]:
        """The groups of each coordinator.

        Raises:
            KafkaError: one has none now, or may not be asked for.
        """
        grouped: dict[int | None, list[str]] = {}
        for group in keys:
            # A single key, not a list: brokers of all versions support that.
            request = FindCoordinatorRequest(key=group, key_type=_GROUP)
            response = self._requests.ask_once(request, deadline, None)
            assert isinstance(response, FindCoordinatorResponse)
            if response.error_code:
                raise _error(group, response)
            grouped.setdefault(response.node_id, []).append(group)
        return grouped


def _error(group: str, response: FindCoordinatorResponse) -> KafkaError:
    text = f"group {group!r}"
    if response.error_message:
        text = f"{text}: {response.error_message}"
    return for_code(response.error_code)(text)
