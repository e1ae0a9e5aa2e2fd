"""What the brokers' errors do to a transaction and its producer, request by request.

The cases are those of Java's TransactionManagerTest.
"""

import pytest

from pyclient import OffsetAndMetadata, TopicPartition, errors
from pyclient.errors import (
    CommitFailedError,
    IllegalStateError,
    KafkaTimeoutError,
    ProducerFencedError,
    TransactionAbortableError,
    TransactionAbortedError,
    UnsupportedVersionError,
)
from pyclient.net.scripted import DISCONNECT
from pyclient.protocol.messages.add_offsets_to_txn import AddOffsetsToTxnRequest
from pyclient.protocol.messages.add_partitions_to_txn import AddPartitionsToTxnRequest
from pyclient.protocol.messages.end_txn import EndTxnRequest
from pyclient.protocol.messages.find_coordinator import FindCoordinatorRequest
from pyclient.protocol.messages.init_producer_id import InitProducerIdRequest
from pyclient.protocol.messages.produce import ProduceRequest
from pyclient.protocol.messages.txn_offset_commit import TxnOffsetCommitRequest
from tests.support.scripted_transactions import ScriptedTransactions

OFFSETS = {TopicPartition("in", 0): OffsetAndMetadata(5, "", -1)}
PASSING = ("CoordinatorLoadInProgress", "NotCoordinator", "CoordinatorNotAvailable")
FATAL = ("TransactionalIdAuthorization", "InvalidTxnState", "InvalidPidMapping", "UnknownServer")


def code(name):
    return getattr(errors, f"{name}Error").code


def run(producer):
    """One transaction with a record and an offset."""
    producer.begin_transaction()
    future = producer.send("orders", b"v", partition=0)
    producer.send_offsets_to_transaction(OFFSETS, "readers")
    producer.commit_transaction()
    return future


def check_goes_on(coordinator, producer):
    """The next transaction is as if nothing had happened."""
    before = len(coordinator.ended)
    run(producer)
    assert coordinator.ended[before:] == [("commit", [b"v"], {("in", 0): 5})]


def check_failed_for_good(producer, error_class):
    for call in (
        producer.begin_transaction,
        producer.commit_transaction,
        producer.abort_transaction,
        lambda: producer.send("orders", b"v"),
        lambda: producer.send_offsets_to_transaction(OFFSETS, "readers"),
    ):
        with pytest.raises(error_class):
            call()
    producer.close()


REQUESTS = [
    FindCoordinatorRequest,
    InitProducerIdRequest,
    AddPartitionsToTxnRequest,
    AddOffsetsToTxnRequest,
    TxnOffsetCommitRequest,
    EndTxnRequest,
]


@pytest.mark.parametrize("request_class", REQUESTS)
@pytest.mark.parametrize("name", PASSING)
def test_an_error_that_passes_is_retried(coordinator, idle, request_class, name):
    coordinator.script[request_class] += [code(name)] * 2
    idle.init_transactions()
    check_goes_on(coordinator, idle)
    if request_class in coordinator.script and not coordinator.script[request_class]:
        served = [one for one, _ in coordinator.served if isinstance(one, request_class)]
        assert len(served) >= 3
        finds = len(
            [one for one, _ in coordinator.served if isinstance(one, FindCoordinatorRequest)]
        )
        moved = name != "CoordinatorLoadInProgress"
        assert finds >= (4 if moved or request_class is FindCoordinatorRequest else 2)


def test_concurrent_transactions_are_waited_for_briefly(network, coordinator, producer):
    first = AddPartitionsToTxnRequest if coordinator.version == 1 else ProduceRequest
    coordinator.script[first] += [code("ConcurrentTransactions")]
    before_ms = network.clock.monotonic_ms()
    check_goes_on(coordinator, producer)
    assert network.clock.monotonic_ms() - before_ms < 60  # not retry.backoff.ms, which is 100


