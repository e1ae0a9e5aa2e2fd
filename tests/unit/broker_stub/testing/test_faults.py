"""Faults of whole requests: which they hit, what the client sees, what happened anyway."""

from typing import Any

import pytest

from broker_stub.request import HANG_UP
from broker_stub.testing import Always, Next, Nth, Randomly
from pyclient.errors import (
    InvalidTopicError,
    NotLeaderOrFollowerError,
    RequestTimedOutError,
)
from pyclient.protocol.messages.api_versions import ApiVersionsRequest
from pyclient.protocol.messages.create_topics import CreatableTopic, CreateTopicsRequest
from pyclient.protocol.messages.fetch import FetchPartition, FetchRequest, FetchTopic
from pyclient.protocol.messages.metadata import MetadataRequest, MetadataRequestTopic
from pyclient.protocol.messages.produce import ProduceRequest
from tests.support.node_harness import NodeHarness, batch, produce_request


def produce(harness: NodeHarness, **fields: Any) -> int:
    """Produce one record; the error code."""
    response = harness.ask(produce_request("orders", batch(b"v"), **fields), 12)
    code: int = response.responses[0].partition_responses[0].error_code
    return code


def end_offset(harness: NodeHarness) -> int:
    return harness.node.replicas.partition("orders", 0).log_end_offset


def metadata_of(*names: str) -> MetadataRequest:
    return MetadataRequest(topics=[MetadataRequestTopic(name=name) for name in names])


@pytest.fixture(autouse=True)
def orders(harness: NodeHarness) -> None:
    harness.create_topic("orders")


def test_the_next_request_fails_and_nothing_of_it_happens(harness, faults):
    fault = faults.fail_next(ProduceRequest, NotLeaderOrFollowerError)
    assert produce(harness) == NotLeaderOrFollowerError.code
    assert end_offset(harness) == 0
    assert produce(harness) == 0
    assert fault.hits == 1


def test_a_request_can_fail_after_it_was_carried_out(harness, faults):
    faults.fail_next(ProduceRequest, RequestTimedOutError, after=True)
    assert produce(harness) == RequestTimedOutError.code
    assert end_offset(harness) == 1


def test_a_number_of_requests_fails(harness, faults):
    faults.fail_next(ProduceRequest, NotLeaderOrFollowerError, count=2)
    assert [produce(harness) for _ in range(3)] == [NotLeaderOrFollowerError.code] * 2 + [0]


def test_the_nth_request_fails(harness, faults):
    faults.fail_nth(ProduceRequest, NotLeaderOrFollowerError, 3)
    assert [bool(produce(harness)) for _ in range(4)] == [False, False, True, False]


def test_requests_fail_at_random_by_their_seed(harness, faults):
    fault = faults.fail_randomly(ProduceRequest, NotLeaderOrFollowerError, 0.5, seed=7)
    failed = [bool(produce(harness)) for _ in range(20)]
    when = Randomly(0.5, seed=7)
    assert failed == [when.wants() for _ in range(20)]
    assert fault.hits == sum(failed)


def test_other_apis_are_served_meanwhile(harness, faults):
    faults.fail(ProduceRequest, NotLeaderOrFollowerError, Always())
    assert harness.ask(metadata_of("orders")).topics[0].error_code == 0


def test_a_fault_can_be_for_one_client(harness, faults):
    fault = faults.fail(ProduceRequest, NotLeaderOrFollowerError, Always(), client_id="somebody")
    assert produce(harness) == 0
    fault.cancel()
    faults.fail_next(ProduceRequest, NotLeaderOrFollowerError, client_id="test")
    assert produce(harness) == NotLeaderOrFollowerError.code


def test_faults_queue_up_in_the_order_they_were_ordered(harness, faults):
    faults.fail_next(ProduceRequest, NotLeaderOrFollowerError)
    faults.fail_next(ProduceRequest, RequestTimedOutError)
    faults.drop(ProduceRequest)
    assert produce(harness) == NotLeaderOrFollowerError.code
    assert produce(harness) == RequestTimedOutError.code
    request = produce_request("orders", batch(b"v"))
    assert harness.start(request, 12).reply == HANG_UP
    assert produce(harness) == 0


def test_an_error_may_be_a_class_an_instance_or_a_code(harness, faults):
    new = CreateTopicsRequest(topics=[CreatableTopic(name="new", num_partitions=1)])
    for error in (InvalidTopicError, InvalidTopicError("not on Sundays"), InvalidTopicError.code):
        faults.fail_next(CreateTopicsRequest, error)
        (result,) = harness.ask(new).topics
        assert result.error_code == InvalidTopicError.code
        assert (result.error_message == "not on Sundays") == isinstance(error, InvalidTopicError)


def test_a_failed_produce_without_acks_closes_the_connection(harness, faults):
    request = produce_request("orders", batch(b"v"), acks=0)
    for after in (False, True):
        faults.fail_next(ProduceRequest, NotLeaderOrFollowerError, after=after)
        assert harness.start(request, 12).reply == HANG_UP
    assert end_offset(harness) == 1  # the second one's


