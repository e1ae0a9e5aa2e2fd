"""The calls of a transactional program: check the state, hand over to the I/O thread, wait.

Any thread may call. Every wait is bounded by `max.block.ms`; a call that timed out goes on in the
background, and calling it again waits for the same result.
"""

from __future__ import annotations

import logging
from collections.abc import Generator, Mapping
from contextlib import contextmanager
from copy import copy
from typing import TYPE_CHECKING

from pyclient.errors import IllegalStateError, KafkaError, KafkaTimeoutError
from pyclient.producer.record_accumulator import RecordAccumulator
from pyclient.producer.transactions.manager import TransactionManager
from pyclient.producer.transactions.offsets import OffsetsToCommit
from pyclient.producer.transactions.states import (
    ABORT,
    BEGIN,
    COMMIT,
    INIT,
    PREPARE,
    SEND_OFFSETS,
    PendingCall,
    TransactionState,
    TransactionStatus,
)
from pyclient.timers import Deadline
from pyclient.types import (
    ConsumerGroupMetadata,
    OffsetAndMetadata,
    PreparedTransaction,
    TopicPartition,
)

if TYPE_CHECKING:
    from pyclient.net.engine import Engine

log = logging.getLogger(__name__)

_S = TransactionState
_ABORTED_BY_CLOSE = frozenset((_S.IN_TRANSACTION, _S.PREPARING, _S.ABORTABLE_ERROR))
_UNDER_WAY = frozenset((_S.COMMITTING, _S.ABORTING, _S.BUMPING))