class TestFencing:
    @pytest.mark.parametrize("request_class", REQUESTS[2:])
    @pytest.mark.parametrize("name", ["ProducerFenced", "InvalidProducerEpoch"])
    def test_a_coordinator_that_fences_ends_the_producer(
        self, coordinator, producer, request_class, name
    ):
        coordinator.script[request_class].append(code(name))
        if coordinator.version == 2 and request_class in REQUESTS[2:4]:
            check_goes_on(coordinator, producer)  # it does not send these
            return
        with pytest.raises(ProducerFencedError, match=r"another producer with transactional\.id"):
            run(producer)
        check_failed_for_good(producer, ProducerFencedError)
        assert producer._core.pool.available == producer._core.pool.total

    def test_of_two_producers_the_second_one_wins(self, coordinator, producer, new_producer):
        producer.begin_transaction()
        producer.send("orders", b"zombie")
        producer.flush()
        second = new_producer(transactional_id="copier")
        second.init_transactions()
        assert coordinator.ended == [("abort", [b"zombie"], {})]
        with pytest.raises(ProducerFencedError, match="close this producer"):
            producer.commit_transaction()
        check_goes_on(coordinator, second)
        check_failed_for_good(producer, ProducerFencedError)

    def test_a_leader_that_fences_leaves_it_to_the_coordinator(self, coordinator, producer):
        # The leader may be ahead: the abort finds out what has happened.
        coordinator.script[ProduceRequest].append(code("InvalidProducerEpoch"))
        producer.begin_transaction()
        producer.send("orders", b"v", partition=0)
        with pytest.raises(TransactionAbortableError, match="INVALID_PRODUCER_EPOCH"):
            producer.commit_transaction()
        producer.abort_transaction()
        check_goes_on(coordinator, producer)


class TestFatalErrors:
    @pytest.mark.parametrize("request_class", REQUESTS[2:])
    @pytest.mark.parametrize("name", FATAL)
    def test_a_coordinators_unexpected_error_ends_the_producer(
        self, coordinator, producer, request_class, name
    ):
        adds = request_class in REQUESTS[2:4]
        coordinator.script[request_class].append(code(name))
        if coordinator.version == 2 and adds:
            return  # it does not send these
        if request_class is AddPartitionsToTxnRequest and name == "UnknownServer":
            return  # concerns the partition: see below
        error_class = getattr(errors, f"{name}Error")
        with pytest.raises(error_class):
            run(producer)
        check_failed_for_good(producer, error_class)

    def test_a_timeout_that_the_broker_refuses_is_told(self, coordinator, idle):
        coordinator.script[InitProducerIdRequest].append(code("InvalidTxnTimeout"))
        with pytest.raises(errors.InvalidTxnTimeoutError, match="larger than the broker allows"):
            idle.init_transactions()

    def test_an_id_that_is_not_allowed_may_be_allowed_later(self, coordinator, idle):
        coordinator.script[InitProducerIdRequest].append(code("TransactionalIdAuthorization"))
        with pytest.raises(errors.TransactionalIdAuthorizationError):
            idle.init_transactions()
        idle.init_transactions()
        check_goes_on(coordinator, idle)

    def test_brokers_without_transactions_are_named(self, network, coordinator, idle):
        network.brokers[1].versions[10] = (0, 0)
        network.brokers[1].cut()
        with pytest.raises(UnsupportedVersionError, match="too old for transactions"):
            idle.init_transactions()


