"""Transactions as a program uses them: what is visible, in which requests, and calls in order."""

import pytest

from pyclient import ConsumerGroupMetadata, OffsetAndMetadata, TopicPartition
from pyclient.errors import (
    IllegalStateError,
    KafkaTimeoutError,
    RecordTooLargeError,
    TransactionAbortedError,
)
from pyclient.net.scripted import DISCONNECT
from pyclient.producer.transactions.states import TRANSITIONS, TransactionState
from pyclient.protocol.messages.add_offsets_to_txn import AddOffsetsToTxnRequest
from pyclient.protocol.messages.add_partitions_to_txn import AddPartitionsToTxnRequest
from pyclient.protocol.messages.end_txn import EndTxnRequest
from pyclient.protocol.messages.init_producer_id import InitProducerIdRequest
from pyclient.protocol.messages.produce import ProduceRequest
from pyclient.protocol.messages.txn_offset_commit import TxnOffsetCommitRequest

OFFSETS = {TopicPartition("in", 0): OffsetAndMetadata(5, "note", 2)}


def test_every_state_is_in_the_table_and_can_be_reached():
    assert TRANSITIONS.keys() == set(TransactionState)
    reached, ahead = set(), [TransactionState.UNINITIALIZED]
    while ahead:
        state = ahead.pop()
        if state not in reached:
            reached.add(state)
            ahead += TRANSITIONS[state]
    assert reached == set(TransactionState)


class TestARoundTrip:
    def test_a_commit_flushes_and_makes_all_of_it_visible(self, coordinator, producer):
        producer.begin_transaction()
        futures = [
            producer.send("orders", b"%d" % number, partition=number % 2) for number in (0, 1)
        ]
        producer.send_offsets_to_transaction(OFFSETS, "readers")
        producer.commit_transaction()
        assert all(future.succeeded() for future in futures)
        ((how, values, offsets),) = coordinator.ended
        assert how == "commit"
        assert sorted(values) == [b"0", b"1"]
        assert offsets == {("in", 0): 5}

    def test_it_uses_the_requests_of_the_brokers_version(self, coordinator, producer):
        for _ in range(2):
            producer.begin_transaction()
            producer.send("orders", b"v", partition=0)
            producer.send_offsets_to_transaction(OFFSETS, "readers")
            producer.commit_transaction()
        versions = {type(request): version for request, version in coordinator.served}
        if coordinator.version == 2:
            assert versions[ProduceRequest] >= 12
            assert versions[TxnOffsetCommitRequest] == versions[EndTxnRequest] == 5
            assert AddPartitionsToTxnRequest not in versions
            assert AddOffsetsToTxnRequest not in versions
            assert coordinator.epoch == 2  # one for each end
        else:
            assert versions[ProduceRequest] == 11
            assert versions[TxnOffsetCommitRequest] == versions[EndTxnRequest] == 4
            assert versions[AddPartitionsToTxnRequest] == 3
            assert AddOffsetsToTxnRequest in versions
            assert coordinator.epoch == 0
        assert coordinator.names().count("InitProducerId") == 1

    def test_sequences_go_on_or_start_over_as_the_epoch_does(self, coordinator, producer):
        for value in (b"a", b"b"):
            with producer.transaction():
                producer.send("orders", value, partition=0)
        batches = coordinator.log.partitions["orders", 0].batches
        found = [(one.producer_epoch, one.base_sequence) for one in batches]
        assert found == ([(0, 0), (1, 0)] if coordinator.version == 2 else [(0, 0), (0, 1)])

    def test_an_empty_transaction_asks_nothing(self, coordinator, producer):
        before = len(coordinator.served)
        for end in (producer.commit_transaction, producer.abort_transaction):
            producer.begin_transaction()
            end()
        producer.begin_transaction()
        producer.send_offsets_to_transaction({}, "readers")
        producer.commit_transaction()
        assert len(coordinator.served) == before

    def test_an_abort_drops_what_waits_and_ends_what_was_sent(self, coordinator, new_producer):
        producer = new_producer(transactional_id="copier", linger_ms=60_000)
        producer.init_transactions()
        producer.begin_transaction()
        sent = producer.send("orders", b"sent", partition=0)
        producer.flush()
        waits = producer.send("orders", b"waits", partition=1)
        producer.abort_transaction()
        assert sent.succeeded()
        assert isinstance(waits.exception, TransactionAbortedError)
        assert "abort_transaction() was called" in str(waits.exception)
        assert coordinator.ended == [("abort", [b"sent"], {})]
        assert producer._core.pool.available == producer._core.pool.total
        with producer.transaction():
            producer.send("orders", b"next")
        assert coordinator.ended[1][:2] == ("commit", [b"next"])

    def test_group_metadata_goes_to_the_groups_coordinator(self, coordinator, producer):
        member = ConsumerGroupMetadata("readers", 3, "member-1", "instance-1")
        producer.begin_transaction()
        producer.send_offsets_to_transaction(OFFSETS, member)
        producer.commit_transaction()
        (request,) = [
            one for one, _ in coordinator.served if isinstance(one, TxnOffsetCommitRequest)
        ]
        assert (request.generation_id, request.member_id) == (3, "member-1")
        assert request.group_instance_id == "instance-1"
        (partition,) = request.topics[0].partitions
        assert (partition.committed_leader_epoch, partition.committed_metadata) == (2, "note")

    def test_a_group_is_added_once_in_a_transaction(self, coordinator, producer):
        producer.begin_transaction()
        producer.send_offsets_to_transaction(OFFSETS, "readers")
        producer.send_offsets_to_transaction(OFFSETS, "readers")
        producer.commit_transaction()
        assert coordinator.names().count("AddOffsetsToTxn") == (coordinator.version == 1)
        assert coordinator.names().count("TxnOffsetCommit") == 2

    def test_bulk_sends_are_part_of_it(self, coordinator, producer):
        with producer.transaction():
            sent = producer.send_many("orders", [b"a", b"b"], partition=0)
        assert [future.get().offset for future in sent] == [0, 1]
        assert coordinator.ended == [("commit", [b"a", b"b"], {})]

    def test_callbacks_have_run_when_a_commit_returns(self, coordinator, producer):
        seen = []
        producer.begin_transaction()
        producer.send("orders", b"v").add_callback(lambda metadata: seen.append(metadata.offset))
        producer.commit_transaction()
        assert seen == [0]


