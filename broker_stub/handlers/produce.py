"""Produce (API key 0), versions 3-13.

Appends one batch per partition. The batches are views of the receive buffer: the log patches
offsets into them and writes them, nothing is copied. Acks 1 and all are the same on one node,
but all asks for `min.insync.replicas`. Acks 0 gets no response, and a failure closes the
connection, which is the only way left to tell. From version 13 on topics are named by id.
Transactional batches are refused (INVALID_TXN_STATE): there is no transaction coordinator.

`flush.messages` means that records are on disk before they are acked, and before anybody reads
them: such a response is parked until the fsync is done. zstd needs version 7, as in Apache Kafka.
"""

from __future__ import annotations

from collections.abc import Sequence
from functools import partial
from typing import TYPE_CHECKING, Final, TypeAlias

from broker_stub import diagnostics
from broker_stub.dispatch import CloseConnection
from broker_stub.handlers._errors import message_of
from broker_stub.log.batch.append_info import AppendInfo
from broker_stub.log.batch.header import CODEC_MASK, read_header
from broker_stub.metadata.image import TopicImage
from broker_stub.replica.partition import Partition
from broker_stub.request import Parked, RequestContext
from pyclient.error_codes import (
    BrokerResponseError,
    InvalidRecordError,
    InvalidRequiredAcksError,
    InvalidTopicError,
    KafkaStorageError,
    UnknownServerError,
    UnknownTopicIdError,
    UnknownTopicOrPartitionError,
    UnsupportedCompressionTypeError,
)
from pyclient.protocol.messages.produce import (
    PartitionProduceResponse,
    ProduceRequest,
    ProduceResponse,
    TopicProduceResponse,
)
from pyclient.protocol.primitives import Uuid
from pyclient.records.batch import HEADER_SIZE
from pyclient.records.compression import Codec

if TYPE_CHECKING:
    from broker_stub.node import Node

BY_ID_FROM: Final = 13
_ZSTD_FROM: Final = 7
ACKS: Final = (-1, 0, 1)

Outcomes: TypeAlias = list[tuple[int, AppendInfo | BrokerResponseError]]
"""What became of the partitions of a topic, by their index."""


def handle(
    node: Node, request: ProduceRequest, context: RequestContext
) -> ProduceResponse | Parked[ProduceResponse] | None:
    """Append the batches."""
    if request.acks not in ACKS:
        raise InvalidRequiredAcksError(f"acks can be -1, 0 or 1, not {request.acks}")
    appends = Appends(node, request.acks, context.api_version)
    for topic in request.topic_data:
        batches = [(data.index, data.records) for data in topic.partition_data]
        appends.to_topic(topic.name, topic.topic_id, batches)
    return appends.answer()


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


