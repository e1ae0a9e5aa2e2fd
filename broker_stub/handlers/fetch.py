"""Fetch (API key 1), versions 4-17.

Whole batches as file ranges: the one that holds the offset first, and the first of a response
even if it is larger than every limit. Waits for `min_bytes` or `max_wait_ms`; an append wakes
it, and so does the end of its topic. An error is answered at once. Readers of committed records
stop at the last stable offset, and are told which transactions to skip. Sessions: KIP-227, see
`replica/fetch_sessions.py`. From version 13 on topics are named by id. Not served: fetches of
followers (there are none), so 18 and its high watermark are not either.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

from broker_stub.log.partition_log import LogRead
from broker_stub.purgatory import DelayedOperation
from broker_stub.replica.fetch_sessions import FetchPlan, FetchTarget
from broker_stub.replica.partition import Partition
from broker_stub.request import Parked, RequestContext
from pyclient.error_codes import (
    BrokerResponseError,
    UnknownTopicIdError,
    UnknownTopicOrPartitionError,
)
from pyclient.protocol.messages.fetch import (
    AbortedTransaction,
    FetchableTopicResponse,
    FetchRequest,
    FetchResponse,
    PartitionData,
)
from pyclient.protocol.primitives import Uuid

if TYPE_CHECKING:
    from broker_stub.node import Node

_READ_COMMITTED = 1


def handle(
    node: Node, request: FetchRequest, context: RequestContext
) -> FetchResponse | Parked[FetchResponse]:
    """Read, or wait until there is something to read."""
    plan = node.fetch_sessions.plan(request, context.api_version, node.clock.monotonic_ms())
    fetch = _Fetch(node, request, plan)
    read = fetch.read()
    if fetch.is_enough(read) or request.max_wait_ms <= 0 or not plan.targets:
        return fetch.response(read)
    delayed = _DelayedFetch(fetch)
    keys = [partition.key for partition in read.partitions]
    node.purgatory.watch(delayed, keys, request.max_wait_ms)
    delayed.parked.on_abandoned = lambda: node.purgatory.forget(delayed)
    return delayed.parked


def refuse(request: FetchRequest, error: BrokerResponseError) -> FetchResponse:
    """Fail as a whole; before version 7 there is no place for that but the partitions."""
    return FetchResponse(
        error_code=error.code,
        responses=[
            FetchableTopicResponse(
                topic=topic.topic,
                topic_id=topic.topic_id,
                partitions=[_failed(one.partition, error) for one in topic.partitions],
            )
            for topic in request.topics
        ],
    )


def _failed(index: int, error: BrokerResponseError) -> PartitionData:
    return PartitionData(
        partition_index=index,
        error_code=error.code,
        high_watermark=-1,
        aborted_transactions=None,
        records=b"",
    )


class _Read:
    """What one pass over the partitions gave."""

    __slots__ = ("data", "final", "nbytes", "partitions")

    def __init__(self) -> None:
        self.data: list[tuple[FetchTarget, PartitionData, int]] = []
        self.partitions: list[Partition] = []
        self.nbytes = 0
        self.final = False
        """Waiting could not make it better: an error, or more than fits."""


class _Fetch:
    """One fetch request: reads its partitions, at once and again when it is woken."""

    def __init__(self, node: Node, request: FetchRequest, plan: FetchPlan) -> None:
        self._node = node
        self._plan = plan
        self._committed_only = request.isolation_level == _READ_COMMITTED
        self._min_bytes = request.min_bytes
        self._max_bytes = min(request.max_bytes, node.config["fetch.max.bytes"])

    def read(self) -> _Read:
        """Read every partition, within the limits."""
        read = _Read()
        for target in self._plan.targets:
            nbytes = 0
            try:
                partition = self._partition(target)
                read.partitions.append(partition)
                data, nbytes = self._read_partition(partition, target, read)
            except BrokerResponseError as error:
                data = _failed(target.key[2], error)
                read.final = True
            read.data.append((target, data, nbytes))
            read.nbytes += nbytes
        return read

    def _partition(self, target: FetchTarget) -> Partition:
        topic_id, name, index = target.key
        if name:
            topic = self._node.image.topic(name)
            if topic is None:
                raise UnknownTopicOrPartitionError()
        else:
            topic = self._node.image.topic_by_id(topic_id)
            if topic is None:
                raise UnknownTopicIdError()
        partition = self._node.replicas.partition_of(topic, index)
        partition.check_leader(target.current_leader_epoch)
        return partition

    def _read_partition(
        self, partition: Partition, target: FetchTarget, before: _Read
    ) -> tuple[PartitionData, int]:
        end = partition.readable_end(committed_only=self._committed_only)
        read = partition.read(
            target.fetch_offset,
            min(target.partition_max_bytes, self._max_bytes - before.nbytes),
            limit_offset=end,
            # The first records of a response go out whatever their size, or a batch above
            # the client's limit would stop it for ever.
            min_one_batch=before.nbytes == 0,
        )
        if read.next_offset < end:
            before.final = True  # a limit, or the end of a segment, cut it off
        data = PartitionData(
            partition_index=partition.index,
            high_watermark=partition.high_watermark,
            last_stable_offset=partition.last_stable_offset,
            log_start_offset=partition.log_start_offset,
            aborted_transactions=self._aborted(partition, target, read),
            records=b"" if read.records is None else read.records,
        )
        return data, 0 if read.records is None else read.records.nbytes

    def _aborted(
        self, partition: Partition, target: FetchTarget, read: LogRead
    ) -> list[AbortedTransaction] | None:
        """The transactions whose records a reader of committed ones skips; else None."""
        if not self._committed_only:
            return None
        if read.records is None:
            return []
        return [
            AbortedTransaction(producer_id=one.producer_id, first_offset=one.first_offset)
            for one in partition.aborted_transactions(target.fetch_offset, read.next_offset)
        ]

    def is_enough(self, read: _Read) -> bool:
        """Whether the client would not want to wait for more."""
        return read.final or read.nbytes >= self._min_bytes

    def response(self, read: _Read) -> FetchResponse:
        """The answer; in a session only what is news, and the session remembers it."""
        session = self._plan.session
        topics: dict[tuple[Uuid, str], FetchableTopicResponse] = {}
        for target, data, nbytes in read.data:
            if self._plan.incremental and not target.is_news(data, nbytes):
                continue
            if session is not None:
                target.told(data)
                if nbytes:
                    session.served(target.key)
            topic_id, name, _ = target.key
            topic = topics.get((topic_id, name))
            if topic is None:
                topic = FetchableTopicResponse(topic=name, topic_id=topic_id)
                topics[topic_id, name] = topic
            topic.partitions.append(data)
        return FetchResponse(session_id=self._plan.session_id, responses=list(topics.values()))


class _DelayedFetch(DelayedOperation):
    """A fetch that waits for records."""

    def __init__(self, fetch: _Fetch) -> None:
        self._fetch = fetch
        self.parked: Parked[FetchResponse] = Parked()

    def try_complete(self) -> bool:
        """Answer if there is enough by now."""
        read = self._fetch.read()
        if not self._fetch.is_enough(read):
            return False
        self.parked.answer(self._fetch.response(read))
        return True

    def expire(self) -> None:
        """Answer with what there is."""
        self.parked.answer(self._fetch.response(self._fetch.read()))
