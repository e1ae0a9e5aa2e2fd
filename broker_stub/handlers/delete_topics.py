"""DeleteTopics (API key 20), versions 1-6.

Responds when the deletion is in the metadata log: no client sees the topic any more, and fetches
that waited for it are complete. Its files are removed in the background. Topics are named up to
version 5, and given by name or id in 6. A topic that is in the request twice is not deleted and
gets one INVALID_REQUEST, even if it does not exist. With `delete.topic.enable` off:
TOPIC_DELETION_DISABLED.
"""

from __future__ import annotations

from collections import Counter
from typing import TYPE_CHECKING

from broker_stub.handlers._errors import message_of
from broker_stub.request import Parked, RequestContext
from pyclient.error_codes import (
    BrokerResponseError,
    InvalidRequestError,
    TopicDeletionDisabledError,
    UnknownTopicIdError,
    UnknownTopicOrPartitionError,
)
from pyclient.protocol.messages.delete_topics import (
    DeletableTopicResult,
    DeleteTopicsRequest,
    DeleteTopicsResponse,
    DeleteTopicState,
)
from pyclient.protocol.primitives import ZERO_UUID, Uuid

if TYPE_CHECKING:
    from broker_stub.node import Node


def handle(
    node: Node, request: DeleteTopicsRequest, context: RequestContext
) -> Parked[DeleteTopicsResponse]:
    if not node.config["delete.topic.enable"]:
        raise TopicDeletionDisabledError()
    results: list[DeletableTopicResult] = []
    found: dict[Uuid, DeletableTopicResult] = {}
    twice = InvalidRequestError("Duplicate topic name.")
    for (name, topic_id), count in _counted(request).items():
        topic = DeleteTopicState(name=name, topic_id=topic_id)
        looked_up = _look_up(node, topic)
        result = _failed(topic, twice) if count > 1 else looked_up
        if not looked_up.error_code:
            if looked_up.topic_id in found:  # by its name and by its id
                _fail(found[looked_up.topic_id], twice)
                continue
            found[looked_up.topic_id] = result
        results.append(result)
    doomed = [result for result in found.values() if not result.error_code]
    parked: Parked[DeleteTopicsResponse] = Parked()

    def deleted(outcomes: list[Uuid | BrokerResponseError]) -> None:
        for result, outcome in zip(doomed, outcomes, strict=True):
            if isinstance(outcome, BrokerResponseError):
                _fail(result, outcome)
        parked.answer(DeleteTopicsResponse(responses=results))

    node.controller.delete_topics([result.topic_id for result in doomed], deleted)
    return parked


def refuse(request: DeleteTopicsRequest, error: BrokerResponseError) -> DeleteTopicsResponse:
    return DeleteTopicsResponse(responses=[_failed(topic, error) for topic in _asked(request)])


def _asked(request: DeleteTopicsRequest) -> list[DeleteTopicState]:
    """The topics of either form of the request."""
    return request.topics or [DeleteTopicState(name=name) for name in request.topic_names]


def _counted(request: DeleteTopicsRequest) -> Counter[tuple[str | None, Uuid]]:
    """How often the request names each topic, in the order of the request."""
    return Counter((topic.name, topic.topic_id) for topic in _asked(request))


def _look_up(node: Node, topic: DeleteTopicState) -> DeletableTopicResult:
    if topic.name is None and topic.topic_id == ZERO_UUID:
        return _failed(topic, InvalidRequestError("Neither topic name nor id were specified."))
    if topic.name is not None and topic.topic_id != ZERO_UUID:
        both = InvalidRequestError("You may not specify both topic name and topic id.")
        return _failed(topic, both)
    missing: BrokerResponseError
    if topic.name is None:
        found = node.image.topic_by_id(topic.topic_id)
        missing = UnknownTopicIdError("This server does not host this topic ID.")
    else:
        found = node.image.topic(topic.name)
        missing = UnknownTopicOrPartitionError("This server does not host this topic-partition.")
    if found is None:
        return _failed(topic, missing)
    return DeletableTopicResult(name=found.name, topic_id=found.topic_id)


def _failed(topic: DeleteTopicState, error: BrokerResponseError) -> DeletableTopicResult:
    result = DeletableTopicResult(name=topic.name, topic_id=topic.topic_id)
    _fail(result, error)
    return result


def _fail(result: DeletableTopicResult, error: BrokerResponseError) -> None:
    result.error_code = error.code
    result.error_message = message_of(error)
