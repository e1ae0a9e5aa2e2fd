"""Transactions and producers: list, describe, find those that hang, abort."""

from collections.abc import Iterable, Mapping
from typing import Any, Final

from pyclient.admin.sending.calls import AdminCalls
from pyclient.admin.sending.partition_keys import (
    by_topic,
    in_topics,
    partition_name,
    results_by_partition,
)
from pyclient.admin.sending.results import Outcome
from pyclient.admin.sending.routes import CoordinatorRoute, CoordinatorType, LeaderRoute, to_node
from pyclient.admin.sending.topic_metadata import metadata_request
from pyclient.admin.sending.work import Route, Routed, Work, raise_first_error
from pyclient.admin.types.transactions import (
    AbortTransactionSpec,
    HangingTransaction,
    PartitionProducerState,
    ProducerState,
    TransactionDescription,
    TransactionListing,
    TransactionState,
)
from pyclient.errors import KafkaError, TransactionalIdNotFoundError
from pyclient.protocol.messages.describe_producers import DescribeProducersRequest, TopicRequest
from pyclient.protocol.messages.describe_transactions import (
    DescribeTransactionsRequest,
    DescribeTransactionsResponse,
)
from pyclient.protocol.messages.describe_transactions import TransactionState as Described
from pyclient.protocol.messages.end_txn import EndTxnRequest
from pyclient.protocol.messages.list_transactions import (
    ListTransactionsRequest,
    ListTransactionsResponse,
)
from pyclient.protocol.messages.metadata import MetadataResponse
from pyclient.protocol.messages.write_txn_markers import (
    WritableTxnMarker,
    WritableTxnMarkerTopic,
    WriteTxnMarkersRequest,
    WriteTxnMarkersResponse,
)
from pyclient.timers import Deadline
from pyclient.types import PreparedTransaction, TopicPartition

# Coordinators look for expired transactions from time to time only; Java's tool adds as much.
_GRACE_MS: Final = 5 * 60 * 1000
_OVER: Final = frozenset(
    {
        TransactionState.EMPTY,
        TransactionState.COMPLETE_COMMIT,
        TransactionState.COMPLETE_ABORT,
        TransactionState.DEAD,
    }
)


