"""The coordinator of every transactional id: on one node, all of them.

Finds the transaction of a request, lets it decide, writes the decision to `__transaction_state`,
and then answers; a decided transaction gets its markers. Transactions that time out are aborted,
unused transactional ids expire. Serving thread only, except `load`, which runs before serving.
"""

from __future__ import annotations

from collections.abc import Callable, Collection, Iterable, Mapping
from functools import partial
from typing import TYPE_CHECKING, TypeAlias

from broker_stub import diagnostics
from broker_stub.coordinator.errors import as_coordinator
from broker_stub.coordinator.placement import partition_for
from broker_stub.coordinator.replay import Replay
from broker_stub.coordinator.transactions.markers import (
    RETRY_BACKOFF_MS,
    Marker,
    write_markers,
)
from broker_stub.coordinator.transactions.transaction import (
    NeedsProducerIdError,
    ProducerIdAndEpoch,
    Transaction,
)
from broker_stub.coordinator.transactions.transaction_log import (
    STATE_TOPIC,
    KeyValue,
    read_transaction,
    transaction_record,
    transaction_tombstone,
)
from broker_stub.coordinator.transactions.transaction_state import (
    EXPIRABLE,
    NO_EPOCH,
    PREPARED,
    TransactionImage,
    TransactionState,
    new_image,
)
from broker_stub.log.internal_batches import build_batch
from broker_stub.metadata.image import TopicImage
from broker_stub.purgatory import Timer
from pyclient.error_codes import (
    BrokerResponseError,
    ConcurrentTransactionsError,
    InvalidPidMappingError,
    InvalidRequestError,
    InvalidTxnTimeoutError,
    KafkaStorageError,
    NotCoordinatorError,
    TransactionalIdNotFoundError,
)
from pyclient.records.record import ConsumerRecord
from pyclient.types import TopicPartition

if TYPE_CHECKING:
    from broker_stub.node import Node
    from broker_stub.replica.partition import Partition

Done: TypeAlias = Callable[[BrokerResponseError | None], None]
Given: TypeAlias = Callable[[ProducerIdAndEpoch | BrokerResponseError], None]
Refused: TypeAlias = Mapping[TopicPartition, BrokerResponseError]


