"""DeleteTopics, by name and by id."""

import pytest

from pyclient.error_codes import (
    InvalidRequestError,
    TopicDeletionDisabledError,
    UnknownTopicIdError,
    UnknownTopicOrPartitionError,
)
from pyclient.protocol.messages.delete_topics import DeleteTopicsRequest, DeleteTopicState
from tests.support.node_harness import NodeHarness, batch, produce_request


@pytest.mark.parametrize("version", range(1, 6))
def test_a_topic_is_gone_when_the_answer_comes(harness, version):
    harness.create_topic("orders")
    (result,) = harness.ask(DeleteTopicsRequest(topic_names=["orders"]), version).responses
    assert (result.name, result.error_code) == ("orders", 0)
    assert harness.node.image.topic("orders") is None


def test_topics_are_deleted_by_name_or_by_id(harness):
    by_id = harness.create_topic("a")
    harness.create_topic("b")
    request = DeleteTopicsRequest(
        topics=[DeleteTopicState(topic_id=by_id), DeleteTopicState(name="b")]
    )
    results = harness.ask(request, 6).responses
    assert [(one.name, one.error_code) for one in results] == [("a", 0), ("b", 0)]
    assert list(harness.node.image.topics()) == []


def test_its_folder_goes_and_a_new_topic_of_the_name_starts_empty(harness):
    harness.create_topic("orders")
    harness.ask(produce_request("orders", batch(b"a")), 9)
    harness.ask(DeleteTopicsRequest(topic_names=["orders"]), 5)
    assert not (harness.folder / "orders-0").exists()
    harness.create_topic("orders")
    assert harness.node.replicas.partition("orders", 0).log_end_offset == 0


@pytest.mark.parametrize(
    ("topic", "error"),
    [
        (DeleteTopicState(name="missing"), UnknownTopicOrPartitionError),
        (DeleteTopicState(topic_id=b"x" * 16), UnknownTopicIdError),
        (DeleteTopicState(name="missing", topic_id=b"x" * 16), InvalidRequestError),
        (DeleteTopicState(), InvalidRequestError),
    ],
)
def test_what_is_not_there_is_told_so(harness, topic, error):
    (result,) = harness.ask(DeleteTopicsRequest(topics=[topic]), 6).responses
    assert result.error_code == error.code
    assert result.error_message


def test_a_topic_that_stands_twice_in_a_request_stays_and_the_others_go(harness):
    twice = harness.create_topic("twice")
    harness.create_topic("once")
    request = DeleteTopicsRequest(
        topics=[
            DeleteTopicState(name="twice"),
            DeleteTopicState(name="once"),
            DeleteTopicState(topic_id=twice),
        ]
    )
    results = {one.name: one.error_code for one in harness.ask(request, 6).responses}
    assert results == {"twice": InvalidRequestError.code, "once": 0}
    assert [topic.name for topic in harness.node.image.topics()] == ["twice"]


def test_deletion_can_be_disabled(tmp_path):
    harness = NodeHarness(tmp_path, delete_topic_enable=False)
    harness.create_topic("orders")
    (result,) = harness.ask(DeleteTopicsRequest(topic_names=["orders"]), 5).responses
    assert result.error_code == TopicDeletionDisabledError.code
    assert harness.node.image.topic("orders") is not None


def test_a_topic_that_is_not_there_stands_twice_like_any_other(harness):
    (result,) = harness.ask(DeleteTopicsRequest(topic_names=["missing", "missing"]), 5).responses
    assert (result.name, result.error_code) == ("missing", InvalidRequestError.code)


def test_a_topic_that_is_named_twice_and_by_its_id_stays(harness):
    topic_id = harness.create_topic("orders")
    by_name, by_id = DeleteTopicState(name="orders"), DeleteTopicState(topic_id=topic_id)
    for topics in ([by_name, by_name, by_id], [by_id, by_id, by_name]):
        (result,) = harness.ask(DeleteTopicsRequest(topics=topics), 6).responses
        assert result.error_code == InvalidRequestError.code
    assert harness.node.image.topic("orders") is not None