class TestTheWithBlock:
    def test_an_exception_aborts_and_goes_on(self, coordinator, producer):
        def program():
            with producer.transaction():
                producer.send("orders", b"v")
                producer.flush()
                raise ZeroDivisionError

        with pytest.raises(ZeroDivisionError):
            program()
        assert coordinator.ended == [("abort", [b"v"], {})]
        with producer.transaction():
            producer.send("orders", b"w")
        assert coordinator.ended[1][0] == "commit"

    def test_a_commit_that_fails_is_aborted(self, coordinator, producer):
        coordinator.log.batch_bytes_max = 10
        with pytest.raises(Exception, match=r"max\.message\.bytes"), producer.transaction():
            producer.send("orders", b"too large")
        coordinator.log.batch_bytes_max = 10**9
        with producer.transaction():
            producer.send("orders", b"fits")
        assert coordinator.ended[-1][:2] == ("commit", [b"fits"])

    def test_a_commit_that_times_out_can_be_waited_for(self, network, coordinator, producer):
        network.brokers[1].on(EndTxnRequest, None)
        with pytest.raises(KafkaTimeoutError), producer.transaction():
            producer.send("orders", b"v")
        with pytest.raises(IllegalStateError, match=r"commit_transaction\(\) was called before"):
            producer.begin_transaction()
        network.brokers[1].on(EndTxnRequest, coordinator._end)
        network.brokers[1].cut()
        producer.commit_transaction()
        assert coordinator.ended == [("commit", [b"v"], {})]

    def test_the_programs_own_exception_is_told_after_a_fatal_error(self, coordinator, producer):
        def fenced_program():
            with producer.transaction():
                producer.send("orders", b"v")
                coordinator.epoch += 5
                producer.flush()
                raise KeyError("mine")

        with pytest.raises(KeyError, match="mine"):
            fenced_program()


class TestTheOrderOfCalls:
    def test_nothing_goes_before_init(self, idle):
        for call in (idle.begin_transaction, idle.commit_transaction, idle.abort_transaction):
            with pytest.raises(IllegalStateError, match=r"call init_transactions\(\) first"):
                call()
        with pytest.raises(IllegalStateError, match=r"send\(\): init_transactions\(\) was not"):
            idle.send("orders", b"v")

    def test_a_second_init_does_nothing(self, coordinator, producer):
        producer.init_transactions()
        assert coordinator.names().count("InitProducerId") == 1

    def test_records_need_a_transaction(self, producer):
        for send in (
            lambda: producer.send("orders", b"v"),
            lambda: producer.send_many("orders", [b"v"]),
            lambda: producer.send_offsets_to_transaction(OFFSETS, "readers"),
        ):
            with pytest.raises(IllegalStateError, match=r"call begin_transaction\(\) first"):
                send()
        with producer.transaction():
            producer.send("orders", b"v")
        with pytest.raises(IllegalStateError, match=r"call begin_transaction\(\) first"):
            producer.send("orders", b"late")  # the native path is closed again, too

    def test_an_end_needs_a_beginning_and_only_one_is_open(self, producer):
        for call in (producer.commit_transaction, producer.abort_transaction):
            with pytest.raises(IllegalStateError, match=r"call begin_transaction\(\) first"):
                call()
        producer.begin_transaction()
        with pytest.raises(IllegalStateError, match=r"call commit_transaction\(\) or abort"):
            producer.begin_transaction()

    def test_a_producer_without_an_id_has_no_transactions(self, coordinator, new_producer):
        plain = new_producer()
        with pytest.raises(IllegalStateError, match="give it a transactional_id"):
            plain.begin_transaction()

    def test_a_callback_cannot_end_a_transaction(self, producer):
        raised = []

        def on_done(_):
            with pytest.raises(IllegalStateError, match="commit_transaction") as caught:
                producer.commit_transaction()
            raised.append(caught.value)

        producer.begin_transaction()
        producer.send("orders", b"v").add_callback(on_done)
        producer.commit_transaction()
        assert len(raised) == 1

    def test_arguments_are_checked_before_anything_is_sent(self, producer):
        producer.begin_transaction()
        for offsets, group, error in (
            (OFFSETS, 7, TypeError),
            (OFFSETS, ConsumerGroupMetadata(), ValueError),
            (OFFSETS, ConsumerGroupMetadata("g", 3, ""), ValueError),
            ({("in", 0): OffsetAndMetadata(1, "", -1)}, "g", TypeError),
            ({TopicPartition("in", 0): 5}, "g", TypeError),
        ):
            with pytest.raises(error):
                producer.send_offsets_to_transaction(offsets, group)
        with pytest.raises(RecordTooLargeError):
            producer.send("orders", b"x" * 2**21)
        producer.commit_transaction()


