"""Raw requests of transactional producers, on any broker: a node under test, or one on a port.

A script names its producers itself, and answers are plain values, so that two brokers can be
compared by what they answer. Producer ids differ from broker to broker: they are left out.
"""

import time
from typing import Any, Final, NamedTuple, Protocol

from broker_stub.coordinator.placement import partition_for
from broker_stub.coordinator.transactions.transaction_log import read_transaction
from broker_stub.coordinator.transactions.transaction_state import TransactionImage
from pyclient.protocol.messages.add_offsets_to_txn import AddOffsetsToTxnRequest
from pyclient.protocol.messages.add_partitions_to_txn import (
    AddPartitionsToTxnRequest,
    AddPartitionsToTxnTopic,
    AddPartitionsToTxnTransaction,
)
from pyclient.protocol.messages.describe_producers import DescribeProducersRequest, TopicRequest
from pyclient.protocol.messages.describe_transactions import DescribeTransactionsRequest
from pyclient.protocol.messages.end_txn import EndTxnRequest
from pyclient.protocol.messages.fetch import FetchPartition, FetchRequest, FetchTopic
from pyclient.protocol.messages.find_coordinator import FindCoordinatorRequest
from pyclient.protocol.messages.init_producer_id import InitProducerIdRequest
from pyclient.protocol.messages.list_offsets import (
    ListOffsetsPartition,
    ListOffsetsRequest,
    ListOffsetsTopic,
)
from pyclient.protocol.messages.list_transactions import ListTransactionsRequest
from pyclient.protocol.messages.offset_fetch import (
    OffsetFetchRequest,
    OffsetFetchRequestGroup,
    OffsetFetchRequestTopics,
)
from pyclient.protocol.messages.produce import (
    PartitionProduceData,
    ProduceRequest,
    TopicProduceData,
)
from pyclient.protocol.messages.txn_offset_commit import (
    TxnOffsetCommitRequest,
    TxnOffsetCommitRequestPartition,
    TxnOffsetCommitRequestTopic,
)
from pyclient.protocol.messages.write_txn_markers import (
    WritableTxnMarker,
    WritableTxnMarkerTopic,
    WriteTxnMarkersRequest,
)
from pyclient.protocol.schema import Message
from pyclient.records.batch import RecordBatch, iter_batches
from tests.support.node_harness import batch

_WAIT_SECONDS: Final = 20
TOPIC = "transfers"
GROUP = "tellers"
OLD, NEW = 11, 12
"""Produce: the last version that verifies, and the first that adds its partitions."""


class Producer(NamedTuple):
    """A producer id and its epoch, and the error with which they came."""

    id: int
    epoch: int
    error: int = 0

    def older(self, by: int = 1) -> "Producer":
        """The same producer before its epoch was bumped."""
        return Producer(self.id, self.epoch - by)


class Asks(Protocol):
    """What answers a request."""

    def __call__(self, request: Message, version: int) -> Any: ...


