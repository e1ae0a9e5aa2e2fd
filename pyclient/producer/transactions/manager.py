"""The transactional producer's half on the I/O thread: which request comes next, what answers mean.

A sans-IO core. At most one of its requests is in flight, and the state tells which one is due:
find the coordinator, get an id and epoch, add partitions and groups, commit offsets, end. With
`transaction.version` 2 (KIP-890) the brokers add partitions and groups by themselves, and every
end brings a new epoch; before it, both are requests of their own.

A transaction ends only when all its records have their outcome and none of them is on the wire: a
record that was written after the end would stay in an open transaction.
"""

from __future__ import annotations

import logging
from collections import deque
from collections.abc import Callable
from functools import partial
from typing import TYPE_CHECKING, Any, Final, NamedTuple, Protocol

from pyclient.error_codes import NONE, for_code
from pyclient.errors import (
    Cancelled,
    ClusterAuthorizationError,
    CommitFailedError,
    ConcurrentTransactionsError,
    FencedInstanceIdError,
    GroupAuthorizationError,
    InvalidTxnStateError,
    KafkaError,
    OperationNotAttemptedError,
    RequestTimedOutError,
    TransactionAbortableError,
    TransactionAbortedError,
    TransactionalIdAuthorizationError,
    UnknownProducerIdError,
    UnsupportedVersionError,
)
from pyclient.net.broker_versions import BrokerVersions
from pyclient.net.request_manager import NOTHING_TO_DO, Outcome, PollResult, UnsentRequest
from pyclient.producer.outcomes import BatchOutcomes
from pyclient.producer.partition_queue import PartitionQueue
from pyclient.producer.producer_batch import ProducerBatch
from pyclient.producer.record_accumulator import RecordAccumulator
from pyclient.producer.sequences import NO_PRODUCER, ProducerIdAndEpoch, Sequences
from pyclient.producer.transactions import requests
from pyclient.producer.transactions.coordinators import (
    Coordinators,
    CoordinatorType,
    NodeDirectory,
)
from pyclient.producer.transactions.failures import (
    ADDING_FAILS_THE_PRODUCER,
    FENCED,
    GROUP_MOVED_ON,
    caused,
    explained,
    is_fatal_for_batches,
)
from pyclient.producer.transactions.offsets import OffsetsToCommit
from pyclient.producer.transactions.states import (
    ABORT,
    OPEN,
    PendingCall,
    TransactionState,
    TransactionStatus,
    failure,
)
from pyclient.protocol.messages.add_offsets_to_txn import (
    AddOffsetsToTxnRequest,
    AddOffsetsToTxnResponse,
)
from pyclient.protocol.messages.add_partitions_to_txn import (
    AddPartitionsToTxnRequest,
    AddPartitionsToTxnResponse,
)
from pyclient.protocol.messages.end_txn import EndTxnResponse
from pyclient.protocol.messages.init_producer_id import (
    InitProducerIdRequest,
    InitProducerIdResponse,
)
from pyclient.protocol.messages.txn_offset_commit import TxnOffsetCommitResponse
from pyclient.protocol.schema import Message
from pyclient.types import TopicPartition

if TYPE_CHECKING:
    from pyclient.timers import ExponentialBackoff

log = logging.getLogger(__name__)

_TV2: Final = 2
_BUMP_VERSION: Final = 3  # the first of InitProducerId that takes an id and epoch (KIP-360)

_MAY_START: Final = (AddPartitionsToTxnRequest, AddOffsetsToTxnRequest)
_DROPPING: Final = frozenset((TransactionState.ABORTABLE_ERROR, TransactionState.ABORTING))


class Network(NodeDirectory, Protocol):
    """What is used of the network client."""

    def versions_of(self, node: int) -> BrokerVersions | None:
        """What a connected broker serves."""


class _Step(NamedTuple):
    """The request that is due."""

    request: Message
    node: int | None
    coordinator: tuple[CoordinatorType, str] | None  # to look up again if it does not answer
    on_answer: Callable[[Any, float], None]