class Transactions:
    """What `KafkaProducer`'s transactional methods do."""

    def __init__(
        self,
        status: TransactionStatus,
        manager: TransactionManager,
        accumulator: RecordAccumulator,
        engine: Engine,
        max_block_ms: float,
    ) -> None:
        self._status = status
        self._manager = manager
        self._accumulator = accumulator
        self._engine = engine
        self._max_block_ms = max_block_ms
        accumulator.suspend(_not_begun())

    def init(self) -> None:
        """See `KafkaProducer.init_transactions`."""
        self._check(INIT)
        if self._status.state is _S.READY and self._status.pending is None:
            return  # as in kafka-python: once is enough
        self._run(self._status.start(INIT, frozenset((_S.UNINITIALIZED,)), _S.INITIALIZING))

    def begin(self) -> None:
        """See `KafkaProducer.begin_transaction`."""
        self._engine.check_usable(BEGIN)
        self._status.begin()
        self._accumulator.resume()

    def check_may_send(self) -> None:
        """Raise unless a transaction is open.

        Raises:
            IllegalStateError: it is not; says what to call first.
            KafkaError: it has failed.
        """
        self._status.check_in_transaction("send()")

    def send_offsets(
        self,
        offsets: Mapping[TopicPartition, OffsetAndMetadata],
        group_metadata: ConsumerGroupMetadata | str,
    ) -> None:
        """See `KafkaProducer.send_offsets_to_transaction`."""
        group = _checked_group(group_metadata)
        _check_offsets(offsets)
        self._check(SEND_OFFSETS)
        self._status.check_in_transaction(SEND_OFFSETS)
        if not offsets:
            return
        call = PendingCall(SEND_OFFSETS, self._engine.waiter())
        self._manager.add_offsets(OffsetsToCommit(call, group, offsets))
        self._engine.wake()
        self._wait(call, self._max_block_ms)

    def prepare(self) -> PreparedTransaction:
        """See `KafkaProducer.prepare_transaction`."""
        self._check(PREPARE)
        self._run(self._status.start(PREPARE, frozenset((_S.IN_TRANSACTION,)), _S.PREPARING))
        manager = self._manager
        return PreparedTransaction(
            manager.transactional_id,
            *manager.identity,
            manager.transaction_version,
            is_empty=not manager.is_started,
        )

    def commit(self) -> None:
        """See `KafkaProducer.commit_transaction`."""
        self._check(COMMIT)
        sources = frozenset((_S.IN_TRANSACTION, _S.PREPARED))
        self._run(self._status.start(COMMIT, sources, _S.COMMITTING))

    def abort(self) -> None:
        """See `KafkaProducer.abort_transaction`."""
        self._abort(self._max_block_ms)

    def _abort(self, timeout_ms: float) -> None:
        self._check(ABORT)
        sources = _ABORTED_BY_CLOSE | {_S.PREPARED}
        self._run(self._status.start(ABORT, sources, _S.ABORTING), timeout_ms)

    @contextmanager
    def scope(self) -> Generator[None]:
        """See `KafkaProducer.transaction`."""
        self.begin()
        try:
            yield
            self.commit()
        except KafkaTimeoutError:
            # The commit may go through yet: only to call it again tells. What the block itself
            # has raised leaves the transaction open.
            if self._status.state in (_S.IN_TRANSACTION, _S.ABORTABLE_ERROR):
                self._abort_after_failure()
            raise
        except BaseException:
            self._abort_after_failure()
            raise

    def _abort_after_failure(self) -> None:
        """Abort, unless that is over; the failure that led here is the one to tell."""
        if self._status.state not in _ABORTED_BY_CLOSE | {_S.PREPARED, _S.ABORTING}:
            return
        try:
            self.abort()
        except KafkaError as error:
            log.warning(
                "transactional id %s: the transaction could not be aborted: %s",
                self._manager.transactional_id,
                error,
            )

    def close(self, deadline: Deadline) -> None:
        """Abort an open transaction, unless it is prepared; finish what is under way."""
        state = self._status.state
        try:
            if state in _ABORTED_BY_CLOSE:
                log.info("transactional id %s: aborted by close()", self._manager.transactional_id)
                self._abort(deadline.remaining_ms())
            elif state in _UNDER_WAY and (pending := self._status.pending) is not None:
                pending.waiter.wait(deadline.remaining_ms())
        except KafkaError as error:
            log.warning(
                "transactional id %s: closed with its transaction open; the coordinator aborts it"
                " after transaction.timeout.ms: %s",
                self._manager.transactional_id,
                error,
            )

    def _check(self, call: str) -> None:
        self._engine.check_may_wait(call)
        self._engine.check_usable(call)

    def _run(self, pending: PendingCall, timeout_ms: float | None = None) -> None:
        """Do the caller's part, let the I/O thread do the rest, and wait for it."""
        if not pending.is_armed:
            self._accumulator.suspend(_not_begun())
            pending.is_armed = True
        self._engine.wake()
        self._wait(pending, self._max_block_ms if timeout_ms is None else timeout_ms)

    def _wait(self, call: PendingCall, timeout_ms: float) -> None:
        if not call.waiter.wait(timeout_ms):
            raise KafkaTimeoutError(
                f"{call.name} is not done after {timeout_ms:.0f} ms (max.block.ms); call it again"
                f" to wait for it: {self._manager.trouble}"
            )
        self._status.acknowledge(call)
        if call.error is not None:
            raise _raised(call.error)


def _raised(error: KafkaError) -> KafkaError:
    """A copy, for several callers may raise it, each with its own traceback."""
    own = copy(error)
    own.__cause__ = error.__cause__
    return own


def _not_begun() -> IllegalStateError:
    return IllegalStateError(f"send(): no transaction is open: call {BEGIN} first")


def _checked_group(group_metadata: ConsumerGroupMetadata | str) -> ConsumerGroupMetadata:
    if isinstance(group_metadata, str):
        group_metadata = ConsumerGroupMetadata(group_metadata)
    if not isinstance(group_metadata, ConsumerGroupMetadata):
        raise TypeError(
            f"{SEND_OFFSETS} takes consumer.group_metadata() or a group id, not {group_metadata!r}"
        )
    if not group_metadata.group_id:
        raise ValueError(f"{SEND_OFFSETS}: the consumer has no group_id")
    if group_metadata.generation_id > 0 and not group_metadata.member_id:
        raise ValueError(
            f"{SEND_OFFSETS}: generation {group_metadata.generation_id}, but no member id"
        )
    return group_metadata


def _check_offsets(offsets: Mapping[TopicPartition, OffsetAndMetadata]) -> None:
    for partition, offset in offsets.items():
        if not isinstance(partition, TopicPartition):
            raise TypeError(f"partitions are given as TopicPartition, not {partition!r}")
        if not isinstance(offset, OffsetAndMetadata):
            raise TypeError(f"offsets are given as OffsetAndMetadata, not {offset!r}")
