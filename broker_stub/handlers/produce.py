"""Produce (API key 0), versions 3-13.

Appends one batch per partition. The batches are views of the receive buffer: the log patches
offsets into them and writes them, nothing is copied. Acks 1 and all are the same on one node,
but all asks for `min.insync.replicas`. Acks 0 gets no response, and a failure closes the
connection, which is the only way left to tell. From version 13 on topics are named by id.
Transactional batches are refused (INVALID_TXN_STATE): there is no transaction coordinator.

`flush.messages` means that records are on disk before they are acked: such a response is parked
until the fsync is done.
"""

from __future__ import annotations

from functools import partial
from typing import TYPE_CHECKING

from broker_stub.dispatch import CloseConnection
from broker_stub.handlers._errors import message_of
from broker_stub.metadata.image import TopicImage
from broker_stub.replica.partition import Partition
from broker_stub.request import Parked, RequestContext
from pyclient.error_codes import (
    BrokerResponseError,
    InvalidRecordError,
    InvalidRequiredAcksError,
    InvalidTopicError,
    KafkaStorageError,
    UnknownTopicIdError,
    UnknownTopicOrPartitionError,
)
from pyclient.protocol.messages.produce import (
    PartitionProduceData,
    PartitionProduceResponse,
    ProduceRequest,
    ProduceResponse,
    TopicProduceData,
    TopicProduceResponse,
)

if TYPE_CHECKING:
    from broker_stub.node import Node

_BY_ID_FROM = 13


def handle(
    node: Node, request: ProduceRequest, context: RequestContext
) -> ProduceResponse | Parked[ProduceResponse] | None:
    """Append the batches."""
    if request.acks not in (-1, 0, 1):
        raise InvalidRequiredAcksError(f"acks can be -1, 0 or 1, not {request.acks}")
    appends = _Appends(node, request.acks)
    response = ProduceResponse(
        responses=[
            TopicProduceResponse(
                name=topic.name,
                topic_id=topic.topic_id,
                partition_responses=appends.to_topic(topic, context.api_version),
            )
            for topic in request.topic_data
        ]
    )
    node.replicas.wake_fetches(appends.partitions)
    if request.acks == 0:
        if appends.error is not None:
            raise CloseConnection(f"produce with acks=0 failed: {appends.error}")
        return None
    return appends.flushed(response) if appends.to_flush else response


def refuse(request: ProduceRequest, error: BrokerResponseError) -> ProduceResponse | None:
    """Fail every partition."""
    if request.acks == 0:
        return None
    return ProduceResponse(
        responses=[
            TopicProduceResponse(
                name=topic.name,
                topic_id=topic.topic_id,
                partition_responses=[_failed(data.index, error) for data in topic.partition_data],
            )
            for topic in request.topic_data
        ]
    )


def _failed(index: int, error: BrokerResponseError) -> PartitionProduceResponse:
    return PartitionProduceResponse(
        index=index, error_code=error.code, base_offset=-1, error_message=message_of(error)
    )


class _Appends:
    """The appends of one request, and what follows from them."""

    def __init__(self, node: Node, acks: int) -> None:
        self._node = node
        self._acks = acks
        self._now_ms = node.clock.now_ms()
        self.partitions: list[Partition] = []
        self.to_flush: list[tuple[Partition, PartitionProduceResponse]] = []
        self.error: BrokerResponseError | None = None

    def to_topic(self, topic: TopicProduceData, version: int) -> list[PartitionProduceResponse]:
        responses = []
        for data in topic.partition_data:
            try:
                responses.append(self._append(_topic_image(self._node, topic, version), data))
            except BrokerResponseError as error:
                self.error = error
                responses.append(_failed(data.index, error))
        return responses

    def _append(self, topic: TopicImage, data: PartitionProduceData) -> PartitionProduceResponse:
        partition = self._node.replicas.partition_of(topic, data.index)
        records = data.records
        if not isinstance(records, memoryview):
            raise InvalidRecordError(f"no records for {partition}")
        info = partition.append(records, acks=self._acks, now_ms=self._now_ms)
        response = PartitionProduceResponse(
            index=data.index,
            base_offset=info.first_offset,
            log_append_time_ms=info.log_append_time_ms,
            log_start_offset=info.log_start_offset,
        )
        if not info.duplicate:
            self.partitions.append(partition)
        if info.flush_due:
            self.to_flush.append((partition, response))
        return response

    def flushed(self, response: ProduceResponse) -> Parked[ProduceResponse]:
        """The response, once what is to be flushed has been."""
        parked: Parked[ProduceResponse] = Parked()
        outstanding = len(self.to_flush)

        def flushed(partition_response: PartitionProduceResponse, error: Exception | None) -> None:
            nonlocal outstanding
            outstanding -= 1
            if error is not None:
                partition_response.error_code = KafkaStorageError.code
                partition_response.error_message = str(error)
                partition_response.base_offset = -1
            if not outstanding:
                parked.answer(response)

        for partition, partition_response in self.to_flush:
            self._node.background.submit(partition.log.flush, partial(flushed, partition_response))
        return parked


def _topic_image(node: Node, topic: TopicProduceData, version: int) -> TopicImage:
    if version >= _BY_ID_FROM:
        image = node.image.topic_by_id(topic.topic_id)
        if image is None:
            raise UnknownTopicIdError()
    else:
        image = node.image.topic(topic.name)
        if image is None:
            raise UnknownTopicOrPartitionError(f"there is no topic {topic.name!r}")
    if image.is_internal:
        raise InvalidTopicError(f"{image.name!r} is the broker's own: clients can't write to it")
    return image