def test_a_dropped_request_is_not_carried_out_unless_it_is_to_be(harness, faults):
    request = produce_request("orders", batch(b"v"))
    faults.drop(ProduceRequest)
    assert harness.start(request, 12).reply == HANG_UP
    assert end_offset(harness) == 0
    faults.drop(ProduceRequest, after=True)
    assert harness.start(request, 12).reply == HANG_UP
    assert end_offset(harness) == 1


def test_an_answer_is_cut_off(harness, faults):
    request = produce_request("orders", batch(b"v"))
    faults.cut(ProduceRequest, 7)
    cut = harness.start(request, 12).reply
    assert cut.close
    assert len(b"".join(cut.parts)) == 7
    assert end_offset(harness) == 1
    assert produce(harness) == 0


def test_answers_are_late_until_the_delay_is_cancelled(harness, faults):
    fault = faults.delay(ApiVersionsRequest, 200)
    pending = harness.start(ApiVersionsRequest(), 0)
    harness.advance(199)
    assert not pending.arrived
    harness.advance(1)
    assert pending.response.error_code == 0
    fault.cancel()
    assert harness.ask(ApiVersionsRequest(), 0).error_code == 0


def test_a_failure_can_be_late_too(harness, faults):
    faults.fail_next(ProduceRequest, NotLeaderOrFollowerError)
    faults.delay(ProduceRequest, 200, Next())
    pending = harness.start(produce_request("orders", batch(b"v")), 12)
    assert not pending.arrived
    harness.advance(200)
    (topic,) = pending.response.responses
    assert topic.partition_responses[0].error_code == NotLeaderOrFollowerError.code


def test_a_fault_is_for_requests_that_come_after_it_was_ordered(harness, faults):
    partition = FetchPartition(partition=0, partition_max_bytes=1 << 20)
    topics = [FetchTopic(topic="orders", partitions=[partition])]
    waiting = harness.start(FetchRequest(max_wait_ms=500, min_bytes=1, topics=topics), 12)
    fault = faults.fail_next(FetchRequest, NotLeaderOrFollowerError, after=True)
    harness.advance(500)
    assert waiting.response.error_code == 0
    assert fault.hits == 0


def test_hidden_versions_are_neither_advertised_nor_served(harness, faults):
    faults.hide(MetadataRequest, above=5, below=1)
    rows = {row.api_key: row for row in harness.ask(ApiVersionsRequest(), 0).api_keys}
    assert (rows[3].min_version, rows[3].max_version) == (1, 5)
    assert harness.start(metadata_of("orders"), 6).reply == HANG_UP
    assert harness.start(metadata_of("orders"), 0).reply == HANG_UP
    assert harness.ask(metadata_of("orders"), 5).topics[0].error_code == 0


def test_low_versions_are_hidden_also_where_some_are_advertised_and_not_served(harness, faults):
    faults.hide(ProduceRequest, below=5)
    rows = {row.api_key: row for row in harness.ask(ApiVersionsRequest(), 0).api_keys}
    assert rows[0].min_version == 5


def test_a_hidden_api_is_as_if_it_did_not_exist(harness, faults):
    faults.hide(MetadataRequest)
    assert 3 not in {row.api_key for row in harness.ask(ApiVersionsRequest(), 0).api_keys}
    assert harness.start(metadata_of("orders"), 5).reply == HANG_UP


def test_hiding_all_versions_hides_the_api(harness, faults):
    faults.hide(MetadataRequest, below=99)
    assert 3 not in {row.api_key for row in harness.ask(ApiVersionsRequest(), 0).api_keys}


@pytest.mark.parametrize(
    ("orders", "left"),
    [
        ([{"above": 5}, {"below": 2}], (2, 5)),
        ([{"below": 2}, {"above": 5}], (2, 5)),
        ([{"above": 5}, {"above": 8}], (0, 5)),
        ([{"below": 4}, {"above": 3}], None),
        ([{}, {"above": 5}], None),
    ],
)
def test_what_is_hidden_stays_so_when_more_is_hidden(harness, faults, orders, left):
    for order in orders:
        faults.hide(MetadataRequest, **order)
    rows = {row.api_key: row for row in harness.ask(ApiVersionsRequest(), 0).api_keys}
    found = rows.get(MetadataRequest.api_key)
    assert (found and (found.min_version, found.max_version)) == left


def test_several_delays_make_one_that_a_clock_can_wait_for(harness, faults):
    for _ in range(2):
        faults.delay(ApiVersionsRequest, 2**31 - 1)
    pending = harness.start(ApiVersionsRequest(), 0)
    harness.advance(2**31 - 1)
    assert pending.response.error_code == 0


def test_clear_ends_all_of_it(harness, faults):
    faults.fail(ProduceRequest, NotLeaderOrFollowerError, Always())
    faults.delay(ProduceRequest, 200)
    faults.hide(MetadataRequest)
    faults.clear()
    assert produce(harness) == 0
    assert harness.ask(metadata_of("orders")).topics[0].error_code == 0


def test_spent_faults_are_let_go(harness, faults):
    faults.fail_next(ProduceRequest, NotLeaderOrFollowerError)
    faults.fail(ProduceRequest, RequestTimedOutError, Nth(2))
    for _ in range(2):
        produce(harness)
    assert faults.standing == ()
