"""DescribeTopicPartitions: topics page by page."""

from typing import Any

import pytest

from pyclient.error_codes import (
    InvalidRequestError,
    InvalidTopicError,
    UnknownTopicOrPartitionError,
)
from pyclient.protocol.messages.describe_topic_partitions import (
    Cursor,
    DescribeTopicPartitionsRequest,
    TopicRequest,
)
from tests.support.node_harness import NodeHarness


@pytest.fixture(autouse=True)
def topics(harness: NodeHarness) -> None:
    for name, partitions in (("c", 1), ("a", 3), ("b", 2)):
        harness.create_topic(name, partitions)


def page(harness: NodeHarness, *names: str, limit: int = 2000, after: Any = None) -> Any:
    return harness.ask(
        DescribeTopicPartitionsRequest(
            topics=[TopicRequest(name=name) for name in names],
            response_partition_limit=limit,
            cursor=after,
        )
    )


def shown(response: Any) -> list[tuple[str, list[int]]]:
    return [
        (topic.name, [one.partition_index for one in topic.partitions]) for topic in response.topics
    ]


def cursor(topic: str, partition: int) -> Cursor:
    return Cursor(topic_name=topic, partition_index=partition)


def test_all_that_can_be_done_to_a_topic_is_told(harness):
    assert page(harness).topics[0].topic_authorized_operations == 3576


def test_no_names_ask_for_all_topics_in_order(harness):
    response = page(harness)
    assert shown(response) == [("a", [0, 1, 2]), ("b", [0, 1]), ("c", [0])]
    assert response.next_cursor is None


def test_partitions_come_with_their_leader_and_replicas(harness):
    (topic,) = page(harness, "c").topics
    (partition,) = topic.partitions
    assert topic.topic_id == harness.node.image.topic("c").topic_id
    assert (partition.error_code, partition.leader_id, partition.leader_epoch) == (0, 1, 0)
    assert (partition.replica_nodes, partition.isr_nodes) == ([1], [1])
    assert (partition.eligible_leader_replicas, partition.offline_replicas) == ([], [])


def test_pages_follow_one_another_by_the_cursor(harness):
    pages = []
    after = None
    while True:
        response = page(harness, limit=2, after=after)
        pages.append(shown(response))
        after = response.next_cursor
        if after is None:
            break
    assert pages == [[("a", [0, 1])], [("a", [2]), ("b", [0])], [("b", [1]), ("c", [0])]]


def test_a_page_that_ends_with_a_topic_goes_on_with_the_next(harness):
    assert page(harness, limit=3).next_cursor == cursor("b", 0)


@pytest.mark.parametrize("limit", [0, -1, 1])
def test_a_page_has_one_partition_at_least(harness, limit):
    assert shown(page(harness, limit=limit)) == [("a", [0])]


def test_a_page_has_2000_partitions_at_most(harness):
    harness.create_topic("aa", 2100)
    response = page(harness, "aa", limit=5000)
    assert len(response.topics[0].partitions) == 2000
    assert response.next_cursor == cursor("aa", 2000)


def test_topics_before_the_cursor_are_passed_over(harness):
    response = page(harness, "a", "b", "c", after=cursor("b", 1))
    assert shown(response) == [("b", [1]), ("c", [0])]


def test_what_is_not_there_is_told_so(harness):
    known, missing, illegal = page(harness, "a", "missing", "not a name").topics
    assert (known.error_code, missing.error_code, illegal.error_code) == (
        0,
        UnknownTopicOrPartitionError.code,
        InvalidTopicError.code,
    )


@pytest.mark.parametrize("bad", [cursor("c", 0), cursor("a", -1)])
def test_a_cursor_must_be_of_a_topic_that_is_asked_for(harness, bad):
    (topic,) = page(harness, "a", after=bad).topics
    assert topic.error_code == InvalidRequestError.code
