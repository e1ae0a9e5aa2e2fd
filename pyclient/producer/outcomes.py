"""Decides the outcome of batches: written, retried, split, or failed.

Part of the sender; the I/O thread alone touches it. Every way a batch can end is here, and each
gives the batch's memory back: at once, or, if time ran out while a request held it, when that
request is over, because until then the network reads the buffers. (A caller's thread that is about
to compress the batch gives them back itself.)

The order of an ending: memory back, result and callbacks, then gone from the incomplete batches;
so a callback may send, and `flush` returns after the callbacks.
"""

from __future__ import annotations

import logging
from collections.abc import Callable, Iterable, Mapping, Sequence
from typing import TYPE_CHECKING, Final, NamedTuple

from pyclient.error_codes import NONE, for_code, summary
from pyclient.errors import (
    Cancelled,
    ConcurrentTransactionsError,
    DuplicateSequenceError,
    InvalidRecordError,
    KafkaError,
    KafkaTimeoutError,
    NetworkError,
    OutOfOrderSequenceError,
    ProtocolError,
    RecordTooLargeError,
    UnknownProducerIdError,
    UnknownServerError,
)
from pyclient.metadata import NO_LEADER
from pyclient.producer.batch_result import NO_OFFSET
from pyclient.producer.batch_splitting import split
from pyclient.producer.buffer_pool import BufferPool
from pyclient.producer.producer_batch import BuilderFactory, ProducerBatch
from pyclient.producer.record_accumulator import RecordAccumulator
from pyclient.producer.sequences import Sequences
from pyclient.protocol.messages.produce import PartitionProduceResponse, ProduceResponse
from pyclient.timers import ExponentialBackoff
from pyclient.types import BrokerMetadata, TopicPartition

if TYPE_CHECKING:
    from pyclient.net.metadata_manager import MetadataManager
    from pyclient.producer.metrics import ProducerMetrics

log = logging.getLogger(__name__)

# A duplicate is written already; only its offset is not known any more.
_WRITTEN: Final = frozenset((NONE, DuplicateSequenceError.code))


class RetryRules(NamedTuple):
    """What the configuration says about failures."""

    retries: int
    delivery_timeout_ms: float
    backoff: ExponentialBackoff
    batch_size: int
    concurrent_backoff: ExponentialBackoff | None = None  # while a transaction's end is written


