"""DeleteTopics (API key 20), versions 1-6.

Answers when the deletion is in the metadata log: the topic is gone for everybody then, and
fetches that waited for it have been told; its files follow in the background. By name up to
version 5, by name or id in 6. With `delete.topic.enable` off: TOPIC_DELETION_DISABLED.
"""

from __future__ import annotations

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
    node: Node,
    request: DeleteTopicsRequest,
    context: RequestContext,  # noqa: ARG001
) -> Parked[DeleteTopicsResponse]:
    """Delete the topics."""
    if not node.config["delete.topic.enable"]:
        raise TopicDeletionDisabledError()
    results: list[DeletableTopicResult] = []
    found: list[DeletableTopicResult] = []
    for topic in _asked(request):
        result = _look_up(node, topic)
        results.append(result)
        if not result.error_code:
            found.append(result)
    parked: Parked[DeleteTopicsResponse] = Parked()

    def deleted(outcomes: list[Uuid | BrokerResponseError]) -> None:
        for result, outcome in zip(found, outcomes, strict=True):
            if isinstance(outcome, BrokerResponseError):
                result.error_code = outcome.code
                result.error_message = message_of(outcome)
        parked.answer(DeleteTopicsResponse(responses=results))

    node.controller.delete_topics([result.topic_id for result in found], deleted)
    return parked


def refuse(request: DeleteTopicsRequest, error: BrokerResponseError) -> DeleteTopicsResponse:
    """Fail every topic."""
    return DeleteTopicsResponse(responses=[_failed(topic, error) for topic in _asked(request)])


def _asked(request: DeleteTopicsRequest) -> list[DeleteTopicState]:
    """The topics of either form of the request."""
    return request.topics or [DeleteTopicState(name=name) for name in request.topic_names]


def _look_up(node: Node, topic: DeleteTopicState) -> DeletableTopicResult:
    if topic.name is None:
        found = node.image.topic_by_id(topic.topic_id)
        missing: BrokerResponseError = UnknownTopicIdError()
    elif topic.topic_id != ZERO_UUID:
        return _failed(topic, InvalidRequestError("a topic by name and by id at once"))
    else:
        found = node.image.topic(topic.name)
        missing = UnknownTopicOrPartitionError()
    if found is None:
        return _failed(topic, missing)
    return DeletableTopicResult(name=found.name, topic_id=found.topic_id)


def _failed(topic: DeleteTopicState, error: BrokerResponseError) -> DeletableTopicResult:
    return DeletableTopicResult(
        name=topic.name,
        topic_id=topic.topic_id,
        error_code=error.code,
        error_message=message_of(error),
    )
