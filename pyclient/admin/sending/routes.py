"""Routes that need a lookup: the leaders of partitions, the coordinators of groups and ids.

They are looked up again with every attempt, so that a request finds its broker after a change.
"""

from collections.abc import Iterable, Mapping, Sequence
from enum import IntEnum
from typing import TypeVar

from pyclient.admin.sending.requests import AdminRequests
from pyclient.admin.sending.results import error_of
from pyclient.admin.sending.topic_metadata import metadata_request
from pyclient.admin.sending.work import Key, Route, Routed
from pyclient.errors import (
    KafkaError,
    LeaderNotAvailableError,
    UnknownTopicOrPartitionError,
    UnsupportedVersionError,
    for_code,
)
from pyclient.protocol.messages.find_coordinator import (
    Coordinator,
    FindCoordinatorRequest,
    FindCoordinatorResponse,
)
from pyclient.protocol.messages.metadata import MetadataResponse
from pyclient.timers import Deadline
from pyclient.types import TopicPartition

Node = TypeVar("Node")


class CoordinatorType(IntEnum):
    """What a broker coordinates."""

    GROUP = 0
    TRANSACTION = 1


def to_node(node: int) -> Route[Key]:
    """A route to one broker."""
    return lambda keys, _deadline: Routed({node: keys})


def by_node(nodes: Iterable[tuple[Node, Key]]) -> dict[Node, list[Key]]:
    """Things by their nodes."""
    grouped: dict[Node, list[Key]] = {}
    for node, key in nodes:
        grouped.setdefault(node, []).append(key)
    return grouped


class LeaderRoute:
    """Routes partitions to their leaders."""

    def __init__(self, requests: AdminRequests) -> None:
        self._requests = requests

    def __call__(
        self, keys: Sequence[TopicPartition], deadline: Deadline
    ) -> Routed[TopicPartition]:
        """The partitions of each leader; those that do not exist or have no leader failed."""
        topics = dict.fromkeys(key.topic for key in keys)
        response = self._requests.ask_once(
            metadata_request(topics), MetadataResponse, deadline, None
        )
        errors = {topic.name: topic.error_code for topic in response.topics if topic.error_code}
        leaders = {
            TopicPartition(topic.name or "", one.partition_index): one.leader_id
            for topic in response.topics
            for one in topic.partitions
        }
        failed: dict[TopicPartition, KafkaError] = {}
        for key in keys:
            if key.topic in errors:
                failed[key] = for_code(errors[key.topic])(f"topic {key.topic!r}")
            elif key not in leaders:
                failed[key] = UnknownTopicOrPartitionError(f"{key.topic}-{key.partition}")
            elif leaders[key] < 0:
                failed[key] = LeaderNotAvailableError(f"{key.topic}-{key.partition}")
        return Routed(by_node((leaders[key], key) for key in keys if key not in failed), failed)


class CoordinatorRoute:
    """Routes groups or transactional ids to their coordinators."""

    def __init__(
        self, requests: AdminRequests, kind: CoordinatorType = CoordinatorType.GROUP
    ) -> None:
        self._requests = requests
        self._kind = kind

    def __call__(self, keys: Sequence[str], deadline: Deadline) -> Routed[str]:
        """The keys of each coordinator; those without one failed."""
        found = self._find(keys, deadline)
        noun = "group" if self._kind is CoordinatorType.GROUP else "transactional id"
        failed = {
            key: error
            for key in keys
            if (error := error_of(f"{noun} {key!r}", found[key])) is not None
        }
        return Routed(
            by_node((found[key].node_id, key) for key in keys if key not in failed), failed
        )

    def _find(
        self, keys: Sequence[str], deadline: Deadline
    ) -> Mapping[str, Coordinator | FindCoordinatorResponse]:
        if len(keys) > 1:
            try:
                return self._find_at_once(keys, deadline)
            except UnsupportedVersionError:  # before Kafka 3.0
                pass
        return {key: self._find_one(key, deadline) for key in keys}

    def _find_at_once(self, keys: Sequence[str], deadline: Deadline) -> dict[str, Coordinator]:
        request = FindCoordinatorRequest(coordinator_keys=list(keys), key_type=self._kind)
        response = self._requests.ask_once(request, FindCoordinatorResponse, deadline, None)
        return {one.key: one for one in response.coordinators}

    def _find_one(self, key: str, deadline: Deadline) -> FindCoordinatorResponse:
        request = FindCoordinatorRequest(key=key, key_type=self._kind)
        response = self._requests.send_once(request, deadline, None)
        assert isinstance(response, FindCoordinatorResponse)
        return response


def to_coordinator(requests: AdminRequests, group: str, node: int | None) -> Route[Key]:
    """A route to the coordinator of one group, which is `node` if that is given."""
    if node is not None:
        return to_node(node)

    def route(keys: Sequence[Key], deadline: Deadline) -> Routed[Key]:
        found = CoordinatorRoute(requests)([group], deadline)
        for error in found.failed.values():
            raise error
        return Routed(dict.fromkeys(found.nodes, keys))

    return route
