"""Appends the batches of a Produce request, and decides when it is answered.

The one owner of appending for clients: `handlers/produce.py` and `data_path/produce.py` decode,
call `append_records` and encode. Where `flush.messages` asks for it, the answer waits for the
fsync. Serving thread only.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from functools import partial
from typing import TYPE_CHECKING, Final, TypeAlias, TypeVar

from broker_stub import diagnostics
from broker_stub.log.batch.append_info import AppendInfo
from broker_stub.log.batch.header import read_header
from broker_stub.metadata.image import TopicImage
from broker_stub.replica.append_in_transaction import (
    Admitted,
    ProduceTransaction,
    TopicBatches,
    append_in_transaction,
    is_transactional,
)
from broker_stub.replica.partition import Partition
from broker_stub.request import CloseConnection, Parked
from pyclient.error_codes import (
    BrokerResponseError,
    InvalidRecordError,
    InvalidRequiredAcksError,
    InvalidTopicError,
    KafkaStorageError,
    UnknownServerError,
    UnknownTopicOrPartitionError,
    UnsupportedCompressionTypeError,
)
from pyclient.protocol.primitives import Uuid
from pyclient.records.compression import Codec
from pyclient.records.header import CODEC_MASK, HEADER_SIZE
from pyclient.types import TopicPartition

if TYPE_CHECKING:
    from broker_stub.node import Node

_ACKS: Final = (-1, 0, 1)

Answer = TypeVar("Answer")

AppendResults: TypeAlias = list[tuple[int, AppendInfo | BrokerResponseError]]
"""What became of the partitions of a topic, by their index."""

AppendedTopics: TypeAlias = list[tuple[str, Uuid, AppendResults]]
"""Name, id and results of every topic, in the order of the request."""


def append_records(
    node: Node,
    acks: int,
    topics: Sequence[TopicBatches],
    encode: Callable[[AppendedTopics], Answer],
    *,
    by_id: bool,
    allows_zstd: bool,
    transaction: ProduceTransaction,
) -> Answer | Parked[Answer] | None:
    """Append every batch; return the answer, or None with acks=0.

    A partition that fails does not stop the others. The answer is parked while a flush that has
    to come before it is under way.

    Args:
        node: the broker.
        acks: 0, 1 or -1 (all in-sync replicas).
        topics: the batches; a log patches offsets into them and writes them without a copy.
        encode: makes the answer of the results.
        by_id: whether topics are named by id.
        allows_zstd: whether the request's version may carry zstd.
        transaction: the transaction that the request's transactional batches belong to.

    Raises:
        InvalidRequiredAcksError: `acks` has another value; nothing was appended.
        BrokerResponseError: the transactional batches are of no transaction, or of several
            producers; nothing was appended.
        CloseConnection: a partition failed, and with acks=0 the client reads no answer.
    """
    if acks not in _ACKS:
        raise InvalidRequiredAcksError(f"acks must be -1, 0 or 1, not {acks}")
    append = partial(
        _append,
        node,
        acks,
        encode=encode,
        by_id=by_id,
        allows_zstd=allows_zstd,
        transaction_version=transaction.client_version,
    )
    for _, _, batches in topics:
        for _, records in batches:
            if is_transactional(records):
                return append_in_transaction(node, transaction, topics, append, by_id=by_id)
    return append(topics)


def _append(
    node: Node,
    acks: int,
    topics: Sequence[TopicBatches],
    admitted: Admitted | None = None,
    *,
    encode: Callable[[AppendedTopics], Answer],
    by_id: bool,
    allows_zstd: bool,
    transaction_version: int,
) -> Answer | Parked[Answer] | None:
    appends = _Appends(
        node, acks, admitted, allows_zstd=allows_zstd, transaction_version=transaction_version
    )
    for name, topic_id, batches in topics:
        results: AppendResults = []
        appends.topics.append((name, topic_id, results))
        try:
            topic = node.replicas.topic(name, topic_id, by_id=by_id)
            if topic.is_internal:
                raise InvalidTopicError(f"{topic.name!r} is internal: clients can't write to it")
        except BrokerResponseError as error:
            appends.error = error
            results += [(index, error) for index, _ in batches]
        else:
            appends.append_to_topic(topic, batches, results)
    node.replicas.wake_fetches(appends.appended)
    parked = appends.flush(encode) if appends.unflushed else None
    if acks == 0:
        if appends.error is not None:
            raise CloseConnection(f"produce with acks=0 failed: {appends.error}")
        return None
    return encode(appends.topics) if parked is None else parked


class _Appends:
    """The appends of one request.

    Attributes:
        topics: the results so far.
        error: why a partition refused its batch; None if all took theirs.
        appended: the partitions that have new records.
        unflushed: what has to be on disk before the answer: a partition, and its result's place.
    """

    __slots__ = (
        "_acks",
        "_admitted",
        "_allows_zstd",
        "_node",
        "_now_ms",
        "_transaction_version",
        "appended",
        "error",
        "topics",
        "unflushed",
    )

    def __init__(
        self,
        node: Node,
        acks: int,
        admitted: Admitted | None,
        *,
        allows_zstd: bool,
        transaction_version: int,
    ) -> None:
        self._node = node
        self._acks = acks
        self._admitted = admitted
        self._transaction_version = transaction_version
        self._allows_zstd = allows_zstd
        self._now_ms = node.clock.now_ms()
        self.topics: AppendedTopics = []
        self.error: BrokerResponseError | None = None
        self.appended: list[Partition] = []
        self.unflushed: list[tuple[Partition, AppendResults, int]] = []

    def append_to_topic(
        self, topic: TopicImage, batches: Sequence[tuple[int, object]], results: AppendResults
    ) -> None:
        for index, records in batches:
            try:
                partition = self._node.replicas.partition_of(topic, index)
                if not isinstance(records, memoryview):
                    raise InvalidRecordError(f"no records for {partition}")
                if not self._allows_zstd:
                    _refuse_zstd(records)
                info = partition.append(
                    records,
                    acks=self._acks,
                    now_ms=self._now_ms,
                    is_verified=bool(self._admitted) and self._is_verified(partition),
                    transaction_version=self._transaction_version,
                )
            except Exception as error:  # noqa: BLE001  answered; the other partitions go on
                self.error = _as_response_error(error)
                results.append((index, self.error))
                continue
            if not info.duplicate:
                self.appended.append(partition)
            if info.flush_due:
                self.unflushed.append((partition, results, len(results)))
            results.append((index, info))

    def _is_verified(self, partition: Partition) -> bool:
        """Whether the coordinator has the partition in the transaction.

        Raises:
            BrokerResponseError: it was asked, and refused.
        """
        assert self._admitted is not None
        key = TopicPartition(partition.topic, partition.index)
        if key not in self._admitted:
            return False
        error = self._admitted[key]
        if error is not None:
            raise error
        return True

    def flush(self, encode: Callable[[AppendedTopics], Answer]) -> Parked[Answer]:
        """Flush in the background; the answer comes when the last flush is done."""
        parked: Parked[Answer] = Parked()
        outstanding = len(self.unflushed)

        def flushed(
            partition: Partition, results: AppendResults, at: int, error: Exception | None
        ) -> None:
            nonlocal outstanding
            outstanding -= 1
            self._node.replicas.wake_fetches([partition])
            index = results[at][0]
            if error is not None:
                results[at] = (index, KafkaStorageError(str(error)))
            elif self._node.image.topic_by_id(partition.topic_id) is None:
                results[at] = (index, UnknownTopicOrPartitionError(f"{partition} was deleted"))
            if not outstanding:
                parked.answer(encode(self.topics))

        for partition, results, at in self.unflushed:
            done = partial(flushed, partition, results, at)
            self._node.background.submit(partition.log.flush, done)
        return parked


def _refuse_zstd(records: memoryview) -> None:
    if len(records) < HEADER_SIZE:
        return  # the log refuses it for that
    if read_header(records).attributes & CODEC_MASK == Codec.ZSTD:
        raise UnsupportedCompressionTypeError("zstd needs Produce version 7 or later")


def _as_response_error(error: Exception) -> BrokerResponseError:
    if isinstance(error, BrokerResponseError):
        return error
    diagnostics.exception("Produce failed for a partition")
    return UnknownServerError(repr(error))