class TransactionCalls(AdminCalls):
    """The calls about transactions and producers."""

    def list_transactions(
        self,
        broker_ids: Iterable[int] | None = None,
        producer_id_filters: Iterable[int] | None = None,
        state_filters: Iterable[TransactionState | str] | None = None,
        duration_filter_ms: int | None = None,
        transactional_id_pattern: str | None = None,
    ) -> dict[int, list[TransactionListing]]:
        """The transactions that each broker coordinates.

        Args:
            broker_ids: the brokers to ask; by default all of them.
            producer_id_filters: only transactions of these producers.
            state_filters: as in `["Ongoing"]`.
            duration_filter_ms: only transactions that are open for longer (Kafka 3.8 and later).
            transactional_id_pattern: a regular expression, in the syntax of RE2 (Kafka 4.1 and
                later).
        """
        request = ListTransactionsRequest(
            state_filters=[str(getattr(one, "value", one)) for one in state_filters or ()],
            producer_id_filters=list(producer_id_filters or ()),
            duration_filter=-1 if duration_filter_ms is None else duration_filter_ms,
            transactional_id_pattern=transactional_id_pattern,
        )
        return self._list(request, broker_ids, self._requests.deadline())

    def _list(
        self,
        request: ListTransactionsRequest,
        broker_ids: Iterable[int] | None,
        deadline: Deadline,
    ) -> dict[int, list[TransactionListing]]:
        found = {}
        for broker in self._requests.brokers() if broker_ids is None else broker_ids:
            response = self._requests.ask(
                request, ListTransactionsResponse, deadline, node=broker, name=f"broker {broker}"
            )
            if response.unknown_state_filters:
                raise ValueError(
                    f"broker {broker} knows no such transaction states:"
                    f" {', '.join(response.unknown_state_filters)}"
                )
            found[broker] = [
                TransactionListing(
                    one.transactional_id,
                    one.producer_id,
                    TransactionState.of(one.transaction_state),
                )
                for one in response.transaction_states
            ]
        return found

    def describe_transactions(
        self, transactional_ids: Iterable[str]
    ) -> dict[str, TransactionDescription]:
        """The transactions of transactional ids, as their coordinators know them.

        Raises:
            TransactionalIdNotFoundError: a coordinator does not know one.
        """
        outcomes = self._describe_transactions(transactional_ids, self._requests.deadline())
        raise_first_error({key: outcome for key, (outcome, _) in outcomes.items()})
        return {key: _description(one.result, node) for key, (one, node) in outcomes.items()}

    def _describe_transactions(
        self, transactional_ids: Iterable[str], deadline: Deadline
    ) -> dict[str, tuple[Outcome[Described], int]]:
        """The outcome for each id, and its coordinator."""
        route = CoordinatorRoute(self._requests, CoordinatorType.TRANSACTION)
        coordinators: dict[str, int] = {}

        def remembered(keys: list[str], deadline: Deadline) -> Routed[str]:
            routed = route(keys, deadline)
            coordinators.update(
                (key, node) for node, of in routed.nodes.items() if node is not None for key in of
            )
            return routed

        def results_of(response: DescribeTransactionsResponse) -> Iterable[tuple[str, Described]]:
            return ((one.transactional_id, one) for one in response.transaction_states)

        outcomes = self._requests.settle(
            Work(
                {key: key for key in transactional_ids},
                lambda pending: DescribeTransactionsRequest(transactional_ids=pending),
                results_of,
                lambda key: f"transactional id {key!r}",
                lambda keys, deadline: remembered(list(keys), deadline),
                deadline,
                repeatable=True,
            )
        )
        return {key: (one, coordinators[key]) for key, one in outcomes.items()}

    def describe_producers(
        self, partitions: Iterable[TopicPartition], broker_id: int | None = None
    ) -> dict[TopicPartition, PartitionProducerState]:
        """The idempotent and transactional producers that partitions remember.

        Args:
            partitions: which partitions.
            broker_id: the replica to ask; by default each partition's leader.

        Raises:
            KafkaError: a partition could not be described.
        """
        route: Route[TopicPartition] = LeaderRoute(self._requests)
        if broker_id is not None:
            route = to_node(broker_id)
        return self._producers(partitions, route, self._requests.deadline())

    def _producers(
        self,
        partitions: Iterable[TopicPartition],
        route: Route[TopicPartition],
        deadline: Deadline,
    ) -> dict[TopicPartition, PartitionProducerState]:
        outcomes = self._requests.settle(
            Work(
                {key: (key, key.partition) for key in partitions},
                lambda pending: DescribeProducersRequest(
                    topics=[
                        TopicRequest(name=name, partition_indexes=of)
                        for name, of in by_topic(pending).items()
                    ]
                ),
                results_by_partition,
                partition_name,
                route,
                deadline,
                repeatable=True,
            )
        )
        raise_first_error(outcomes)
        return {
            key: PartitionProducerState(
                [
                    ProducerState(
                        one.producer_id,
                        one.producer_epoch,
                        one.last_sequence,
                        one.last_timestamp,
                        one.coordinator_epoch,
                        one.current_txn_start_offset,
                    )
                    for one in outcome.result.active_producers
                ]
            )
            for key, outcome in outcomes.items()
        }

    def abort_transaction(self, spec: AbortTransactionSpec) -> None:
        """Abort an open transaction in one partition, at its leader.

        For transactions that hang: their coordinator does not know them any more. `spec` comes
        from `describe_producers` or `find_hanging_transactions`.

        Raises:
            InvalidProducerEpochError: the producer has gone on since.
        """
        key = spec.topic_partition
        marker = WritableTxnMarker(
            producer_id=spec.producer_id,
            producer_epoch=spec.producer_epoch,
            transaction_result=False,
            topics=[WritableTxnMarkerTopic(name=key.topic, partition_indexes=[key.partition])],
            coordinator_epoch=spec.coordinator_epoch,
        )

        def results_of(response: WriteTxnMarkersResponse) -> Iterable[tuple[TopicPartition, Any]]:
            return (result for one in response.markers for result in in_topics(one.topics))

        outcomes = self._requests.settle(
            Work(
                {key: marker},
                lambda pending: WriteTxnMarkersRequest(markers=pending),
                results_of,
                partition_name,
                LeaderRoute(self._requests),
                self._requests.deadline(),
                repeatable=True,
            )
        )
        raise_first_error(outcomes)

    def end_transaction(self, prepared: PreparedTransaction, *, commit: bool) -> None:
        """Commit or abort a transaction that `KafkaProducer.prepare_transaction` has left open.

        In the protocol version that the transaction was begun in. Repeating it does no harm while
        no other producer has used the transactional id. The coordinator's answers:

        - success: it is ended as asked, now or by an earlier call.
        - InvalidTxnStateError: it was ended the other way before, or it timed out, which is an
          abort.
        - ProducerFencedError, InvalidPidMappingError: it timed out, or another producer has used
          the id since: this call cannot tell how the transaction ended.

        Raises:
            KafkaTimeoutError: there was no decisive answer in time; call it again.
            KafkaError: as above.
        """
        if prepared.is_empty:
            return
        request = EndTxnRequest(
            transactional_id=prepared.transactional_id,
            producer_id=prepared.producer_id,
            producer_epoch=prepared.producer_epoch,
            committed=commit,
        )
        request.use_transaction_version(prepared.transaction_version)
        key = prepared.transactional_id
        outcomes = self._requests.settle(
            Work(
                {key: key},
                lambda _pending: request,
                lambda response: ((key, response),),
                lambda key: f"transactional id {key!r}",
                CoordinatorRoute(self._requests, CoordinatorType.TRANSACTION),
                self._requests.deadline(),
                repeatable=True,
            )
        )
        raise_first_error(outcomes)

    def find_hanging_transactions(
        self,
        broker_ids: Iterable[int] | None = None,
        max_transaction_timeout_ms: int = 900_000,
    ) -> list[HangingTransaction]:
        """Transactions that are open for longer than any may be.

        There are two kinds. Coordinators know some of them. Others are open in a partition, but
        no coordinator knows them, so that they never end: consumers with `read_committed` stop
        there. Kafka's tool finds these, kafka-python does not.

        Args:
            broker_ids: only transactions that these brokers coordinate, and partitions that they
                lead; by default all.
            max_transaction_timeout_ms: the brokers' `transaction.max.timeout.ms`; five minutes
                are added to it.

        Raises:
            KafkaError: something could not be read.
        """
        deadline = self._requests.deadline()
        brokers = None if broker_ids is None else set(broker_ids)
        oldest_ms = max_transaction_timeout_ms + _GRACE_MS
        # The partitions first: a transaction that ends in between is not found to be unknown.
        open_in = self._open_for(oldest_ms, brokers, deadline)
        # All coordinators: a partition's transaction may have any.
        listed = self._list(ListTransactionsRequest(), None, deadline)
        known = self._known([one for of in listed.values() for one in of], deadline)
        now_ms = self._requests.now_ms()
        hanging = [
            HangingTransaction(
                transactional_id=transactional_id,
                producer_id=one.producer_id,
                producer_epoch=one.producer_epoch,
                state=one.state.value,
                age_ms=now_ms - one.transaction_start_time_ms,
                coordinator_id=one.coordinator_id,
                topic_partitions=sorted(one.topic_partitions),
            )
            for transactional_id, one in known.items()
            if (brokers is None or one.coordinator_id in brokers)
            and one.state not in _OVER
            and 0 <= one.transaction_start_time_ms <= now_ms - oldest_ms
        ]
        taking_part = {
            (one.producer_id, key) for one in known.values() for key in one.topic_partitions
        }
        for key, producer in open_in:
            if (producer.producer_id, key) not in taking_part:
                hanging.append(
                    HangingTransaction(
                        transactional_id=None,
                        producer_id=producer.producer_id,
                        producer_epoch=producer.producer_epoch,
                        state=TransactionState.UNKNOWN.value,
                        age_ms=now_ms - producer.last_timestamp,
                        coordinator_id=None,
                        topic_partitions=[key],
                    )
                )
        return hanging

    def _open_for(
        self, oldest_ms: int, brokers: set[int] | None, deadline: Deadline
    ) -> list[tuple[TopicPartition, ProducerState]]:
        """The transactions that partitions have been having open for this long."""
        response = self._requests.ask(metadata_request(None), MetadataResponse, deadline)
        partitions = [
            key
            for key, one in in_topics(response.topics)
            if one.leader_id >= 0 and (brokers is None or one.leader_id in brokers)
        ]
        found = self._producers(partitions, LeaderRoute(self._requests), deadline)
        now_ms = self._requests.now_ms()
        return [
            (key, producer)
            for key, of in found.items()
            for producer in of.active_producers
            if producer.current_transaction_start_offset >= 0
            and producer.last_timestamp <= now_ms - oldest_ms
        ]

    def _known(
        self, listed: list[TransactionListing], deadline: Deadline
    ) -> Mapping[str, TransactionDescription]:
        """The transactions that coordinators know; one that is forgotten meanwhile is left out."""
        outcomes = self._describe_transactions([one.transactional_id for one in listed], deadline)
        known = {}
        for key, (outcome, node) in outcomes.items():
            error: KafkaError | None = outcome.error
            if error is None:
                known[key] = _description(outcome.result, node)
            elif not isinstance(error, TransactionalIdNotFoundError):
                raise error
        return known


def _description(described: Described, coordinator: int) -> TransactionDescription:
    return TransactionDescription(
        coordinator_id=coordinator,
        state=TransactionState.of(described.transaction_state),
        producer_id=described.producer_id,
        producer_epoch=described.producer_epoch,
        transaction_timeout_ms=described.transaction_timeout_ms,
        transaction_start_time_ms=described.transaction_start_time_ms,
        topic_partitions={
            TopicPartition(topic.topic, one)
            for topic in described.topics
            for one in topic.partitions
        },
    )