class Appends:
    """The appends of one request, and what follows from them.

    Attributes:
        topics: name, id and outcomes of every topic, in the order of the request.
        failed: whether any partition refused its batch.
        to_flush: what has to be on disk before the answer: a partition's place in outcomes.
    """

    __slots__ = (
        "_acks",
        "_appended",
        "_node",
        "_now_ms",
        "_version",
        "failed",
        "to_flush",
        "topics",
    )

    def __init__(self, node: Node, acks: int, version: int) -> None:
        self._node = node
        self._acks = acks
        self._version = version
        self._now_ms = node.clock.now_ms()
        self._appended: list[Partition] = []
        self.topics: list[tuple[str, Uuid, Outcomes]] = []
        self.failed: BrokerResponseError | None = None
        self.to_flush: list[tuple[Partition, Outcomes, int]] = []

    def to_topic(self, name: str, topic_id: Uuid, batches: Sequence[tuple[int, object]]) -> None:
        """Append to the partitions of one topic."""
        outcomes: Outcomes = []
        self.topics.append((name, topic_id, outcomes))
        try:
            topic = self._topic(name, topic_id)
        except BrokerResponseError as error:
            self.failed = error
            outcomes += [(index, error) for index, _ in batches]
            return
        for index, records in batches:
            try:
                partition = self._node.replicas.partition_of(topic, index)
                if not isinstance(records, memoryview):
                    raise InvalidRecordError(f"no records for {partition}")
                if self._version < _ZSTD_FROM:
                    self._check_codec(records)
                info = partition.append(records, acks=self._acks, now_ms=self._now_ms)
            except Exception as error:  # noqa: BLE001  answered; others of the request go on
                self.failed = _told_to_client(error)
                outcomes.append((index, self.failed))
                continue
            if not info.duplicate:
                self._appended.append(partition)
            if info.flush_due:
                self.to_flush.append((partition, outcomes, len(outcomes)))
            outcomes.append((index, info))

    def wake_fetches(self) -> None:
        """Tell those who wait for records that there are some."""
        self._node.replicas.wake_fetches(self._appended)

    def answer(self) -> ProduceResponse | Parked[ProduceResponse] | None:
        """What the client gets, once what is to be flushed has been.

        Raises:
            CloseConnection: it failed, and the client awaits no answer.
        """
        self.wake_fetches()
        flushed = self._flush()
        if self._acks == 0:
            if self.failed is not None:
                raise CloseConnection(f"produce with acks=0 failed: {self.failed}")
            return None
        return flushed if self.to_flush else self._response()

    def _check_codec(self, records: memoryview) -> None:
        if len(records) < HEADER_SIZE:
            return  # it will be refused for that
        if read_header(records).attributes & CODEC_MASK == Codec.ZSTD:
            raise UnsupportedCompressionTypeError(
                f"zstd needs version {_ZSTD_FROM} of Produce, this is {self._version}"
            )

    def _topic(self, name: str, topic_id: Uuid) -> TopicImage:
        if self._version >= BY_ID_FROM:
            topic = self._node.image.topic_by_id(topic_id)
            if topic is None:
                raise UnknownTopicIdError()
        else:
            topic = self._node.image.topic(name)
            if topic is None:
                raise UnknownTopicOrPartitionError(f"there is no topic {name!r}")
        if topic.is_internal:
            raise InvalidTopicError(
                f"{topic.name!r} is the broker's own: clients can't write to it"
            )
        return topic

    def _response(self) -> ProduceResponse:
        return ProduceResponse(
            responses=[
                TopicProduceResponse(
                    name=name,
                    topic_id=topic_id,
                    partition_responses=[_told(index, outcome) for index, outcome in outcomes],
                )
                for name, topic_id, outcomes in self.topics
            ]
        )

    def _flush(self) -> Parked[ProduceResponse]:
        parked: Parked[ProduceResponse] = Parked()
        outstanding = len(self.to_flush)

        def flushed(
            partition: Partition, outcomes: Outcomes, at: int, error: Exception | None
        ) -> None:
            nonlocal outstanding
            outstanding -= 1
            self._node.replicas.wake_fetches([partition])
            index = outcomes[at][0]
            if error is not None:
                outcomes[at] = (index, KafkaStorageError(str(error)))
            elif self._node.image.topic_by_id(partition.topic_id) is None:
                outcomes[at] = (index, UnknownTopicOrPartitionError(f"{partition} was deleted"))
            if not outstanding:
                parked.answer(self._response())

        for partition, outcomes, at in self.to_flush:
            done = partial(flushed, partition, outcomes, at)
            self._node.background.submit(partition.log.flush, done)
        return parked


def _told_to_client(error: Exception) -> BrokerResponseError:
    if isinstance(error, BrokerResponseError):
        return error
    diagnostics.exception("Produce failed for a partition")
    return UnknownServerError(repr(error))


def _told(index: int, outcome: AppendInfo | BrokerResponseError) -> PartitionProduceResponse:
    if isinstance(outcome, BrokerResponseError):
        return _failed(index, outcome)
    return PartitionProduceResponse(
        index=index,
        base_offset=outcome.first_offset,
        log_append_time_ms=outcome.log_append_time_ms,
        log_start_offset=outcome.log_start_offset,
    )


def _failed(index: int, error: BrokerResponseError) -> PartitionProduceResponse:
    return PartitionProduceResponse(
        index=index, error_code=error.code, base_offset=-1, error_message=message_of(error)
    )