class TestFailedRecords:
    @pytest.mark.parametrize(
        "name", ["TopicAuthorization", "InvalidRecord", "OutOfOrderSequence", "UnknownProducerId"]
    )
    def test_a_record_that_is_not_written_has_to_be_aborted(self, coordinator, producer, name):
        coordinator.script[ProduceRequest].append(code(name))
        producer.begin_transaction()
        future = producer.send("orders", b"v", partition=0)
        with pytest.raises(
            TransactionAbortableError, match=r"call abort_transaction\(\)"
        ) as caught:
            producer.commit_transaction()
        assert isinstance(caught.value.__cause__, getattr(errors, f"{name}Error"))
        assert type(future.exception).__name__ == f"{name}Error"
        for call in (
            producer.begin_transaction,
            producer.commit_transaction,
            lambda: producer.send("orders", b"w"),
            lambda: producer.send_many("orders", [b"w"]),
            lambda: producer.send_offsets_to_transaction(OFFSETS, "readers"),
        ):
            with pytest.raises(TransactionAbortableError, match=r"call abort_transaction\(\)"):
                call()
        producer.abort_transaction()
        check_goes_on(coordinator, producer)
        assert coordinator.epoch == (2 if coordinator.version == 2 else 1)  # and never a hole

    def test_what_waits_behind_it_fails_with_the_reason(self, network, coordinator, producer):
        handler = network.brokers[1]._handlers[ProduceRequest]
        network.brokers[1].on(ProduceRequest, None)
        producer.begin_transaction()
        producer.send("orders", b"v", partition=0)
        network.run_until(lambda: bool(network.brokers[1].received(ProduceRequest)), 1_000)
        behind = producer.send("orders", b"w", partition=0)
        coordinator.script[ProduceRequest] += [code("InvalidRecord")]
        network.brokers[1].on(ProduceRequest, handler)
        network.brokers[1].cut()
        with pytest.raises(TransactionAbortableError):
            producer.commit_transaction()
        producer.abort_transaction()
        assert isinstance(behind.exception, TransactionAbortedError)
        assert "because the transaction has failed: orders-0" in str(behind.exception)
        check_goes_on(coordinator, producer)

    def test_a_record_that_expires_is_aborted_with_a_new_epoch(
        self, network, coordinator, new_producer
    ):
        producer = new_producer(
            transactional_id="copier", request_timeout_ms=1_000, delivery_timeout_ms=3_000
        )
        producer.init_transactions()
        handler = network.brokers[1]._handlers[ProduceRequest]
        run(producer)
        network.brokers[1].on(ProduceRequest, None)
        producer.begin_transaction()
        future = producer.send("orders", b"lost", partition=0)
        with pytest.raises(TransactionAbortableError, match="records for orders-0"):
            producer.commit_transaction()
        assert isinstance(future.exception, KafkaTimeoutError)
        network.brokers[1].on(ProduceRequest, handler)
        producer.abort_transaction()
        before = coordinator.epoch
        check_goes_on(coordinator, producer)
        assert before == (2 if coordinator.version == 2 else 1)

    def test_an_abort_waits_for_records_on_the_wire(self, network, coordinator, producer):
        run(producer)
        handler = network.brokers[1]._handlers[ProduceRequest]
        network.brokers[1].on(ProduceRequest, None)
        producer.begin_transaction()
        producer.send("orders", b"slow", partition=0)
        network.run_until(lambda: len(network.brokers[1].received(ProduceRequest)) == 2, 1_000)
        ends = coordinator.names().count("EndTxn")
        with pytest.raises(KafkaTimeoutError):
            producer.abort_transaction()
        assert coordinator.names().count("EndTxn") == ends
        network.brokers[1].on(ProduceRequest, handler)
        network.brokers[1].cut()
        producer.abort_transaction()
        assert coordinator.ended[-1][:2] == ("abort", [b"slow"])

    def test_old_brokers_cannot_go_on_after_a_hole(self, network, coordinator, new_producer):
        if coordinator.version == 2:
            return  # such brokers are not old
        network.brokers[1].versions[InitProducerIdRequest.api_key] = (0, 1)
        producer = new_producer(transactional_id="copier")
        producer.init_transactions()
        coordinator.script[ProduceRequest].append(code("InvalidRecord"))
        producer.begin_transaction()
        producer.send("orders", b"v", partition=0)
        with pytest.raises(TransactionAbortableError):
            producer.commit_transaction()
        with pytest.raises(UnsupportedVersionError, match=r"before Kafka 2\.5"):
            producer.abort_transaction()


class TestPartitionsThatCannotBeAdded:
    @pytest.mark.parametrize(
        "name", ["TopicAuthorization", "UnknownServer", "TransactionAbortable"]
    )
    def test_the_transaction_has_to_be_aborted(self, network, new_producer, name):
        coordinator = ScriptedTransactions(network, network.add_broker(1), version=1)
        network.add_topic("orders", partitions=2)
        producer = new_producer(transactional_id="copier")
        producer.init_transactions()
        coordinator.script[AddPartitionsToTxnRequest].append(code(name))
        producer.begin_transaction()
        future = producer.send("orders", b"v", partition=0)
        with pytest.raises(errors.KafkaError, match=getattr(errors, f"{name}Error").name):
            producer.commit_transaction()
        producer.abort_transaction()
        assert isinstance(future.exception, TransactionAbortedError)
        assert coordinator.ended == []  # the coordinator knew nothing of it
        check_goes_on(coordinator, producer)

    @pytest.mark.parametrize("request_class", [AddPartitionsToTxnRequest, AddOffsetsToTxnRequest])
    def test_a_start_that_is_uncertain_is_made_certain_and_ended(
        self, network, new_producer, request_class
    ):
        coordinator = ScriptedTransactions(network, network.add_broker(1), version=1)
        network.add_topic("orders", partitions=2)
        producer = new_producer(transactional_id="copier", max_block_ms=1_000)
        producer.init_transactions()
        coordinator.script[request_class].append(coordinator.lost)
        producer.begin_transaction()
        if request_class is AddPartitionsToTxnRequest:
            producer.send("orders", b"v", partition=0)
            network.run_until(lambda: coordinator.is_open, 1_000)
        else:
            coordinator.script[request_class] += [DISCONNECT] * 50
            with pytest.raises(KafkaTimeoutError):
                producer.send_offsets_to_transaction(OFFSETS, "readers")
            coordinator.script[request_class].clear()
        producer.abort_transaction()
        assert [how for how, *_ in coordinator.ended] == ["abort"]
        assert not coordinator.is_open


