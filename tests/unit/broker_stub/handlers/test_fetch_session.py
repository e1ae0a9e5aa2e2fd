"""Incremental fetches (KIP-227), as a client sees them."""

from typing import Any

import pytest

from pyclient.error_codes import (
    FetchSessionIdNotFoundError,
    FetchSessionTopicIdError,
    InvalidFetchSessionEpochError,
    UnknownTopicOrPartitionError,
)
from pyclient.protocol.messages.fetch import (
    FetchPartition,
    FetchRequest,
    FetchTopic,
    ForgottenTopic,
)
from tests.support.node_harness import NodeHarness, batch, produce_request

VERSION = 12


def fetch(
    harness: NodeHarness,
    offsets: dict[int, int],
    *,
    session: int = 0,
    epoch: int = 0,
    forget: list[int] | None = None,
    version: int = VERSION,
    max_wait_ms: int = 0,
    max_bytes: int = 1 << 20,
) -> Any:
    request = FetchRequest(
        max_wait_ms=max_wait_ms,
        min_bytes=1,
        max_bytes=max_bytes,
        session_id=session,
        session_epoch=epoch,
        topics=[
            FetchTopic(
                topic="orders",
                topic_id=harness.node.image.topic("orders").topic_id,
                partitions=[
                    FetchPartition(partition=index, fetch_offset=at, partition_max_bytes=1 << 20)
                    for index, at in offsets.items()
                ],
            )
        ]
        if offsets
        else [],
        forgotten_topics_data=[ForgottenTopic(topic="orders", partitions=forget)] if forget else [],
    )
    return harness.start(request, version)


def partitions(response: Any) -> list[int]:
    return [one.partition_index for topic in response.responses for one in topic.partitions]


def produce(harness: NodeHarness, partition: int, value: bytes = b"v") -> None:
    harness.ask(produce_request("orders", batch(value), partition=partition), 9)


@pytest.fixture
def orders(harness: NodeHarness) -> NodeHarness:
    harness.create_topic("orders", partitions=3)
    return harness


def opened(harness: NodeHarness) -> int:
    session_id = fetch(harness, {0: 0, 1: 0, 2: 0}).response.session_id
    assert session_id != 0
    return session_id


def test_a_client_that_wants_no_session_gets_none(orders):
    response = fetch(orders, {0: 0, 1: 0}, epoch=-1).response
    assert response.session_id == 0
    assert partitions(response) == [0, 1]


def test_the_first_response_of_a_session_holds_every_partition(orders):
    response = fetch(orders, {0: 0, 1: 0, 2: 0}).response
    assert response.session_id != 0
    assert partitions(response) == [0, 1, 2]


def test_a_later_response_holds_only_what_is_new(orders):
    session = opened(orders)
    produce(orders, 1)
    response = fetch(orders, {}, session=session, epoch=1).response
    assert response.session_id == session
    assert partitions(response) == [1]
    assert partitions(fetch(orders, {1: 1}, session=session, epoch=2).response) == []


def test_a_new_high_watermark_is_news_even_if_its_records_did_not_fit(orders):
    session = opened(orders)
    produce(orders, 0, b"x" * 1000)
    produce(orders, 1, b"y" * 1000)
    response = fetch(orders, {}, session=session, epoch=1, max_bytes=10).response
    assert partitions(response) == [0, 1]
    assert [one.high_watermark for one in response.responses[0].partitions] == [1, 1]


def test_a_partition_that_gave_records_goes_behind_the_others(orders):
    session = opened(orders)
    for index in range(3):
        produce(orders, index, b"x" * 1000)
    first = fetch(orders, {}, session=session, epoch=1, max_bytes=10).response
    assert [len(one.records) > 0 for one in first.responses[0].partitions] == [True, False, False]
    second = fetch(orders, {0: 1}, session=session, epoch=2, max_bytes=10).response
    assert partitions(second) == [1]


def test_partitions_are_added_and_forgotten(orders):
    session = fetch(orders, {0: 0}).response.session_id
    for index in range(3):
        produce(orders, index)
    response = fetch(orders, {2: 0}, session=session, epoch=1, forget=[0]).response
    assert partitions(response) == [2]


def test_a_waiting_incremental_fetch_is_woken_by_any_partition_of_the_session(orders):
    session = opened(orders)
    pending = fetch(orders, {}, session=session, epoch=1, max_wait_ms=500)
    assert not pending.arrived
    produce(orders, 2)
    assert partitions(pending.response) == [2]


def test_an_error_is_told_again_until_it_is_gone(orders):
    session = fetch(orders, {0: 0, 9: 0}).response.session_id
    for epoch in (1, 2):
        response = fetch(orders, {}, session=session, epoch=epoch).response
        (data,) = response.responses[0].partitions
        assert data.error_code == UnknownTopicOrPartitionError.code


def test_an_unknown_session_is_told_so(orders):
    response = fetch(orders, {0: 0}, session=123, epoch=1).response
    assert response.error_code == FetchSessionIdNotFoundError.code


def test_a_wrong_epoch_is_told_so(orders):
    session = opened(orders)
    response = fetch(orders, {}, session=session, epoch=2).response
    assert response.error_code == InvalidFetchSessionEpochError.code


def test_a_session_is_by_name_or_by_id(orders):
    session = opened(orders)
    response = fetch(orders, {}, session=session, epoch=1, version=13).response
    assert response.error_code == FetchSessionTopicIdError.code


def test_epoch_minus_1_closes_the_session(orders):
    session = opened(orders)
    assert fetch(orders, {0: 0}, session=session, epoch=-1).response.session_id == 0
    assert len(orders.node.fetch_sessions) == 0


def test_a_session_without_partitions_is_closed(orders):
    session = fetch(orders, {0: 0}).response.session_id
    assert fetch(orders, {}, session=session, epoch=1, forget=[0]).response.session_id == 0
    assert len(orders.node.fetch_sessions) == 0


def test_without_a_free_slot_there_is_no_session(tmp_path):
    harness = NodeHarness(tmp_path, max_incremental_fetch_session_cache_slots=1)
    harness.create_topic("orders", partitions=3)
    first = opened(harness)
    response = fetch(harness, {0: 0}).response
    assert (response.session_id, partitions(response)) == (0, [0])
    harness.advance(120_001)
    assert fetch(harness, {0: 0}).response.session_id not in (0, first)
    unknown = fetch(harness, {}, session=first, epoch=1).response
    assert unknown.error_code == FetchSessionIdNotFoundError.code
