"""The parts of a request and its response that are about one topic or partition.

A part can be removed from a request, so that it has no effect, and can be failed in a response,
whether it is present or not. Topic ids are looked up in the cluster's image. `topic_layouts` has
the structure of each API. Serving thread only.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from typing import TYPE_CHECKING, Any, NamedTuple, TypeVar

from broker_stub.handlers._errors import message_of
from broker_stub.testing.faults import Target
from broker_stub.testing.topic_layouts import FETCH, LAYOUTS, Place
from pyclient.error_codes import BrokerResponseError
from pyclient.protocol.primitives import ZERO_UUID, ArrayType, StructType
from pyclient.protocol.registry import response_class
from pyclient.protocol.schema import Message, Struct

if TYPE_CHECKING:
    from broker_stub.node import Node

AnyStruct = TypeVar("AnyStruct", bound=Struct)


class Part(NamedTuple):
    """A topic as the request names it, and a partition if the request lists any."""

    name: str | None
    topic_id: bytes
    partition: int | None


def topic_parts(node: Node, api_key: int) -> TopicParts:
    """The parts of an API that can be failed one by one."""
    return FetchParts(node, api_key) if api_key == FETCH else TopicParts(node, api_key)


class TopicParts:
    """The parts of one API's requests and responses that belong to a target."""

    def __init__(self, node: Node, api_key: int) -> None:
        self._node = node
        self._response_class = response_class(api_key)
        self._layout = LAYOUTS[api_key]

    def find(self, request: Any, target: Target) -> list[Part] | None:
        """The affected parts of a request; None if it is not about the target.

        A request for all topics lists no parts, and is about every topic.
        """
        parts: list[Part] = []
        for place in self._layout.requests:
            for topics in _lists(request, place.path):
                if topics is None or (self._layout.empty_is_all and not topics):
                    return []
                for topic in topics:
                    if self._name(topic, place) == target.topic:
                        parts += _parts(topic, place, target)
        return parts or None

    def without(self, request: Any, target: Target) -> Message:
        """The request without the target."""
        if self._layout.only_reads:
            return request  # type: ignore[no-any-return]
        changes = {}
        for place in self._layout.requests:
            (attribute,) = place.path
            topics = getattr(request, attribute)
            nothing_to_take = target.partition is not None and place.partitions is None
            if topics is not None and not nothing_to_take:
                changes[attribute] = self._others(topics, place, target)
        return _changed(request, **changes)  # type: ignore[no-any-return]

    def _others(self, topics: list[Any], place: Place, target: Target) -> list[Any]:
        """The topics without the target."""
        kept = []
        for topic in topics:
            if self._name(topic, place) != target.topic:
                kept.append(topic)
            elif place.partitions is not None and target.partition is not None:
                partitions = getattr(topic, place.partitions)
                others = [one for one in partitions if _index(one, place) != target.partition]
                if others:
                    kept.append(_changed(topic, **{place.partitions: others}))
        return kept

    def fail(
        self, response: Message, target: Target, parts: list[Part], error: BrokerResponseError
    ) -> None:
        """Set the error in the target's part of a response only.

        `parts` are the ones that `find` returned; those missing in the response are added.
        """
        missing = {part.partition: part for part in parts}
        for place in self._layout.responses:
            for topics in _lists(response, place.path):
                for position, topic in enumerate(topics):
                    if self._name(topic, place) == target.topic:
                        topics[position] = self._failed_topic(topic, place, target, error, missing)
        if not self._layout.only_reads:
            for part in missing.values():
                self._add(response, part, target, error)

    def _failed_topic(
        self,
        topic: Struct,
        place: Place,
        target: Target,
        error: BrokerResponseError,
        missing: dict[int | None, Part],
    ) -> Struct:
        """Set the error in a topic's part of a response, and note that it is present."""
        missing.pop(None, None)
        if target.partition is None and self._layout.topic_fails_alone:
            topic_id = getattr(topic, "topic_id", ZERO_UUID)
            identity = {place.topic: target.topic, "topic_id": topic_id}
            return self._failed(type(topic), identity, error)
        assert place.partitions is not None
        partitions = getattr(topic, place.partitions)
        for position, partition in enumerate(partitions):
            index = _index(partition, place)
            if target.partition in (None, index):
                missing.pop(index, None)
                partitions[position] = self._failed(type(partition), {place.number: index}, error)
        return topic

    def _add(
        self, response: Message, part: Part, target: Target, error: BrokerResponseError
    ) -> None:
        """Add failed parts that the response does not list."""
        (place, *_) = self._layout.responses
        topic_class = _element(self._response_class, place.path[0])
        identity = {place.topic: part.name, "topic_id": part.topic_id}
        (topics,) = _lists(response, place.path)
        if part.partition is None:
            topics.append(self._failed(topic_class, identity, error))
            return
        assert place.partitions is not None
        found = (one for one in topics if self._name(one, place) == target.topic)
        topic = next(found, None)
        if topic is None:
            topic = topic_class(**_declared(topic_class, identity))
            topics.append(topic)
        partition_class = _element(topic_class, place.partitions)
        failed = self._failed(partition_class, {place.number: part.partition}, error)
        getattr(topic, place.partitions).append(failed)

    def _failed(
        self,
        owner: type[Struct],
        identity: Mapping[Any, object],
        error: BrokerResponseError,
    ) -> Struct:
        """A topic's or partition's part of a response with nothing but the error."""
        facts = {"error_code": error.code, "error_message": message_of(error)}
        return owner(**_declared(owner, {**self._layout.blank, **identity, **facts}))

    def _name(self, topic: Struct | str, place: Place) -> str | None:
        return self._resolved(*_identity(topic, place))

    def _resolved(self, name: str | None, topic_id: bytes) -> str | None:
        if name:
            return name
        image = self._node.image.topic_by_id(topic_id)
        return None if image is None else image.name