class TransactionManager:
    """Drives the transactions of one producer.

    Attributes:
        transaction_version: the protocol of the current transaction: 2, or less.
        trouble: why the last request failed, for the message of a timeout.
    """

    def __init__(
        self,
        status: TransactionStatus,
        timeout_ms: int,
        sequences: Sequences,
        accumulator: RecordAccumulator,
        outcomes: BatchOutcomes,
        network: Network,
        backoff: ExponentialBackoff,
        concurrent_backoff: ExponentialBackoff,
    ) -> None:
        """Do nothing yet.

        Args:
            status: the state, shared with the callers.
            timeout_ms: `transaction.timeout.ms`.
            sequences: who the producer is, and the numbers of its batches.
            accumulator: the records.
            outcomes: fails batches.
            network: the brokers.
            backoff: the pauses between attempts.
            concurrent_backoff: the pauses while the end of the last transaction is written.
        """
        self.transactional_id = status.transactional_id
        self.transaction_version = 0
        self.trouble = "the coordinator was not asked yet"
        self._status = status
        self._timeout_ms = timeout_ms
        self._sequences = sequences
        self._accumulator = accumulator
        self._outcomes = outcomes
        self._network = network
        self._coordinators = Coordinators(network)
        self._backoff = backoff
        self._concurrent_backoff = concurrent_backoff
        self._in_flight = False
        self._attempts = 0
        self._retry_at_ms = 0.0
        # Of the current transaction.
        self._partitions: set[TopicPartition] = set()
        self._to_add: dict[PartitionQueue, None] = {}
        self._groups: set[str] = set()
        self._offsets: deque[OffsetsToCommit] = deque()
        self._is_started = False  # the coordinator knows of it, or may
        self._uncertain: _Step | None = None  # it may have started, for the answer was lost
        self._needs_epoch = False

    # --- callers' threads --------------------------------------------------------------------

    def add_offsets(self, offsets: OffsetsToCommit) -> None:
        """Commit these with the transaction; the I/O thread has to be woken."""
        self._offsets.append(offsets)

    @property
    def identity(self) -> ProducerIdAndEpoch:
        """The producer's id and epoch."""
        return self._sequences.identity

    @property
    def is_started(self) -> bool:
        """Whether the coordinator knows of the transaction, or may."""
        return self._is_started

    # --- for the sender ----------------------------------------------------------------------

    def may_drain(self, queue: PartitionQueue) -> bool:
        """Whether the partition is part of the transaction; if not, it is to be added.

        Called under the accumulator's lock.
        """
        key = queue.topic_partition
        if key in self._partitions:
            return True
        if self._status.state not in OPEN:
            return False
        if self.transaction_version >= _TV2:
            self._partitions.add(key)
            self._is_started = True
            return True
        self._to_add[queue] = None
        return False

    def batch_failed(self, batch: ProducerBatch, error: KafkaError) -> None:
        """Records were not written: the transaction cannot be committed."""
        state = self._status.state
        if state is TransactionState.FATAL_ERROR or isinstance(error, TransactionAbortedError):
            return
        if isinstance(error, Cancelled):  # the producer is closing
            return
        if is_fatal_for_batches(error):
            self._fatal(error)
        elif state in OPEN:
            if error.retriable or isinstance(error, InvalidTxnStateError):
                where = f"{batch.queue.topic.name}-{batch.queue.partition}"
                error = caused(
                    TransactionAbortableError(
                        f"records for {where} were not written, call {ABORT}: {error}"
                    ),
                    error,
                )
            self._abortable(error)

    # --- the loop ----------------------------------------------------------------------------

    def poll(self, now_ms: float) -> PollResult:
        """The request that is due now."""
        state = self._status.state
        if state in _DROPPING and self._accumulator.incomplete_count:
            self._outcomes.drop_waiting(self._drop_reason(), now_ms)
        if self._offsets and state not in OPEN:
            self._fail_offsets(self._drop_reason())
        if self._in_flight:
            return NOTHING_TO_DO
        step = self._next_step()
        if step is None:
            return NOTHING_TO_DO
        if now_ms < self._retry_at_ms:
            return PollResult(next_poll_ms=self._retry_at_ms)
        self._in_flight = True
        on_done = partial(self._on_done, step)
        return PollResult([UnsentRequest(step.request, step.node, on_done)])

    def close(self, error: KafkaError) -> None:
        """The loop has ended: fail the calls that wait."""
        self._fail_offsets(error)
        pending = self._status.pending
        if pending is not None:
            pending.finish(error)

    def _next_step(self) -> _Step | None:
        state = self._status.state
        if state in (TransactionState.INITIALIZING, TransactionState.BUMPING):
            identity = self.identity if state is TransactionState.BUMPING else NO_PRODUCER
            request = requests.init(self.transactional_id, self._timeout_ms, identity)
            return self._to_coordinator(request, self._on_init)
        if state in OPEN:
            if self._to_add:
                queues = list(self._to_add)
                added = requests.add_partitions(
                    self.transactional_id, self.identity, [one.topic_partition for one in queues]
                )
                return self._to_coordinator(added, partial(self._on_added, queues))
            if self._offsets:
                return self._offsets_step(self._offsets[0])
        pending = self._status.pending
        if pending is None or not pending.is_armed or not self._is_flushed():
            return None
        if state is TransactionState.PREPARING:
            _finish(self._status.move(TransactionState.PREPARED))
        elif state in (TransactionState.COMMITTING, TransactionState.ABORTING):
            if self._is_started:
                end = requests.end(
                    self.transactional_id,
                    self.identity,
                    self.transaction_version,
                    commit=state is TransactionState.COMMITTING,
                )
                return self._to_coordinator(end, self._on_ended)
            if self._uncertain is not None:
                # Once more: only a transaction that has started can, and must, be ended.
                return self._to_coordinator(self._uncertain.request, self._uncertain.on_answer)
            self._complete(None)
            return self._next_step() if self._status.state is TransactionState.BUMPING else None
        return None

    def _is_flushed(self) -> bool:
        return not (self._accumulator.incomplete_count or self._accumulator.on_wire_count)

    def _to_coordinator(self, request: Message, on_answer: Callable[[Any, float], None]) -> _Step:
        where = (CoordinatorType.TRANSACTION, self.transactional_id)
        node = self._coordinators.node(*where)
        return self._find(*where) if node is None else _Step(request, node, where, on_answer)

    def _find(self, kind: CoordinatorType, key: str) -> _Step:
        request = self._coordinators.request(kind, key)
        return _Step(request, None, None, partial(self._on_found, kind, key))

    def _offsets_step(self, offsets: OffsetsToCommit) -> _Step:
        if self.transaction_version < _TV2 and offsets.group_id not in self._groups:
            request = requests.add_group(self.transactional_id, self.identity, offsets.group_id)
            return self._to_coordinator(request, partial(self._on_group_added, offsets.group_id))
        where = (CoordinatorType.GROUP, offsets.group_id)
        node = self._coordinators.node(*where)
        if node is None:
            return self._find(*where)
        self._is_started = True
        commit = offsets.request(self.transactional_id, *self.identity)
        commit.use_transaction_version(self.transaction_version)
        return _Step(commit, node, where, partial(self._on_offsets, offsets))

    # --- answers -----------------------------------------------------------------------------

    def _on_done(self, step: _Step, outcome: Outcome, now_ms: float) -> None:
        self._in_flight = False
        if self._status.state is TransactionState.FATAL_ERROR or isinstance(outcome, Cancelled):
            return
        if not isinstance(outcome, KafkaError):
            step.on_answer(outcome, now_ms)
        elif outcome.retriable:
            # The connection broke, or the broker does not answer: another may have its place.
            if step.coordinator is not None:
                self._coordinators.forget(*step.coordinator)
            if isinstance(step.request, _MAY_START) and not self._is_started:
                self._uncertain = step
            self._retry(outcome, now_ms)
        elif isinstance(outcome, UnsupportedVersionError):
            self._fatal(
                caused(
                    UnsupportedVersionError(f"the brokers are too old for transactions: {outcome}"),
                    outcome,
                )
            )
        else:
            self._fatal(outcome)

    def _on_found(self, kind: CoordinatorType, key: str, outcome: Outcome, now_ms: float) -> None:
        error = self._coordinators.on_answer(kind, key, outcome)
        if error is None:
            self._succeeded()
        else:
            self._refused(error, now_ms)

    def _on_init(self, answer: InitProducerIdResponse, now_ms: float) -> None:
        state = self._status.state
        if answer.error_code == NONE:
            self._succeeded()
            self._sequences.set_identity(answer.producer_id, answer.producer_epoch)
            self._needs_epoch = False
            self.transaction_version = self._reported_version()
            log.info(
                "transactional id %s: producer id %d, epoch %d, transaction version %d",
                self.transactional_id,
                answer.producer_id,
                answer.producer_epoch,
                self.transaction_version,
            )
            _finish(self._status.move(TransactionState.READY))
            return
        error = for_code(answer.error_code)()
        may_be_allowed = (TransactionalIdAuthorizationError, ClusterAuthorizationError)
        if state is TransactionState.INITIALIZING and isinstance(error, may_be_allowed):
            _finish(self._status.move(TransactionState.UNINITIALIZED), error)
        else:
            self._refused(error, now_ms)

    def _on_added(
        self, queues: list[PartitionQueue], answer: AddPartitionsToTxnResponse, now_ms: float
    ) -> None:
        codes = {
            TopicPartition(topic.name, one.partition_index): one.partition_error_code
            for topic in answer.results_by_topic_v3_and_below
            for one in topic.results_by_partition
        }
        errors = {key: for_code(code)() for key, code in codes.items() if code != NONE}
        if not errors:
            self._succeeded()
            self._uncertain = None
            self._is_started = True
            for queue in queues:
                self._to_add.pop(queue, None)
                self._partitions.add(queue.topic_partition)
            self._accumulator.reevaluate(queues, now_ms)
            return
        # The partitions that were not attempted tell nothing.
        key, error = min(
            errors.items(), key=lambda item: isinstance(item[1], OperationNotAttemptedError)
        )
        if error.retriable or error.abortable or isinstance(error, ADDING_FAILS_THE_PRODUCER):
            self._refused(error, now_ms)
            return
        self._uncertain = None
        self._to_add.clear()
        if self._status.state in OPEN:
            where = f"{key.topic}-{key.partition}"
            self._abortable(
                caused(type(error)(f"{where} cannot be part of a transaction: {error}"), error)
            )

    def _on_group_added(
        self, group_id: str, answer: AddOffsetsToTxnResponse, now_ms: float
    ) -> None:
        if answer.error_code == NONE:
            self._succeeded()
            self._uncertain = None
            self._groups.add(group_id)
            self._is_started = True
        else:
            self._refused(for_code(answer.error_code)(), now_ms)

    def _on_offsets(
        self, offsets: OffsetsToCommit, answer: TxnOffsetCommitResponse, now_ms: float
    ) -> None:
        codes = offsets.accept(answer)
        if not codes:
            self._succeeded()
            if self._offsets and self._offsets[0] is offsets:
                self._offsets.popleft()
            offsets.finish()
            return
        errors = [for_code(code)() for code in sorted(codes)]
        # What does not pass decides.
        error = next((one for one in errors if not one.retriable), errors[0])
        if error.retriable:
            moved = any(
                one.refresh_coordinator or isinstance(one, RequestTimedOutError) for one in errors
            )
            if moved:
                self._coordinators.forget(CoordinatorType.GROUP, offsets.group_id)
            self._retry(error, now_ms)
        elif error.code in GROUP_MOVED_ON:
            self._abortable(
                caused(
                    CommitFailedError(
                        f"the offsets of group {offsets.group_id!r} are not committed, because the"
                        f" consumer is no longer the member that it was, call {ABORT}: {error}"
                    ),
                    error,
                )
            )
        elif isinstance(error, FencedInstanceIdError):
            self._abortable(error)
        else:
            self._refused(error, now_ms)

    def _on_ended(self, answer: EndTxnResponse, now_ms: float) -> None:
        if answer.error_code != NONE:
            self._refused(for_code(answer.error_code)(), now_ms)
            return
        self._succeeded()
        identity = ProducerIdAndEpoch(answer.producer_id, answer.producer_epoch)
        self._complete(identity if identity.producer_id >= 0 else None)

    def _complete(self, identity: ProducerIdAndEpoch | None) -> None:
        """The transaction is over; `identity` is what the coordinator gave for the next one."""
        self._partitions.clear()
        self._to_add.clear()
        self._groups.clear()
        self._is_started = False
        self._uncertain = None
        if identity is not None:
            self._sequences.set_identity(*identity)
        needs_epoch = identity is None and (self._needs_epoch or self._sequences.has_holes)
        self._needs_epoch = False
        version = self._reported_version()
        if version >= _TV2 > self.transaction_version:
            # What is late of the old protocol must not reach a transaction of the new one.
            needs_epoch = True
        else:
            self.transaction_version = version
        if needs_epoch and not self._can_get_epoch():
            self._fatal(
                UnsupportedVersionError(
                    "records were not acknowledged, and the brokers are too old to go on safely"
                    " (before Kafka 2.5): close this producer, and make a new one"
                )
            )
        elif needs_epoch:
            self._status.move(TransactionState.BUMPING)
        else:
            _finish(self._status.move(TransactionState.READY))

    # --- failures ----------------------------------------------------------------------------

    def _succeeded(self) -> None:
        self._attempts = 0
        self._retry_at_ms = 0.0
        self.trouble = "the coordinator is slow"

    def _retry(self, error: KafkaError, now_ms: float) -> None:
        self.trouble = str(error)
        is_concurrent = isinstance(error, ConcurrentTransactionsError)
        backoff = self._concurrent_backoff if is_concurrent else self._backoff
        self._retry_at_ms = now_ms + backoff.backoff_ms(self._attempts)
        self._attempts += 1
        log.debug("transactional id %s: trying again: %s", self.transactional_id, error)

    def _refused(self, error: KafkaError, now_ms: float) -> None:
        """A coordinator answered a request with an error."""
        if error.refresh_coordinator:
            self._coordinators.forget(CoordinatorType.TRANSACTION, self.transactional_id)
        if error.retriable:
            self._retry(error, now_ms)
        elif isinstance(error, FENCED):
            self._fatal(error)
        elif error.abortable or isinstance(error, GroupAuthorizationError):
            self._abortable(error)
        elif isinstance(error, UnknownProducerIdError):
            self._needs_epoch = True
            self._abortable(error)
        else:
            self._fatal(error)

    def _abortable(self, error: KafkaError) -> None:
        """The transaction has failed; after an abort the producer can go on."""
        state = self._status.state
        if state is TransactionState.ABORTABLE_ERROR:
            return  # the first error is the one to tell
        if state not in OPEN:  # an abort cannot be answered with another
            self._fatal(error)
            return
        log.info(
            "transactional id %s: the transaction has failed: %s", self.transactional_id, error
        )
        pending = self._status.fail(TransactionState.ABORTABLE_ERROR, error)
        raised = failure(TransactionState.ABORTABLE_ERROR, error, self.transactional_id)
        self._accumulator.suspend(raised)
        self._fail_offsets(error)
        _finish(pending, raised)

    def _fatal(self, error: KafkaError) -> None:
        """The producer cannot go on."""
        error = explained(error, self.transactional_id, self._timeout_ms)
        log.error("transactional id %s: the producer failed: %s", self.transactional_id, error)
        pending = self._status.fail(TransactionState.FATAL_ERROR, error)
        self._fail_offsets(error)
        self._outcomes.abort(error)
        _finish(pending, error)

    def _fail_offsets(self, error: KafkaError) -> None:
        while self._offsets:
            self._offsets.popleft().finish(error)

    def _drop_reason(self) -> TransactionAbortedError:
        error = self._status.error
        reason = f"{ABORT} was called"
        if error is not None:
            reason = f"the transaction has failed: {error}"
        found = TransactionAbortedError(f"not sent, because {reason}")
        found.__cause__ = error
        return found

    # --- versions ----------------------------------------------------------------------------

    def _coordinator_versions(self) -> BrokerVersions | None:
        node = self._coordinators.node(CoordinatorType.TRANSACTION, self.transactional_id)
        return None if node is None else self._network.versions_of(node)

    def _reported_version(self) -> int:
        """`transaction.version`, as the coordinator reports it; unchanged if it is away."""
        versions = self._coordinator_versions()
        return self.transaction_version if versions is None else versions.transaction_version

    def _can_get_epoch(self) -> bool:
        versions = self._coordinator_versions()
        if versions is None:
            return True  # seen when it is back: the request names the id, or cannot be encoded
        served = versions.served.get(InitProducerIdRequest.api_key or 0)
        return served is not None and served.highest >= _BUMP_VERSION


def _finish(pending: PendingCall | None, error: KafkaError | None = None) -> None:
    if pending is not None:
        pending.finish(error)