class TransactionCoordinator:
    """Transactions by transactional id.

    Attributes:
        unreadable_records: how many records of `__transaction_state` the last start skipped.
    """

    def __init__(self, node: Node) -> None:
        self._node = node
        self._transactions: dict[str, Transaction] = {}
        self._ongoing: dict[str, Transaction] = {}  # those that can time out
        self._timeouts: Timer | None = None
        self.unreadable_records = 0
        self._schedule_expiry()

    @property
    def transaction_version(self) -> int:
        """The feature level that the cluster is at."""
        level: int = self._node.config["transaction.version"]
        return level

    # --- requests ----------------------------------------------------------------------------

    def init_producer_id(
        self,
        transactional_id: str,
        timeout_ms: int,
        expected: ProducerIdAndEpoch | None,
        given: Given,
        *,
        new_producer_id: int | None = None,
    ) -> None:
        """Give a producer its id and epoch, and fence the producers before it.

        An ongoing transaction is aborted, and the client has to retry. `new_producer_id` is for
        the coordinator itself.
        """
        now_ms = self._node.clock.now_ms()
        try:
            highest = self._node.config["transaction.max.timeout.ms"]
            if not 0 < timeout_ms <= highest:
                raise InvalidTxnTimeoutError(
                    f"transaction timeout {timeout_ms} ms is not within 1 ms and "
                    f"transaction.max.timeout.ms, {highest} ms"
                )
            self.log_topic()
            transaction = self._transactions.get(transactional_id)
            if transaction is None:
                if new_producer_id is None:
                    raise NeedsProducerIdError
                image = new_image(transactional_id, new_producer_id, timeout_ms, now_ms)
                transaction = self._transactions[transactional_id] = Transaction(image)
            decided = transaction.init_producer_id(timeout_ms, expected, new_producer_id, now_ms)
        except NeedsProducerIdError:
            again = partial(self.init_producer_id, transactional_id, timeout_ms, expected, given)
            self._with_new_producer_id(again, given)
        except BrokerResponseError as error:
            given(error)
        else:
            if decided is None:
                self._fence(transaction, partial(_tell_to_retry, given))
            else:
                producer = ProducerIdAndEpoch(decided.producer_id, decided.producer_epoch)
                self._write(transaction, decided, partial(_give, given, producer))

    def add_partitions(
        self,
        transactional_id: str,
        producer: ProducerIdAndEpoch,
        partitions: Collection[TopicPartition],
        done: Done,
        *,
        client_version: int,
    ) -> None:
        """Add partitions to the transaction; the first ones begin it."""
        try:
            transaction = self._find(transactional_id)
            decided = transaction.add_partitions(
                producer, partitions, client_version, self._node.clock.now_ms()
            )
        except BrokerResponseError as error:
            done(error)
            return
        if decided is None:
            done(None)
        else:
            self._write(transaction, decided, done)

    def verify_partitions(
        self,
        transactional_id: str,
        producer: ProducerIdAndEpoch,
        partitions: Collection[TopicPartition],
    ) -> Refused:
        """The partitions that are not in the producer's transaction, and why."""
        try:
            return self._find(transactional_id).verify_partitions(producer, partitions)
        except BrokerResponseError as error:
            return dict.fromkeys(partitions, error)

    def end(
        self,
        transactional_id: str,
        producer: ProducerIdAndEpoch,
        given: Given,
        *,
        commit: bool,
        client_version: int,
        new_producer_id: int | None = None,
    ) -> None:
        """Commit or abort the transaction; gives the id and epoch of the next one.

        The answer comes as soon as the decision is in the log; the markers follow.
        """
        try:
            transaction = self._find(transactional_id)
            decided = transaction.end(
                producer,
                commit=commit,
                client_version=client_version,
                new_producer_id=new_producer_id,
                now_ms=self._node.clock.now_ms(),
            )
        except NeedsProducerIdError:
            again = partial(
                self.end,
                transactional_id,
                producer,
                given,
                commit=commit,
                client_version=client_version,
            )
            self._with_new_producer_id(again, given)
        except BrokerResponseError as error:
            given(error)
        else:
            if decided is None:
                image = transaction.image
                given(ProducerIdAndEpoch(image.producer_id, image.producer_epoch))
            else:
                self._decide(transaction, decided, given)

    def describe(self, transactional_id: str) -> TransactionImage:
        """A transaction.

        Raises:
            InvalidRequestError: the id is empty.
            TransactionalIdNotFoundError: there is none of this id.
            NotCoordinatorError: there are no transactions at all.
        """
        if not transactional_id:
            raise InvalidRequestError("the transactional id is empty")
        self.log_topic()
        transaction = self._transactions.get(transactional_id)
        if transaction is None:
            raise TransactionalIdNotFoundError(f"there is no {transactional_id}")
        return transaction.image

    def transactions(self) -> list[TransactionImage]:
        """All transactional ids."""
        return [one.image for one in self._transactions.values()]

    def _find(self, transactional_id: str) -> Transaction:
        if not transactional_id:
            raise InvalidRequestError("the transactional id is empty")
        self.log_topic()
        transaction = self._transactions.get(transactional_id)
        if transaction is None:
            raise InvalidPidMappingError(f"{transactional_id} has no producer id")
        return transaction

    def _with_new_producer_id(self, again: Callable[..., None], given: Given) -> None:
        def allocated(producer_id: int | BrokerResponseError) -> None:
            if isinstance(producer_id, BrokerResponseError):
                given(producer_id)
            else:
                again(new_producer_id=producer_id)

        self._node.producer_ids.next(allocated)

    # --- ending ------------------------------------------------------------------------------

    def _fence(self, transaction: Transaction, given: Given) -> None:
        fenced = transaction.fence(self.transaction_version, self._node.clock.now_ms())
        self._decide(transaction, fenced, given)

    def _decide(self, transaction: Transaction, decided: TransactionImage, given: Given) -> None:
        def written(error: BrokerResponseError | None) -> None:
            if error is not None:
                given(error)
                return
            now_ms = self._node.clock.now_ms()
            completed = transaction.completed(now_ms)
            given(ProducerIdAndEpoch(completed.producer_id, completed.producer_epoch))
            self._write_markers(transaction)

        self._write(transaction, decided, written)

    def _write_markers(self, transaction: Transaction) -> None:
        image = transaction.image
        topic = self._node.image.topic(STATE_TOPIC)
        if topic is None:
            return  # it was deleted, and the transactions with it
        index = partition_for(image.transactional_id, len(topic.partitions))
        marker = Marker(
            image.producer_id,
            image.producer_epoch,
            image.state is TransactionState.PREPARE_COMMIT,
            topic.partitions[index].leader_epoch,
            image.client_version,
        )
        write_markers(self._node, marker, image.partitions, partial(self._complete, transaction))

    def _complete(self, transaction: Transaction) -> None:
        """All markers are written: the transaction is complete once the log says so."""
        if self._transactions.get(transaction.image.transactional_id) is not transaction:
            return  # the log was deleted meanwhile

        def written(error: BrokerResponseError | None) -> None:
            if error is not None:
                self._node.timers.after(RETRY_BACKOFF_MS, partial(self._complete, transaction))

        self._write(transaction, transaction.completed(self._node.clock.now_ms()), written)

    # --- timeouts and expiry -----------------------------------------------------------------

    def _note(self, transaction: Transaction) -> None:
        """Watch the transaction's timeout while it is ongoing."""
        transactional_id = transaction.image.transactional_id
        if transaction.state is not TransactionState.ONGOING:
            self._ongoing.pop(transactional_id, None)
            return
        self._ongoing[transactional_id] = transaction
        if self._timeouts is None:
            self._schedule_timeouts()

    def _schedule_timeouts(self) -> None:
        interval_ms = self._node.config[
            "transaction.abort.timed.out.transaction.cleanup.interval.ms"
        ]
        self._timeouts = self._node.timers.after(interval_ms, self._abort_timed_out)

    def _abort_timed_out(self) -> None:
        self._timeouts = None
        now_ms = self._node.clock.now_ms()
        for transaction in list(self._ongoing.values()):
            image = transaction.image
            if transaction.pending is None and image.start_ms + image.timeout_ms < now_ms:
                self._fence(transaction, partial(_log_timeout, image))
        if self._ongoing:
            self._schedule_timeouts()

    def _schedule_expiry(self) -> None:
        interval_ms = self._node.config[
            "transaction.remove.expired.transaction.cleanup.interval.ms"
        ]
        self._node.timers.after(interval_ms, self._expire)

    def _expire(self) -> None:
        """Delete transactional ids that nothing was done with for too long."""
        self._schedule_expiry()
        retention_ms = self._node.config["transactional.id.expiration.ms"]
        before_ms = self._node.clock.now_ms() - retention_ms
        for transaction in list(self._transactions.values()):
            image = transaction.image
            if (
                transaction.pending is None
                and image.state in EXPIRABLE
                and image.last_update_ms <= before_ms
            ):
                transaction.begin(transaction.dead())
                record = transaction_tombstone(image.transactional_id)
                self._append(image.transactional_id, record, partial(self._expired, transaction))

    def _expired(self, transaction: Transaction, error: BrokerResponseError | None) -> None:
        if error is not None:
            transaction.fail()
            return
        transaction.complete()
        self._transactions.pop(transaction.image.transactional_id, None)

    # --- the log -----------------------------------------------------------------------------

    def log_topic(self) -> TopicImage:
        """The topic of transactions; it may not have been created yet.

        Raises:
            NotCoordinatorError: it does not exist.
        """
        topic = self._node.image.topic(STATE_TOPIC)
        if topic is None:
            raise NotCoordinatorError(f"{STATE_TOPIC} does not exist: send FindCoordinator first")
        return topic

    def _write(self, transaction: Transaction, image: TransactionImage, done: Done) -> None:
        """Write a decision to the log, then make it current."""
        transaction.begin(image)

        def written(error: BrokerResponseError | None) -> None:
            if error is None:
                transaction.complete()
                self._note(transaction)
            else:
                transaction.fail()
                if transaction.image.producer_epoch == NO_EPOCH:
                    self._transactions.pop(image.transactional_id, None)  # it never was
            done(error)

        record = transaction_record(image, self.transaction_version)
        self._append(image.transactional_id, record, written)

    def _append(self, transactional_id: str, record: KeyValue, done: Done) -> None:
        """Append a record; `done` is called when it is in the log, and synced where asked for."""
        node = self._node
        try:
            index = partition_for(transactional_id, len(self.log_topic().partitions))
            partition = node.replicas.partition(STATE_TOPIC, index)
            info = node.replicas.append(partition, build_batch([record], node.clock.now_ms()))
        except BrokerResponseError as error:
            diagnostics.warn("cannot write %s to %s: %s", transactional_id, STATE_TOPIC, error)
            done(as_coordinator(error))
            return
        if info.flush_due:
            node.background.submit(partition.log.flush, partial(self._flushed, partition, done))
        else:
            done(None)

    def _flushed(self, partition: Partition, done: Done, error: Exception | None) -> None:
        self._node.replicas.wake_fetches([partition])
        if error is not None:
            done(as_coordinator(KafkaStorageError(str(error))))
        elif self._node.image.topic_by_id(partition.topic_id) is None:
            done(NotCoordinatorError(f"{STATE_TOPIC} was deleted"))
        else:
            done(None)

    def load(self) -> None:
        """Read the transactions back from the log, and finish those that are decided."""
        replay = Replay(STATE_TOPIC)
        for index in range(len(self.log_topic().partitions)):
            log = self._node.replicas.partition(STATE_TOPIC, index).log
            for batch in replay.batches(log):
                if not batch.is_control:
                    replay.apply(log, batch, self._replay)
        replay.finish()
        self.unreadable_records = replay.unreadable
        for transaction in list(self._transactions.values()):
            self._note(transaction)
            if transaction.state in PREPARED:
                self._write_markers(transaction)

    def _replay(self, record: ConsumerRecord) -> None:
        transactional_id, image = read_transaction(record.key, record.value)
        if image is None:
            self._transactions.pop(transactional_id, None)
        else:
            self._transactions[transactional_id] = Transaction(image)

    def unload(self) -> None:
        """The log is gone, and with it all transactions."""
        self._transactions.clear()
        self._ongoing.clear()

    def open_partitions(self) -> Iterable[tuple[int, frozenset[TopicPartition]]]:
        """The producer id and the partitions of every transaction that has not ended."""
        for transaction in self._transactions.values():
            image = transaction.image
            if image.state is TransactionState.ONGOING or image.state in PREPARED:
                yield image.producer_id, image.partitions


def _give(given: Given, producer: ProducerIdAndEpoch, error: BrokerResponseError | None) -> None:
    given(producer if error is None else error)


def _tell_to_retry(given: Given, result: ProducerIdAndEpoch | BrokerResponseError) -> None:
    if isinstance(result, BrokerResponseError):
        given(result)
    else:
        given(ConcurrentTransactionsError("the ongoing transaction is being aborted; retry"))


def _log_timeout(image: TransactionImage, result: ProducerIdAndEpoch | BrokerResponseError) -> None:
    if isinstance(result, BrokerResponseError):
        diagnostics.warn("cannot abort the timed-out %s: %s", image.transactional_id, result)