class FetchParts(TopicParts):
    """A fetch is also about the partitions in its session."""

    def find(self, request: Any, target: Target) -> list[Part] | None:
        """The partitions that the request lists, and those in its session."""
        parts = super().find(request, target) or []
        if request.session_epoch > 0:
            parts += self._remembered(request, target)
        return parts or None

    def find_all(self, request: Any) -> dict[Target, list[Part]]:
        """All partitions of the request and of its session, by topic."""
        sessions = self._node.fetch_sessions
        remembered = sessions.partitions(request.session_id) if request.session_epoch > 0 else ()
        names = {self._resolved(one.topic, one.topic_id) for one in request.topics}
        names |= {self._resolved(name, topic_id) for topic_id, name, _ in remembered}
        targets = [Target(name, None) for name in sorted(filter(None, names))]
        return {one: parts for one in targets if (parts := self.find(request, one))}

    def _remembered(self, request: Any, target: Target) -> Iterator[Part]:
        forgotten = {
            (topic.topic_id, topic.topic, partition)
            for topic in request.forgotten_topics_data
            for partition in topic.partitions
        }
        for key in self._node.fetch_sessions.partitions(request.session_id):
            topic_id, name, partition = key
            named = self._resolved(name, topic_id) == target.topic
            if named and target.partition in (None, partition) and key not in forgotten:
                yield Part(name, topic_id, partition)

    def without(self, request: Any, target: Target) -> Message:  # noqa: ARG002
        """The whole request, because its session must learn of the partition.

        But without waiting for data, since the error is returned at once.
        """
        return _changed(request, max_wait_ms=0)  # type: ignore[no-any-return]


def _changed(struct: AnyStruct, **changes: object) -> AnyStruct:
    """A copy with other values in some fields; the rest is shared."""
    values = {one.name: getattr(struct, one.name) for one in type(struct).fields}
    copy = type(struct)(**{**values, **changes})
    copy.unknown_tagged_fields = struct.unknown_tagged_fields
    return copy


def _identity(topic: Struct | str, place: Place) -> tuple[str | None, bytes]:
    """The name and the id of a topic, if present."""
    if place.topic is None:
        assert isinstance(topic, str)
        return topic, ZERO_UUID
    return getattr(topic, place.topic), getattr(topic, "topic_id", ZERO_UUID)


def _parts(topic: Struct | str, place: Place, target: Target) -> Iterator[Part]:
    name, topic_id = _identity(topic, place)
    if place.partitions is None:
        yield Part(name, topic_id, None)
        return
    for partition in getattr(topic, place.partitions):
        index = _index(partition, place)
        if target.partition in (None, index):
            yield Part(name, topic_id, index)


def _index(partition: Any, place: Place) -> int:
    index: int = partition if place.number is None else getattr(partition, place.number)
    return index


def _lists(message: Message, path: tuple[str, ...]) -> list[Any]:
    """The lists at the end of a path."""
    holders: list[Any] = [message]
    for attribute in path[:-1]:
        holders = [inner for holder in holders for inner in getattr(holder, attribute)]
    return [getattr(holder, path[-1]) for holder in holders]


def _element(owner: type[Struct], attribute: str) -> type[Struct]:
    """The class of the structs in a declared list."""
    (declared,) = (one.type for one in owner.fields if one.name == attribute)
    assert isinstance(declared, ArrayType)
    assert isinstance(declared.element, StructType)
    return declared.element.struct


def _declared(owner: type[Struct], values: Mapping[Any, object]) -> dict[str, Any]:
    """The values for which the struct has fields."""
    names = {one.name for one in owner.fields}
    return {name: value for name, value in values.items() if name in names}