class TestTimeouts:
    @pytest.mark.parametrize(
        "name", ["init_transactions", "commit_transaction", "abort_transaction"]
    )
    def test_a_call_is_bounded_and_can_be_called_again(self, network, coordinator, idle, name):
        request = InitProducerIdRequest if name == "init_transactions" else EndTxnRequest
        if request is EndTxnRequest:
            idle.init_transactions()
            idle.begin_transaction()
            idle.send("orders", b"v")
            idle.flush()
        handler = network.brokers[1]._handlers[request]
        network.brokers[1].on(request, None)
        before_ms = network.clock.monotonic_ms()
        with pytest.raises(KafkaTimeoutError, match=rf"{name}\(\) is not done after 5000 ms"):
            getattr(idle, name)()
        assert network.clock.monotonic_ms() - before_ms == 5_000
        network.brokers[1].on(request, handler)
        network.brokers[1].cut()
        getattr(idle, name)()
        with idle.transaction():
            idle.send("orders", b"next")
        assert coordinator.ended[-1][:2] == ("commit", [b"next"])

    def test_offsets_can_be_sent_again_after_a_timeout(self, network, coordinator, producer):
        handler = network.brokers[1]._handlers[TxnOffsetCommitRequest]
        network.brokers[1].on(TxnOffsetCommitRequest, None)
        producer.begin_transaction()
        with pytest.raises(KafkaTimeoutError, match="send_offsets_to_transaction"):
            producer.send_offsets_to_transaction(OFFSETS, "readers")
        network.brokers[1].on(TxnOffsetCommitRequest, handler)
        network.brokers[1].cut()
        producer.send_offsets_to_transaction(OFFSETS, "readers")
        producer.commit_transaction()
        assert coordinator.ended == [("commit", [], {("in", 0): 5})]


class TestClosing:
    def test_an_open_transaction_is_aborted(self, coordinator, producer):
        producer.begin_transaction()
        producer.send("orders", b"v")
        producer.flush()
        producer.close()
        assert coordinator.ended == [("abort", [b"v"], {})]

    def test_a_prepared_one_is_left_open(self, coordinator, producer):
        producer.begin_transaction()
        future = producer.send("orders", b"v")
        prepared = producer.prepare_transaction()
        assert future.succeeded()
        assert prepared == ("copier", 7, coordinator.epoch, coordinator.version, False)
        producer.close()
        assert coordinator.is_open
        assert coordinator.ended == []

    @pytest.mark.parametrize("end", ["commit_transaction", "abort_transaction"])
    def test_a_prepared_one_takes_no_records_and_can_be_ended(self, coordinator, producer, end):
        producer.begin_transaction()
        producer.send("orders", b"v")
        producer.prepare_transaction()
        with pytest.raises(IllegalStateError, match="the transaction is prepared"):
            producer.send("orders", b"w")
        getattr(producer, end)()
        assert coordinator.ended == [(end.removesuffix("_transaction"), [b"v"], {})]

    def test_an_empty_one_says_so(self, coordinator, producer):
        producer.begin_transaction()
        assert producer.prepare_transaction().is_empty

    def test_close_is_bounded_when_the_coordinator_is_away(self, network, producer, caplog):
        producer.begin_transaction()
        producer.send("orders", b"v")
        producer.flush()
        network.brokers[1].refuse_connections()
        before_ms = network.clock.monotonic_ms()
        producer.close(timeout=2)
        assert network.clock.monotonic_ms() - before_ms <= 2_100
        assert "closed with its transaction open" in caplog.text


def test_a_lost_connection_repeats_the_request(coordinator, producer):
    for request in (
        ProduceRequest,
        AddPartitionsToTxnRequest,
        AddOffsetsToTxnRequest,
        TxnOffsetCommitRequest,
        EndTxnRequest,
    ):
        for step in (DISCONNECT, coordinator.lost):
            coordinator.script[request].append(step)
            producer.begin_transaction()
            producer.send("orders", b"v", partition=0)
            producer.send_offsets_to_transaction(OFFSETS, "readers")
            producer.commit_transaction()
            assert coordinator.ended[-1] == ("commit", [b"v"], {("in", 0): 5})
    assert len(coordinator.log.all_values("orders")) == 10