class BatchOutcomes:
    """Handles batches whose request is finished, or whose delivery time is over."""

    def __init__(
        self,
        rules: RetryRules,
        accumulator: RecordAccumulator,
        pool: BufferPool,
        sequences: Sequences | None,
        metadata: MetadataManager,
        metrics: ProducerMetrics,
        new_builder: BuilderFactory,
        troubles: Callable[[float], Sequence[str]],
    ) -> None:
        """`troubles` describes why brokers do not answer."""
        self._troubles = troubles
        self._rules = rules
        self._accumulator = accumulator
        self._pool = pool
        self._sequences = sequences
        self._metadata = metadata
        self._metrics = metrics
        self._new_builder = new_builder
        self._on_failed: Callable[[ProducerBatch, KafkaError], None] | None = None

    def tell_failures(self, on_failed: Callable[[ProducerBatch, KafkaError], None]) -> None:
        """Have `on_failed` called after each batch that has failed, outside every lock."""
        self._on_failed = on_failed

    def answer(
        self,
        batches: Sequence[ProducerBatch],
        response: ProduceResponse,
        topic_names: Mapping[bytes, str],
        now_ms: float,
    ) -> None:
        """A broker answered; `topic_names` by the ids that the request used."""
        answers = {
            (topic.name or topic_names.get(topic.topic_id, ""), partition.index): partition
            for topic in response.responses
            for partition in topic.partition_responses
        }
        written: list[tuple[ProducerBatch, PartitionProduceResponse]] = []
        refresh = False
        for batch in batches:
            partition = answers.get(batch.queue.topic_partition)
            if partition is None:
                self._failed(
                    batch, NetworkError("the broker's response leaves out the partition"), now_ms
                )
            elif partition.error_code in _WRITTEN:
                written.append((batch, partition))
            else:
                error = _error_of(batch, partition)
                refresh = refresh or error.refresh_metadata
                self._failed(batch, error, now_ms, _record_errors(partition))
        self._written(written)
        if refresh:
            self._take_leaders(answers, response)
            self._metadata.request_update()
        self._reevaluate(batches, now_ms)

    def no_answer(self, batches: Sequence[ProducerBatch], error: KafkaError, now_ms: float) -> None:
        """The request failed as a whole."""
        for batch in batches:
            self._failed(batch, error, now_ms)
        if error.refresh_metadata:
            self._metadata.request_update()
        self._reevaluate(batches, now_ms)

    def no_answer_expected(self, batches: Sequence[ProducerBatch], now_ms: float) -> None:
        """With acks=0: complete the batches, because no response will come."""
        nothing = PartitionProduceResponse(base_offset=NO_OFFSET)
        self._written([(batch, nothing) for batch in batches])
        self._reevaluate(batches, now_ms)

    def expire(self, now_ms: float) -> None:
        """Fail what could not be delivered within `delivery.timeout.ms`."""
        expired = self._accumulator.take_expired(now_ms)
        for batch in expired:
            self._fail(batch, self._timeout_of(batch, now_ms))
        if expired:
            self._reevaluate(expired, now_ms)

    def abort(self, error: KafkaError) -> None:
        """Fail all batches and refuse new records: the producer was closed, or has failed."""
        for batch in self._accumulator.take_all(error):
            self._fail(batch, error)

    def drop_waiting(self, error: KafkaError, now_ms: float) -> None:
        """Fail what was never sent, and what can never be written.

        A batch that the broker may have is sent again until its outcome is known.
        """
        dropped = self._accumulator.take_waiting(
            lambda queue, batch: batch.number is None or queue.sequences.is_to_be_renumbered(batch),
            now_ms,
        )
        for batch in dropped:
            self._fail(batch, error)

    def _reevaluate(self, batches: Iterable[ProducerBatch], now_ms: float) -> None:
        self._accumulator.reevaluate((batch.queue for batch in batches), now_ms)

    def _written(self, written: Sequence[tuple[ProducerBatch, PartitionProduceResponse]]) -> None:
        if self._sequences is not None:
            for batch, _ in written:
                self._sequences.written(batch.queue.sequences, batch)
        self._pool.release([buffer for batch, _ in written for buffer in batch.take_buffers()])
        for batch, partition in written:
            if not batch.is_done:  # or its time ran out before the answer came
                batch.result.succeed(partition.base_offset, partition.log_append_time_ms)
        self._accumulator.complete(batch for batch, _ in written)

    def _failed(
        self,
        batch: ProducerBatch,
        error: KafkaError,
        now_ms: float,
        record_errors: Mapping[int, KafkaError] | None = None,
    ) -> None:
        """Handle a failed attempt: split, retry or fail the batch."""
        batch.maybe_written = batch.maybe_written or _may_be_written(error)
        if batch.is_done:  # its time ran out before, and only its memory was still held
            self._pool.release(batch.take_buffers())
            if self._sequences is not None:
                self._sequences.abandoned(batch.queue.sequences, batch)
        elif isinstance(error, RecordTooLargeError) and self._may_split(batch):
            self._split(batch)
        elif self._may_retry(batch, error, now_ms):
            self._retry(batch, error, now_ms)
        else:
            self._fail(batch, error, record_errors)

    def _may_retry(self, batch: ProducerBatch, error: KafkaError, now_ms: float) -> bool:
        if isinstance(error, Cancelled):  # the producer is closing
            return False
        return (
            (error.retriable or self._can_renumber(batch, error))
            and batch.attempts < self._rules.retries
            and now_ms < batch.created_ms + self._rules.delivery_timeout_ms
        )

    def _can_renumber(self, batch: ProducerBatch, error: KafkaError) -> bool:
        """Whether a sequence error passes when the batch, or the one before it, is retried."""
        if self._sequences is None:
            return False
        numbering = batch.queue.sequences
        if self._sequences.is_transactional:
            # Only if the one before it is sent again, too: its own number is for good.
            is_early = numbering.unresolved_until is None and not numbering.is_next(batch)
            return (
                isinstance(error, OutOfOrderSequenceError)
                and is_early
                and not (numbering.is_overtaken(batch) or numbering.is_to_be_renumbered(batch))
            )
        if isinstance(error, OutOfOrderSequenceError):
            return not numbering.is_overtaken(batch)
        return isinstance(error, UnknownProducerIdError)

    def _retry(self, batch: ProducerBatch, error: KafkaError, now_ms: float) -> None:
        backoff = self._rules.backoff
        if isinstance(error, ConcurrentTransactionsError):
            backoff = self._rules.concurrent_backoff or backoff
        pause_ms = backoff.backoff_ms(batch.attempts)
        batch.attempts += 1
        batch.last_error = error
        self._metrics.batch_retried(batch)
        log.info(
            "A batch of %d records for %s-%d is sent again (retry %d, in %.0f ms): %s",
            batch.record_count,
            *batch.queue.topic_partition,
            batch.attempts,
            pause_ms,
            error,
        )
        if self._sequences is not None:
            numbering = batch.queue.sequences
            if isinstance(error, OutOfOrderSequenceError):
                self._sequences.out_of_order(numbering, batch)
            elif isinstance(error, UnknownProducerIdError):
                self._sequences.start_over(numbering)
            else:
                self._sequences.settle(numbering)
        self._accumulator.put_back(batch, now_ms + pause_ms)

    def _may_split(self, batch: ProducerBatch) -> bool:
        # A broker that has the whole batch already (and takes less since) would not know its
        # parts again, and write them a second time.
        return batch.record_count > 1 and (self._sequences is None or not batch.maybe_written)

    def _split(self, batch: ProducerBatch) -> None:
        """Send a batch that is too large for the broker as several smaller ones."""
        # At most half of it, or a batch of no more than `batch.size` would never get smaller.
        limit = min(self._rules.batch_size, batch.builder.raw_size // 2)
        parts = split(batch, limit, self._pool, self._new_builder)
        batch.queue.topic.refuse_growth(self._rules.batch_size)
        self._metrics.batch_split()
        log.info(
            "A batch of %d bytes for %s-%d is too large for the broker: split into %d",
            batch.size_in_bytes,
            *batch.queue.topic_partition,
            len(parts),
        )
        if self._sequences is not None:
            self._sequences.replaced(batch.queue.sequences, batch, parts)
        self._accumulator.replace(batch, parts)
        self._pool.release(batch.take_buffers())

    def _fail(
        self,
        batch: ProducerBatch,
        error: KafkaError,
        record_errors: Mapping[int, KafkaError] | None = None,
    ) -> None:
        self._metrics.batch_failed(batch)
        if self._sequences is not None:
            self._sequences.failed(batch.queue.sequences, batch)
        if not (batch.is_on_wire or batch.is_abandoned):
            self._pool.release(batch.take_buffers())
        log.warning(
            "%d records for %s-%d failed: %s",
            batch.record_count,
            *batch.queue.topic_partition,
            error,
        )
        batch.result.fail(error, record_errors)
        self._accumulator.complete([batch])
        if self._on_failed is not None:
            self._on_failed(batch, error)

    def _timeout_of(self, batch: ProducerBatch, now_ms: float) -> KafkaTimeoutError:
        queue = batch.queue
        if batch.last_error is not None:
            reason = f"the last of {batch.attempts} failed attempts: {batch.last_error}"
        elif batch.is_on_wire:
            reason = f"node {queue.leader} has not answered"
        elif queue.leader == NO_LEADER:
            reason = "the partition has no leader"
        else:
            troubles = "; ".join(self._troubles(now_ms)) or "it is busy"
            reason = f"its leader, node {queue.leader}, takes no requests: {troubles}"
        return KafkaTimeoutError(
            f"the record for {queue.topic.name}-{queue.partition} was not acknowledged within"
            f" {self._rules.delivery_timeout_ms:.0f} ms (delivery.timeout.ms): {reason}"
        )

    def _take_leaders(
        self,
        answers: Mapping[tuple[str, int], PartitionProduceResponse],
        response: ProduceResponse,
    ) -> None:
        """Use the new leaders that the broker named (KIP-951), before the metadata is updated."""
        leaders = {
            TopicPartition(*key): (
                partition.current_leader.leader_id,
                partition.current_leader.leader_epoch,
            )
            for key, partition in answers.items()
            if partition.current_leader.leader_id != NO_LEADER
        }
        if leaders:
            endpoints = [
                BrokerMetadata(node.node_id, node.host, node.port, node.rack)
                for node in response.node_endpoints
            ]
            self._metadata.update_leaders(leaders, endpoints)


def _may_be_written(error: KafkaError) -> bool:
    """Whether the broker may have a batch in spite of this error.

    Errors that pass may also come after the leader has written; the others come from checks
    before it writes.
    """
    if isinstance(error, KafkaTimeoutError):  # never sent
        return False
    return error.retriable or isinstance(error, UnknownServerError | ProtocolError)


def _error_of(batch: ProducerBatch, partition: PartitionProduceResponse) -> KafkaError:
    error_class = for_code(partition.error_code)
    text = f"{batch.queue.topic.name}-{batch.queue.partition}: "
    if error_class is RecordTooLargeError:
        size = batch.size_in_bytes
        return RecordTooLargeError(
            f"{text}the broker refuses a batch of {size} bytes: max.message.bytes of the topic"
            " is smaller",
            size=size,
        )
    return error_class(text + (partition.error_message or summary(error_class)))


def _record_errors(partition: PartitionProduceResponse) -> Mapping[int, KafkaError] | None:
    """The records that the broker named, by their index in the batch."""
    if not partition.record_errors:
        return None
    return {
        record.batch_index: InvalidRecordError(
            record.batch_index_error_message or partition.error_message or "it is not valid"
        )
        for record in partition.record_errors
    }