class TransactionScript:
    """The transactions of one transactional id."""

    def __init__(self, ask: Asks, transactional_id: str = "t", topic: str = TOPIC) -> None:
        self.ask = ask
        self.transactional_id = transactional_id
        self.topic = topic

    def find(self, *, key_type: int = 1, key: str | None = None) -> int:
        request = FindCoordinatorRequest(
            coordinator_keys=[key or self.transactional_id], key_type=key_type
        )
        (found,) = self.ask(request, 6).coordinators
        code: int = found.error_code
        return code

    def init(
        self, expected: Producer | None = None, *, timeout_ms: int = 60_000, version: int = 5
    ) -> Producer:
        request = InitProducerIdRequest(
            transactional_id=self.transactional_id, transaction_timeout_ms=timeout_ms
        )
        if expected is not None:
            request.producer_id, request.producer_epoch = expected.id, expected.epoch
        given = self.ask(request, version)
        return Producer(given.producer_id, given.producer_epoch, given.error_code)

    def started(self, **fields: Any) -> Producer:
        """Initialise, and retry while the transaction before is being aborted."""
        deadline = time.monotonic() + _WAIT_SECONDS
        while (producer := self.init(**fields)).error == 51:
            assert time.monotonic() < deadline, "the transaction before never ends"
        assert not producer.error, producer
        return producer

    def add(
        self, producer: Producer, *partitions: int, topic: str | None = None, version: int = 3
    ) -> Any:
        """The error code of each partition."""
        named = AddPartitionsToTxnTopic(name=topic or self.topic, partitions=list(partitions))
        response = self.ask(
            AddPartitionsToTxnRequest(
                v3_and_below_transactional_id=self.transactional_id,
                v3_and_below_producer_id=producer.id,
                v3_and_below_producer_epoch=producer.epoch,
                v3_and_below_topics=[named],
            ),
            version,
        )
        (found,) = response.results_by_topic_v3_and_below
        return _codes(found.results_by_partition, "partition_error_code")

    def verify(self, producer: Producer, *partitions: int, version: int = 5) -> Any:
        """As brokers ask each other."""
        transaction = AddPartitionsToTxnTransaction(
            transactional_id=self.transactional_id,
            producer_id=producer.id,
            producer_epoch=producer.epoch,
            verify_only=True,
            topics=[AddPartitionsToTxnTopic(name=self.topic, partitions=list(partitions))],
        )
        request = AddPartitionsToTxnRequest(transactions=[transaction])
        (result,) = self.ask(request, version).results_by_transaction
        return _codes(result.topic_results[0].results_by_partition, "partition_error_code")

    def add_offsets(self, producer: Producer, group: str = GROUP, version: int = 4) -> int:
        request = AddOffsetsToTxnRequest(
            transactional_id=self.transactional_id,
            producer_id=producer.id,
            producer_epoch=producer.epoch,
            group_id=group,
        )
        code: int = self.ask(request, version).error_code
        return code

    def produce(
        self,
        producer: Producer,
        value: bytes,
        *,
        partition: int = 0,
        sequence: int = 0,
        version: int = NEW,
        transactional: bool = True,
        topic: str | None = None,
        named: bool = True,
    ) -> int:
        """The error code."""
        records = batch(
            value,
            transactional=transactional,
            producer_id=producer.id,
            producer_epoch=producer.epoch,
            base_sequence=sequence,
        )
        request = ProduceRequest(
            transactional_id=self.transactional_id if named else None,
            acks=-1,
            timeout_ms=10_000,
            topic_data=[
                TopicProduceData(
                    name=topic or self.topic,
                    partition_data=[PartitionProduceData(index=partition, records=records)],
                )
            ],
        )
        response = self.ask(request, version)
        code: int = response.responses[0].partition_responses[0].error_code
        return code

    def commit_offsets(
        self,
        producer: Producer,
        offsets: dict[int, int],
        *,
        group: str = GROUP,
        member: str = "",
        generation: int = -1,
        instance: str | None = None,
        metadata: str | None = None,
        topic: str | None = None,
        version: int = 5,
    ) -> Any:
        """The error code of each partition."""
        request = TxnOffsetCommitRequest(
            transactional_id=self.transactional_id,
            group_id=group,
            producer_id=producer.id,
            producer_epoch=producer.epoch,
            topics=[
                TxnOffsetCommitRequestTopic(
                    name=topic or self.topic,
                    partitions=[
                        TxnOffsetCommitRequestPartition(
                            partition_index=index,
                            committed_offset=offset,
                            committed_metadata=metadata,
                        )
                        for index, offset in offsets.items()
                    ],
                )
            ],
        )
        if version >= 3:
            request.member_id, request.generation_id = member, generation
            request.group_instance_id = instance
        (found,) = self.ask(request, version).topics
        return _codes(found.partitions, "error_code")

    def end(self, producer: Producer, *, commit: bool = True, version: int = 5) -> Producer:
        """The next producer id and epoch (of version 5), and the error."""
        request = EndTxnRequest(
            transactional_id=self.transactional_id,
            producer_id=producer.id,
            producer_epoch=producer.epoch,
            committed=commit,
        )
        ended = self.ask(request, version)
        return Producer(ended.producer_id, ended.producer_epoch, ended.error_code)

    def ended(self, producer: Producer, *, commit: bool = True) -> Producer:
        """End with version 5, and wait until the markers are written."""
        after = self.end(producer, commit=commit)
        assert not after.error, after
        self.settle()
        return after

    def settle(self) -> None:
        """Wait until no markers are being written."""
        deadline = time.monotonic() + _WAIT_SECONDS
        while self.describe()["state"].startswith("Prepare"):
            assert time.monotonic() < deadline, "the markers are never written"

    def describe(self) -> dict[str, Any]:
        request = DescribeTransactionsRequest(transactional_ids=[self.transactional_id])
        (found,) = self.ask(request, 0).transaction_states
        return {
            "error": found.error_code,
            "state": found.transaction_state,
            "timeout": found.transaction_timeout_ms,
            "epoch": found.producer_epoch,
            "has started": found.transaction_start_time_ms >= 0,
            "partitions": {(one.topic, index) for one in found.topics for index in one.partitions},
        }

    def list_all(self, **filters: Any) -> list[tuple[str, str]]:
        version = 2 if "transactional_id_pattern" in filters else 1
        found = self.ask(ListTransactionsRequest(**filters), version)
        assert not found.error_code
        return sorted(
            (one.transactional_id, one.transaction_state) for one in found.transaction_states
        )

    def producers(self, partition: int = 0) -> Any:
        """Epoch, last sequence, coordinator epoch and start of the transaction, by producer id."""
        topic = TopicRequest(name=self.topic, partition_indexes=[partition])
        response = self.ask(DescribeProducersRequest(topics=[topic]), 0)
        return {
            one.producer_id: (
                one.producer_epoch,
                one.last_sequence,
                one.coordinator_epoch >= 0,
                one.current_txn_start_offset,
            )
            for one in response.topics[0].partitions[0].active_producers
        }

    def write_marker(
        self,
        producer: Producer,
        *,
        commit: bool = False,
        partition: int = 0,
        coordinator_epoch: int = 0,
        version: int = 2,
        transaction_version: int = 0,
        topic: str | None = None,
    ) -> int:
        marker = WritableTxnMarker(
            producer_id=producer.id,
            producer_epoch=producer.epoch,
            transaction_result=commit,
            topics=[
                WritableTxnMarkerTopic(name=topic or self.topic, partition_indexes=[partition])
            ],
            coordinator_epoch=coordinator_epoch,
        )
        if version >= 2:
            marker.transaction_version = transaction_version
        response = self.ask(WriteTxnMarkersRequest(markers=[marker]), version)
        code: int = response.markers[0].topics[0].partitions[0].error_code
        return code

    def committed(self, *partitions: int, group: str = GROUP, stable: bool = True) -> Any:
        """Committed offset and error code by partition."""
        topic = OffsetFetchRequestTopics(name=self.topic, partition_indexes=list(partitions))
        request = OffsetFetchRequest(
            groups=[OffsetFetchRequestGroup(group_id=group, topics=[topic])], require_stable=stable
        )
        (found,) = self.ask(request, 9).groups
        if found.error_code:
            return found.error_code
        return {
            one.partition_index: (one.committed_offset, one.error_code)
            for one in found.topics[0].partitions
        }

    def end_offset(self, partition: int = 0, *, committed_only: bool = True) -> int:
        place = ListOffsetsPartition(partition_index=partition, timestamp=-1)
        request = ListOffsetsRequest(
            replica_id=-1,
            isolation_level=int(committed_only),
            topics=[ListOffsetsTopic(name=self.topic, partitions=[place])],
        )
        offset: int = self.ask(request, 6).topics[0].partitions[0].offset
        return offset

    def fetch(self, partition: int = 0, *, offset: int = 0, committed_only: bool = True) -> Any:
        """What a reader gets: the partition's answer."""
        place = FetchPartition(
            partition=partition, fetch_offset=offset, partition_max_bytes=1 << 20
        )
        request = FetchRequest(
            max_wait_ms=0,
            min_bytes=0,
            max_bytes=1 << 20,
            isolation_level=int(committed_only),
            topics=[FetchTopic(topic=self.topic, partitions=[place])],
        )
        return self.ask(request, 12).responses[0].partitions[0]

    def logged(self, partitions: int) -> list[dict[str, Any]]:
        """What the log of transactions, which has so many partitions, says about this one."""
        log = TransactionScript(self.ask, self.transactional_id, "__transaction_state")
        index = partition_for(self.transactional_id, partitions)
        found = []
        offset = 0
        while records := log.fetch(index, offset=offset, committed_only=False).records:
            for one in iter_batches(records):
                assert isinstance(one, RecordBatch)
                offset = one.last_offset + 1
                for record in one.decode():
                    transactional_id, image = read_transaction(record.key, record.value)
                    if transactional_id == self.transactional_id:
                        found.append(_facts(image, record.value))
        return found

    def read(self, partition: int = 0, *, committed_only: bool = True) -> list[bytes | None]:
        """The values that a reader sees, without aborted ones."""
        values: list[bytes | None] = []
        offset = 0
        while True:
            found = self.fetch(partition, offset=offset, committed_only=committed_only)
            if not found.records:
                return values
            aborted = sorted(found.aborted_transactions or [], key=lambda one: one.first_offset)
            skipped: set[int] = set()  # producers in an aborted transaction
            for one in iter_batches(found.records):
                assert isinstance(one, RecordBatch)
                offset = one.last_offset + 1
                while aborted and aborted[0].first_offset <= one.base_offset:
                    skipped.add(aborted.pop(0).producer_id)
                if one.is_control:
                    skipped.discard(one.producer_id)
                elif not (one.is_transactional and one.producer_id in skipped):
                    values += [record.value for record in one.decode()]


def _facts(image: TransactionImage | None, value: bytes | None) -> dict[str, Any]:
    if image is None or value is None:
        return {}
    return {
        "version": value[:2].hex(),
        "state": image.state.value,
        "epoch": image.producer_epoch,
        "timeout": image.timeout_ms,
        "partitions": sorted(image.partitions),
        "has started": image.start_ms >= 0,
        "previous id": image.previous_producer_id - image.producer_id,
        "has next id": image.next_producer_id >= 0,
        "client version": image.client_version,
    }


def _codes(partitions: Any, field: str) -> Any:
    codes = {one.partition_index: getattr(one, field) for one in partitions}
    return next(iter(codes.values())) if len(codes) == 1 else codes