class TestOffsets:
    @pytest.mark.parametrize("name", ["UnknownMemberId", "IllegalGeneration", "StaleMemberEpoch"])
    def test_a_member_that_lost_its_partitions_aborts(self, coordinator, producer, name):
        coordinator.script[TxnOffsetCommitRequest].append(code(name))
        producer.begin_transaction()
        producer.send("orders", b"v")
        with pytest.raises(CommitFailedError, match=r"no longer the member.*abort_transaction\(\)"):
            producer.send_offsets_to_transaction(OFFSETS, "readers")
        with pytest.raises(TransactionAbortableError):
            producer.commit_transaction()
        producer.abort_transaction()
        check_goes_on(coordinator, producer)

    @pytest.mark.parametrize(
        "name", ["FencedInstanceId", "GroupAuthorization", "TransactionAbortable"]
    )
    def test_other_errors_of_the_group_abort_too(self, coordinator, producer, name):
        coordinator.script[TxnOffsetCommitRequest].append(code(name))
        producer.begin_transaction()
        with pytest.raises(getattr(errors, f"{name}Error")):
            producer.send_offsets_to_transaction(OFFSETS, "readers")
        producer.abort_transaction()
        check_goes_on(coordinator, producer)

    def test_an_abort_from_another_thread_ends_the_wait(self, network, coordinator, producer):
        network.brokers[1].on(TxnOffsetCommitRequest, None)
        producer.begin_transaction()
        with pytest.raises(KafkaTimeoutError):
            producer.send_offsets_to_transaction(OFFSETS, "readers")
        network.brokers[1].cut()
        producer.abort_transaction()
        network.brokers[1].on(TxnOffsetCommitRequest, coordinator._commit_offsets)
        check_goes_on(coordinator, producer)


class TestEnding:
    def test_an_abort_that_the_coordinator_refuses_ends_the_producer(self, coordinator, producer):
        coordinator.script[EndTxnRequest].append(code("TransactionAbortable"))
        producer.begin_transaction()
        producer.send("orders", b"v")
        producer.flush()
        with pytest.raises(TransactionAbortableError):
            producer.abort_transaction()
        check_failed_for_good(producer, TransactionAbortableError)

    @pytest.mark.parametrize("name", ["TransactionAbortable", "UnknownProducerId"])
    def test_a_commit_that_the_coordinator_refuses_is_aborted(self, coordinator, producer, name):
        coordinator.script[EndTxnRequest].append(code(name))
        with pytest.raises(TransactionAbortableError):
            run(producer)
        producer.abort_transaction()
        check_goes_on(coordinator, producer)

    def test_a_commit_is_repeated_over_lost_connections(self, coordinator, producer):
        coordinator.script[EndTxnRequest] += [coordinator.lost, DISCONNECT, coordinator.lost]
        run(producer)
        assert [how for how, *_ in coordinator.ended] == ["commit"]
        check_goes_on(coordinator, producer)

    def test_no_call_may_follow_a_commit_of_unknown_outcome_but_itself(
        self, network, coordinator, producer
    ):
        network.brokers[1].on(EndTxnRequest, None)
        producer.begin_transaction()
        producer.send("orders", b"v")
        with pytest.raises(KafkaTimeoutError):
            producer.commit_transaction()
        for call in (producer.abort_transaction, producer.begin_transaction):
            with pytest.raises(
                IllegalStateError, match=r"commit_transaction\(\) was called before"
            ):
                call()


class TestAnUpgradeOfTheCluster:
    def test_the_first_transaction_of_the_new_protocol_has_a_new_epoch(self, network, new_producer):
        coordinator = ScriptedTransactions(network, network.add_broker(1), version=1)
        network.add_topic("orders", partitions=2)
        producer = new_producer(transactional_id="copier")
        producer.init_transactions()
        run(producer)
        coordinator.set_version(2)
        producer.begin_transaction()
        producer.send("orders", b"v", partition=0)
        producer.flush()
        network.brokers[1].cut()  # the next connection reports the new version
        producer.commit_transaction()
        ends = [version for one, version in coordinator.served if isinstance(one, EndTxnRequest)]
        assert ends == [4, 4]  # it ends as it was begun
        assert coordinator.epoch == 1
        check_goes_on(coordinator, producer)
        ends = [version for one, version in coordinator.served if isinstance(one, EndTxnRequest)]
        assert ends == [4, 4, 5]
        assert coordinator.epoch == 2
