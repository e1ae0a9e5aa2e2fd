"""CreatePartitions (API key 37), versions 0-3.

Adds partitions to topics; responds when they are logged and clients see them. Assignments are for
the new partitions only. `validate_only` changes nothing. A topic that is in the request twice gets
INVALID_REQUEST. Internal topics keep their number of partitions (INVALID_TOPIC_EXCEPTION), as keys
are hashed over it.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

from broker_stub.handlers._errors import message_of
from broker_stub.handlers._names import once_each
from broker_stub.metadata.topics import MorePartitions
from broker_stub.request import Parked, RequestContext
from pyclient.error_codes import BrokerResponseError
from pyclient.protocol.messages.create_partitions import (
    CreatePartitionsRequest,
    CreatePartitionsResponse,
    CreatePartitionsTopic,
    CreatePartitionsTopicResult,
)

if TYPE_CHECKING:
    from broker_stub.node import Node


def handle(
    node: Node, request: CreatePartitionsRequest, context: RequestContext
) -> Parked[CreatePartitionsResponse]:
    once, repeated = once_each(request.topics)
    parked: Parked[CreatePartitionsResponse] = Parked()

    def created(results: list[int | BrokerResponseError]) -> None:
        answered = [
            _failed(topic.name, result)
            if isinstance(result, BrokerResponseError)
            else CreatePartitionsTopicResult(name=topic.name)
            for topic, result in zip(once, results, strict=True)
        ]
        answered += [_failed(*one) for one in repeated.items()]
        parked.answer(CreatePartitionsResponse(results=answered))

    node.controller.create_partitions(
        [_wanted(topic) for topic in once], created, validate_only=request.validate_only
    )
    return parked


def refuse(
    request: CreatePartitionsRequest, error: BrokerResponseError
) -> CreatePartitionsResponse:
    return CreatePartitionsResponse(
        results=[_failed(topic.name, error) for topic in request.topics]
    )


def _wanted(topic: CreatePartitionsTopic) -> MorePartitions:
    assignments = topic.assignments
    return MorePartitions(
        topic.name,
        topic.count,
        None if assignments is None else [one.broker_ids for one in assignments],
    )


def _failed(name: str, error: BrokerResponseError) -> CreatePartitionsTopicResult:
    return CreatePartitionsTopicResult(
        name=name, error_code=error.code, error_message=message_of(error)
    )
