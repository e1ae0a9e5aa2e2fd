"""The sender: turns ready batches into Produce requests, each with many partitions of one node.

A sans-IO core, owned by the I/O thread. `outcomes` applies the responses to the batches.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable, Sequence
from functools import partial
from typing import TYPE_CHECKING, NamedTuple, Protocol

from pyclient.errors import KafkaError
from pyclient.metadata import NO_LEADER
from pyclient.net.request_manager import Outcome, PollResult, UnsentRequest
from pyclient.producer.outcomes import BatchOutcomes
from pyclient.producer.partition_queue import PartitionQueue
from pyclient.producer.producer_batch import ProducerBatch
from pyclient.producer.record_accumulator import RecordAccumulator
from pyclient.producer.sequences import Sequences
from pyclient.protocol.messages.produce import (
    PartitionProduceData,
    ProduceRequest,
    ProduceResponse,
    TopicProduceData,
)

if TYPE_CHECKING:
    from pyclient.net.metadata_manager import MetadataManager
    from pyclient.producer.buffer_pool import BufferPool
    from pyclient.producer.metrics import ProducerMetrics


class Nodes(Protocol):
    """The part of the network client that the sender uses."""

    def ready(self, node: int, now_ms: float) -> bool:
        """Connect to a node if needed; returns whether it can take a request now."""

    def ready_at_ms(self, node: int, now_ms: float) -> float:
        """When to call `ready` again; infinity if a network event will make the node ready."""


class SenderSettings(NamedTuple):
    """The options that shape Produce requests."""

    acks: int
    request_timeout_ms: int
    max_request_size: int
    in_flight_max: int
    transactional_id: str | None = None


class Transaction(Protocol):
    """The part of the transaction manager that the sender uses."""

    transaction_version: int

    def may_drain(self, queue: PartitionQueue) -> bool:
        """Whether the partition is part of the transaction; if not, it is to be added."""


class Sender:
    """Drains batches for the nodes that can take a request."""

    def __init__(
        self,
        settings: SenderSettings,
        accumulator: RecordAccumulator,
        pool: BufferPool,
        sequences: Sequences | None,
        outcomes: BatchOutcomes,
        nodes: Nodes,
        metadata: MetadataManager,
        metrics: ProducerMetrics,
        transaction: Transaction | None = None,
    ) -> None:
        """`sequences` is None without idempotence."""
        self._transaction = transaction
        self._settings = settings
        self._accumulator = accumulator
        self._pool = pool
        self._sequences = sequences
        self._outcomes = outcomes
        self._nodes = nodes
        self._metadata = metadata
        self._metrics = metrics
        self._may_drain = self._drain_rule()
        self._in_flight: Counter[int] = Counter()  # requests by node
        self._searched_version = -1  # the last snapshot that prompted a metadata request

    def _drain_rule(self) -> Callable[[PartitionQueue, ProducerBatch], bool]:
        sequences, transaction = self._sequences, self._transaction
        if sequences is not None and transaction is not None:
            return lambda queue, batch: (
                sequences.may_drain(queue.sequences, batch) and transaction.may_drain(queue)
            )
        if sequences is not None:
            return lambda queue, batch: sequences.may_drain(queue.sequences, batch)
        if self._settings.in_flight_max == 1:
            # Keeps the order without sequence numbers, even if the leader has moved and the
            # previous batch is on another connection.
            return lambda queue, _batch: not queue.on_wire
        return lambda _queue, _batch: True

    def poll(self, now_ms: float) -> PollResult:
        """The Produce requests to send now."""
        self._outcomes.expire(now_ms)
        next_poll_ms = self._metrics.roll(now_ms)
        requests: list[UnsentRequest] = []
        for node in self._accumulator.ready_nodes(now_ms):
            if node == NO_LEADER:
                self._search_leaders()
            elif self._sequences is None or self._sequences.has_identity:
                requests += self._requests(node, now_ms)
                next_poll_ms = min(next_poll_ms, self._nodes.ready_at_ms(node, now_ms))
        return PollResult(requests, min(next_poll_ms, self._accumulator.next_poll_ms))

    def close(self, error: KafkaError) -> None:
        """Fail all batches; called when the I/O loop has ended."""
        self._outcomes.abort(error)

    def _search_leaders(self) -> None:
        """Request metadata, once per snapshot; the metadata manager does the retries."""
        version = self._metadata.snapshot.version
        if version != self._searched_version:
            self._searched_version = version
            for topic in self._accumulator.topics_without_leader:
                self._metadata.keep_topic(topic)  # it may have expired just before a send
            self._metadata.request_update()

    def _requests(self, node: int, now_ms: float) -> list[UnsentRequest]:
        """Drain a node's partitions while it can take requests."""
        requests: list[UnsentRequest] = []
        settings = self._settings
        while self._in_flight[node] < settings.in_flight_max and self._nodes.ready(node, now_ms):
            batches = self._accumulator.drain(
                node, settings.max_request_size, now_ms, self._may_drain
            )
            if not batches:
                break
            self._in_flight[node] += 1
            requests.append(self._request(node, batches, now_ms))
        return requests

    def _request(self, node: int, batches: list[ProducerBatch], now_ms: float) -> UnsentRequest:
        settings = self._settings
        topics: dict[str, TopicProduceData] = {}
        for batch in batches:
            queue = batch.queue
            if self._sequences is not None:
                self._sequences.number(queue.sequences, batch)
            name = queue.topic.name
            topic = topics.get(name)
            if topic is None:
                topic = topics[name] = TopicProduceData(
                    name=name,
                    topic_id=self._metadata.snapshot.topic_id(name),
                    partition_data=[],
                )
            records = batch.close(self._pool)
            ratio = batch.builder.compression_ratio
            if ratio != queue.topic.compression_ratio:
                queue.topic.observe_ratio(ratio)
            topic.partition_data.append(
                PartitionProduceData(index=queue.partition, records=records)
            )
        self._metrics.request_sent(batches, now_ms)
        request = ProduceRequest(
            transactional_id=settings.transactional_id,
            acks=settings.acks,
            timeout_ms=settings.request_timeout_ms,
            topic_data=list(topics.values()),
        )
        if self._transaction is not None:
            request.use_transaction_version(self._transaction.transaction_version)
        on_done = partial(self._on_done, node, batches, list(topics.values()), now_ms)
        return UnsentRequest(request, node, on_done, expects_response=settings.acks != 0)

    def _on_done(
        self,
        node: int,
        batches: Sequence[ProducerBatch],
        topics: Sequence[TopicProduceData],
        sent_ms: float,
        outcome: Outcome,
        now_ms: float,
    ) -> None:
        self._in_flight[node] -= 1
        throttle_ms = outcome.throttle_time_ms if isinstance(outcome, ProduceResponse) else 0
        self._metrics.request_done(now_ms - sent_ms, throttle_ms)
        self._accumulator.take_off_wire(batches)
        if isinstance(outcome, KafkaError):
            self._outcomes.no_answer(batches, outcome, now_ms)
        elif self._settings.acks == 0:
            self._outcomes.no_answer_expected(batches, now_ms)
        else:
            assert isinstance(outcome, ProduceResponse)
            names = {topic.topic_id: topic.name for topic in topics}
            self._outcomes.answer(batches, outcome, names, now_ms)
